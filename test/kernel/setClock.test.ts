// A machine's clock that is set back or forward while a process runs: waits, pauses and cached data depend on elapsed
// time.
import { describe, expect, it } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import { batched } from "../../kernel/database/batched.ts"
import { monotonicMillis } from "../../kernel/time/monotonicMillis.ts"
import { makeRateLimit } from "../../kernel/http/RateLimit.ts"
import { timeLeft } from "../../kernel/payment/settle/waitForOutcome.ts"
import { type HttpCall, HttpCalls } from "../../kernel/platform/HttpCalls.ts"
import { staleWhileRevalidate } from "../../plugins/catalog/search/rank/staleWhileRevalidate.ts"
import { OutcomeCache } from "../../plugins/catalog/OutcomeCache.ts"
import { Upstream } from "../../plugins/ledger-local/node/fork/Upstream.ts"
import { CircuitBreaker } from "../../plugins/search-semantic/provider/CircuitBreaker.ts"
import { EmbeddingFailed } from "../../plugins/search-semantic/provider/Embedder.ts"
import { settableClock } from "../support/skewedClock.ts"
import { limitValues } from "./settlement/store.ts"

const hour = 3_600_000
/** A test with a machine clock that `set` shifts. It begins at noon, so that the clock can go back. */
const onMachine = <A, E, R>(test: (set: (millis: number) => void) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const { clock, set } = yield* settableClock
    return yield* Effect.andThen(TestClock.adjust("12 hours"), test(set)).pipe(
      Effect.provideService(Clock.Clock, clock)
    )
  })

describe.each([
  ["back", -hour],
  ["forward", hour]
])("a clock that is set %s by an hour", (_, millis) => {
  it.effect("a clock change keeps a settle request's remaining time", () =>
    onMachine((set) =>
      Effect.gen(function* () {
        const began = { at: yield* Clock.currentTimeMillis, elapsed: yield* monotonicMillis }
        yield* TestClock.adjust("1 second")
        set(millis)
        expect(yield* timeLeft(began, limitValues)).toBe(Duration.toMillis(limitValues.settleTimeout) - 1_000)
      })
    )
  )

  it.effect("a clock change neither fills nor drains a token bucket", () =>
    onMachine((set) =>
      Effect.gen(function* () {
        const take = makeRateLimit(1)
        for (const _ of [1, 2]) expect(yield* take("a")).toBe(0)
        set(millis)
        expect(yield* take("a")).toBe(1)
        yield* TestClock.adjust("1 second")
        expect([yield* take("a"), yield* take("a")]).toEqual([0, 1])
      })
    )
  )

  it.effect("a clock change keeps the interval between two statements", () =>
    onMachine((set) =>
      Effect.gen(function* () {
        let runs = 0
        const run = (calls: ReadonlyArray<number>) => Effect.sync(() => (runs++, calls))
        const ask = yield* batched({ maxBatchSize: 8, minIntervalMillis: 1_000, runBatch: run })
        yield* ask(1)
        set(millis)
        const next = yield* Effect.forkChild(ask(2), { startImmediately: true })
        yield* TestClock.adjust("999 millis")
        expect(runs).toBe(1)
        yield* TestClock.adjust("1 millis")
        yield* Fiber.join(next)
        expect(runs).toBe(2)
      })
    ).pipe(Effect.scoped)
  )

  it.effect("a clock change keeps a circuit breaker's open time", () =>
    onMachine((set) =>
      Effect.gen(function* () {
        const breaker = yield* CircuitBreaker
        const fails = Effect.fail(new EmbeddingFailed({ message: "no", perhapsTheTexts: false }))
        yield* Effect.flip(breaker.run(fails))
        set(millis)
        expect(yield* breaker.isOpen).toBe(true)
        yield* TestClock.adjust("1 second")
        expect(yield* breaker.isOpen).toBe(false)
        yield* breaker.answered(false)
        set(millis)
        expect(yield* breaker.pace).toBe("slow")
        yield* TestClock.adjust("1 second")
        expect(yield* breaker.pace).toBe("probe")
      })
    ).pipe(Effect.provide(CircuitBreaker.layer({ failures: 1, millis: 1_000 })))
  )

  it.effect("a clock change keeps the timeout of an external request", () =>
    onMachine((set) =>
      Effect.gen(function* () {
        const left: Array<number> = []
        const busy = { status: 503, body: new Uint8Array(), retryAfter: "1" }
        const post = ({ timeoutMillis }: HttpCall) => Effect.sync(() => (left.push(timeoutMillis), set(millis), busy))
        const asking = yield* Effect.flip(
          Effect.flatMap(Upstream, (upstream) => upstream.ask("getHealth", {}, Schema.Unknown))
        ).pipe(
          Effect.provide(Upstream.layer("http://127.0.0.1:1")),
          Effect.provideService(HttpCalls, { post } as never),
          Effect.forkChild({ startImmediately: true })
        )
        for (let second = 0; second < 10; second++) yield* TestClock.adjust("1 second")
        yield* Fiber.join(asking)
        expect(left.map((millis) => left[0]! - millis)).toEqual([0, 1_000, 2_000, 3_000])
      })
    )
  )

  it.effect("a clock change keeps a report's age", () =>
    onMachine((set) =>
      Effect.gen(function* () {
        let made = 0
        const ask = yield* staleWhileRevalidate(
          "reports",
          () => Effect.sync(() => ++made),
          () => true
        )
        yield* ask("report")
        set(millis)
        expect(yield* ask("report")).toBe(1)
        yield* TestClock.adjust("61 seconds")
        expect(yield* ask("report")).toBe(2)
      })
    ).pipe(Effect.scoped)
  )
})

it("a declaration's result is unknown while the clock is before its validation", () => {
  const cached = new OutcomeCache()
  const recorded = { decision: "unchanged", reason: undefined, resourceId: 1n, versionHash: "v", stateHash: "s" }
  cached.keep("digest", recorded as never, 2 * hour)
  expect(cached.recall("digest", 2 * hour)).toBeDefined()
  expect(cached.recall("digest", hour)).toBeUndefined()
})
