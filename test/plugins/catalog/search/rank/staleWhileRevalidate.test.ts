import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import { staleWhileRevalidate } from "../../../../../plugins/catalog/search/rank/staleWhileRevalidate.ts"

/** A report that takes the given time and counts its computations; the second may fail. */
const report = (millis: number, failsAt = 0) => {
  const made = { count: 0 }
  const make = (key: number) =>
    Effect.suspend(() => {
      made.count += 1
      return made.count === failsAt
        ? Effect.fail("away" as const)
        : Effect.as(Effect.sleep(millis), `${key}: ${made.count}`)
    })
  return { made, make }
}

describe("a report over many rows", () => {
  it.effect("a report over few rows is computed for each request", () =>
    Effect.gen(function* () {
      const { made, make } = report(0)
      const ask = yield* staleWhileRevalidate("reports", make, () => false)
      for (const expected of ["24: 1", "24: 2", "24: 3"]) expect(yield* ask(24)).toBe(expected)
      expect(made.count).toBe(3)
    }).pipe(Effect.scoped)
  )

  it.effect("a report is served stale for a minute while it is recomputed", () =>
    Effect.gen(function* () {
      const { made, make } = report(100, 3)
      const ask = yield* staleWhileRevalidate("reports", make, () => true)
      const first = yield* Effect.forkChild(ask(24))
      yield* TestClock.adjust("100 millis")
      expect(yield* Fiber.join(first)).toBe("24: 1")
      expect(yield* ask(24)).toBe("24: 1")
      yield* TestClock.adjust("20 seconds")
      for (const _ of [1, 2]) expect(yield* ask(24)).toBe("24: 1")
      yield* TestClock.adjust("100 millis")
      expect(yield* ask(24)).toBe("24: 2")
      expect(made.count).toBe(2)
      // A report that cannot be recomputed is served until its minute has passed.
      yield* TestClock.adjust("20 seconds")
      for (const _ of [1, 2]) expect(yield* ask(24)).toBe("24: 2")
      yield* TestClock.adjust("100 millis")
      expect(yield* ask(24)).toBe("24: 2")
      yield* TestClock.adjust("2 minutes")
      const anew = yield* Effect.forkChild(ask(24))
      yield* TestClock.adjust("100 millis")
      expect(yield* Fiber.join(anew)).toBe(`24: ${made.count}`)
    }).pipe(Effect.scoped)
  )
})
