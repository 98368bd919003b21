// One call to several endpoints: the next one after an error or a wait, and later rounds within the timeout.
import { expect, it } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber, Random } from "effect"
import { TestClock } from "effect/testing"
import { askEndpoints, CallError } from "../../../kernel/ledger/askEndpoints.ts"
import { LedgerUnavailable } from "../../../kernel/ledger/LedgerRpc.ts"

const failing = (message: string, isPassing = false, retryAfterMillis = 0) =>
  Effect.fail(
    new CallError({
      unavailable: new LedgerUnavailable({ operation: "getHealth", message }),
      isPassing,
      retryAfterMillis
    })
  )

/** The answer of a call to these endpoints, and the time of each request and of each wait that was too long. */
const ask = Effect.fnUntraced(function* (
  endpoints: ReadonlyArray<Effect.Effect<string, CallError>>,
  timeout: Duration.Input
) {
  const events: Array<string> = []
  const note = (what: string) =>
    Effect.map(Clock.currentTimeMillis, (now) => void events.push(`${what} at ${Math.round(now)}`))
  const calls = endpoints.map((answer, at) => ({
    ask: Effect.andThen(note(`${at}`), answer),
    slow: note(`${at} slow`)
  }))
  const fiber = yield* Effect.forkChild(
    Effect.exit(askEndpoints(Effect.succeed(calls), Duration.fromInputUnsafe(timeout)))
  )
  for (let step = 0; step < 200; step++) yield* TestClock.adjust("50 millis")
  const exit = yield* Fiber.join(fiber)
  return { answer: exit._tag === "Success" ? exit.value : "failed", events }
})

const after = (millis: number, answer: string) => Effect.as(Effect.sleep(millis), answer)

it.effect("asks the next endpoint after an error", () =>
  Effect.gen(function* () {
    expect(yield* ask([failing("down"), Effect.succeed("second")], "4 seconds")).toEqual({
      answer: "second",
      events: ["0 at 0", "1 at 0"]
    })
  })
)

it.effect("asks the next endpoint after a wait, and a slow one may still win", () =>
  Effect.gen(function* () {
    const events = ["0 at 0", "0 slow at 1000", "1 at 1000"]
    expect(yield* ask([after(1_500, "first"), after(1_000, "second")], "4 seconds")).toEqual({
      answer: "first",
      events
    })
    expect(yield* ask([after(9_000, "first"), after(1_000, "second")], "4 seconds")).toMatchObject({ answer: "second" })
  })
)

/** The times of the requests to one endpoint that always fails, from the first one on. */
const times = Effect.fnUntraced(function* (error: Effect.Effect<never, CallError>, timeout: Duration.Input) {
  const begun = yield* Clock.currentTimeMillis
  const { events } = yield* ask([error], timeout)
  return events.map((event) => Number(event.split(" ").at(-1)) - begun)
})

it.effect.each([
  [0, [0, 75, 225, 525]],
  [1, [0, 150, 450, 1_050]]
] as const)("repeats a passing error three times, and no other (chance %s)", ([chance, expected]) =>
  Effect.gen(function* () {
    expect(yield* times(failing("down"), "9 seconds")).toEqual([0])
    expect(yield* times(failing("busy", true), "9 seconds")).toEqual(expected)
  }).pipe(Effect.provideService(Random.Random, { nextDoubleUnsafe: () => chance, nextIntUnsafe: () => 0 }))
)

it.effect("repeats no call that could not end within the timeout", () =>
  Effect.gen(function* () {
    expect(yield* times(failing("busy", true), "450 millis")).toEqual([0, 150])
    // A provider's pause counts like ours.
    expect(yield* times(failing("busy", true, 700), "2 seconds")).toEqual([0, 700, 1_400])
    expect(yield* times(failing("busy", true, 700), "700 millis")).toEqual([0])
  }).pipe(Effect.provideService(Random.Random, { nextDoubleUnsafe: () => 1, nextIntUnsafe: () => 0 }))
)
