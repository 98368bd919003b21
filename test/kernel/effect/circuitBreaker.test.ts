// A circuit breaker of one endpoint: the failures that open it, the calls that its probe blocks, and the outcomes that
// do not count.
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { makeCircuitBreaker } from "../../../kernel/effect/circuitBreaker.ts"

const made = makeCircuitBreaker<string>({
  failures: 2,
  openMillis: 1_000,
  refused: () => "refused",
  isIgnored: (error) => error === "input"
})

it.effect("refuses other calls while its probe runs", () =>
  Effect.gen(function* () {
    const { isOpen, run } = yield* made
    for (let at = 0; at < 2; at++) yield* Effect.flip(run(Effect.fail("down")))
    expect([yield* isOpen, yield* Effect.flip(run(Effect.void))]).toEqual([true, "refused"])
    yield* TestClock.adjust("1 second")
    expect(yield* isOpen).toBe(false)
    const gate = yield* Deferred.make<void>()
    const probe = yield* Effect.forkChild(run(Deferred.await(gate)), { startImmediately: true })
    expect([yield* isOpen, yield* Effect.flip(run(Effect.void))]).toEqual([true, "refused"])
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(probe)
    expect([yield* isOpen, yield* run(Effect.succeed("up"))]).toEqual([false, "up"])
  })
)

it.effect("counts neither ignored errors nor interrupted calls", () =>
  Effect.gen(function* () {
    const { isOpen, run } = yield* made
    yield* Effect.flip(run(Effect.fail("down")))
    for (let at = 0; at < 3; at++) {
      yield* Effect.flip(run(Effect.fail("input")))
      yield* Fiber.interrupt(yield* Effect.forkChild(run(Effect.never), { startImmediately: true }))
    }
    expect(yield* isOpen).toBe(false)
    yield* Effect.flip(run(Effect.fail("down")))
    expect(yield* isOpen).toBe(true)
  })
)
