// How a stop treats running calls: it waits for them, within a limit.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Calls } from "../../../plugins/mcp-tools/server/Calls.ts"

it.effect("a stop waits for a call that ends in time [S182]", () =>
  Effect.gen(function* () {
    const { isBusy, run, stopped, within } = yield* Calls
    const answer = run(within("one", Effect.delay(Effect.succeed("found"), "2 seconds"), "cut"))
    const stop = yield* Effect.forkChild(stopped)
    yield* TestClock.adjust("1 second")
    expect([isBusy("one"), stop.pollUnsafe()]).toEqual([true, undefined])
    yield* TestClock.adjust("1 second")
    expect(yield* Effect.promise(() => answer)).toBe("found")
    yield* Fiber.join(stop)
  }).pipe(Effect.provide(Calls.layer))
)

it.effect("an endless call gets a retryable error; the process stops within 5 s [S182]", () =>
  Effect.gen(function* () {
    const { isBusy, run, stopped, within } = yield* Calls
    const answer = run(within("one", Effect.never, "cut"))
    // A call that cannot be interrupted does not delay it either.
    void run(Effect.uninterruptible(Effect.delay(Effect.void, "30 seconds"))).catch(() => undefined)
    const stop = yield* Effect.forkChild(stopped)
    yield* TestClock.adjust("5 seconds")
    expect(yield* Effect.promise(() => answer)).toBe("cut")
    expect(isBusy("one")).toBe(false)
    yield* Fiber.join(stop)
    yield* TestClock.adjust("30 seconds")
  }).pipe(Effect.provide(Calls.layer))
)
