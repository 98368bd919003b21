// The token bucket of each caller: bursts, refilling, isolation of callers, and eviction.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { makeRateLimit } from "../../../kernel/http/RateLimit.ts"

it.effect("allows a burst of twice the rate, then the rate, with Retry-After [S331]", () =>
  Effect.gen(function* () {
    const take = makeRateLimit(5)
    for (let i = 0; i < 10; i++) expect(yield* take("a")).toBe(0)
    expect(yield* take("a")).toBe(1)
    yield* TestClock.adjust("200 millis")
    expect([yield* take("a"), yield* take("a")]).toEqual([0, 1])
    yield* TestClock.adjust("1 hour")
    for (let i = 0; i < 10; i++) expect(yield* take("a")).toBe(0)
    expect(yield* take("a")).toBe(1)
  })
)

it.effect("limits each caller separately, and none at rate 0", () =>
  Effect.gen(function* () {
    const take = makeRateLimit(1)
    expect([yield* take("a"), yield* take("a"), yield* take("a"), yield* take("b")]).toEqual([0, 0, 1, 0])
    const unlimited = makeRateLimit(0)
    for (let i = 0; i < 100; i++) expect(yield* unlimited("a")).toBe(0)
  })
)

it.effect("tracks a bounded number of callers and evicts the least recent", () =>
  Effect.gen(function* () {
    const take = makeRateLimit(1)
    for (const caller of ["early", "early", "late", "late"]) yield* take(caller)
    for (let i = 0; i < 49_998; i++) yield* take(`other ${i}`)
    expect(yield* take("late")).toBe(1)
    yield* take("one more")
    expect(yield* take("late")).toBe(1)
    expect(yield* take("early")).toBe(0)
  })
)
