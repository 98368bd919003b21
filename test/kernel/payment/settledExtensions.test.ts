// The extensions that a hook may add to a success; a broken, slow, large or invalid one changes nothing else.
import { expect, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { TestClock } from "effect/testing"
import { Extensions, type SettledAnswer, type SettledHook } from "../../../kernel/payment/Extension.ts"
import {
  eventExtensions,
  extensionsLengthMax,
  hookMillisMax,
  makeSettledExtensions
} from "../../../kernel/payment/settledExtensions.ts"

const answer = {} as SettledAnswer
const giving = (key: string, value: unknown): SettledHook => ({ key, add: () => Effect.succeedSome(value) })

const withHooks = <A, E>(
  hooks: ReadonlyArray<SettledHook>,
  use: (
    run: (answer: SettledAnswer) => Effect.Effect<Readonly<Record<string, unknown>> | undefined>
  ) => Effect.Effect<A, E>
) =>
  Effect.gen(function* () {
    const extensions = yield* Extensions
    for (const hook of hooks) yield* extensions.onSettledAnswer(hook)
    return yield* use(yield* makeSettledExtensions)
  }).pipe(Effect.scoped, Effect.provide(Extensions.layer))

it.effect("adds each hook's value under its key, and nothing without one", () =>
  Effect.gen(function* () {
    const two = [giving("a", { info: 1 }), { key: "b", add: () => Effect.succeed(Option.none()) }]
    expect(yield* withHooks(two, (run) => run(answer))).toEqual({ a: { info: 1 } })
    expect(yield* withHooks([], (run) => run(answer))).toBeUndefined()
  })
)

it.effect("leaves out what fails, dies or is no JSON, and keeps the rest", () => {
  const cycle: Record<string, unknown> = {}
  cycle["self"] = cycle
  const hooks = [
    { key: "dies", add: () => Effect.die("broken") },
    {
      key: "throws",
      add: () => {
        throw new Error("broken")
      }
    },
    giving("cycle", cycle),
    giving("bigint", 1n),
    giving("nothing", undefined),
    giving("good", true)
  ]
  return Effect.map(
    withHooks(hooks, (run) => run(answer)),
    (added) => expect(added).toEqual({ good: true })
  )
})

it.effect("waits a bounded time for a hook, and then leaves it out for a second", () => {
  let calls = 0
  const slow = {
    key: "slow",
    add: () => Effect.suspend(() => ((calls += 1), Effect.as(Effect.sleep("1 hour"), Option.some(1))))
  }
  return withHooks([slow, giving("good", true)], (run) =>
    Effect.gen(function* () {
      const waiting = yield* Effect.forkChild(run(answer), { startImmediately: true })
      yield* TestClock.adjust(hookMillisMax)
      expect(waiting.pollUnsafe()).toMatchObject({ _tag: "Success", value: { good: true } })
      expect(yield* run(answer)).toEqual({ good: true })
      expect(calls).toBe(1)
      yield* TestClock.adjust("1 second")
      const again = yield* Effect.forkChild(run(answer), { startImmediately: true })
      yield* TestClock.adjust(hookMillisMax)
      expect(again.pollUnsafe()).toMatchObject({ _tag: "Success" })
      expect(calls).toBe(2)
    })
  )
})

it.effect("bounds what is added in all, since it travels in a header", () => {
  const hooks = [giving("small", "x"), giving("large", "x".repeat(extensionsLengthMax)), giving("later", 1)]
  return Effect.map(
    withHooks(hooks, (run) => run(answer)),
    (added) => expect(added).toEqual({ small: "x", later: 1 })
  )
})

it.effect("refuses a second hook under one key", () =>
  Effect.map(Effect.flip(withHooks([giving("a", 1), giving("a", 2)], (run) => run(answer))), (error) =>
    expect(error).toMatchObject({ _tag: "ExtensionRefused", key: "a" })
  )
)

it.effect("an event of a success has the same members; of anything else, or where a hook dies, none", () =>
  Effect.gen(function* () {
    const extensions = yield* Extensions
    yield* extensions.onSettledAnswer(giving("a", { info: 1 }))
    yield* extensions.onSettledAnswer({ key: "dies", add: () => Effect.die("broken") })
    const [settled, open] = [{ state: "settled" }, { state: "submitted" }] as ReadonlyArray<unknown> as ReadonlyArray<
      SettledAnswer["record"]
    >
    expect(yield* eventExtensions(extensions, "settlement.settled", settled!)).toEqual({
      extensions: { a: { info: 1 } }
    })
    // Data read after the event does not describe it.
    expect(yield* eventExtensions(extensions, "settlement.recorded", settled!)).toEqual({})
    expect(yield* eventExtensions(extensions, "settlement.settled", open!)).toEqual({})
  }).pipe(Effect.scoped, Effect.provide(Extensions.layer))
)
