// The extension header of an answer when observers answer immediately, late, never, or fail.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger, Option } from "effect"
import { TestClock } from "effect/testing"
import { type ExtensionOutcome, Extensions, type PaymentObservation } from "../../../kernel/payment/Extension.ts"
import { observePayment } from "../../../kernel/payment/observePayment.ts"

const success: ExtensionOutcome = { status: "success" }

const observation = (keys: ReadonlyArray<string>): PaymentObservation => ({
  payment: { extensions: new Map(keys.map((key) => [key, { sentKey: `sent ${key}`, value: {} }])) } as never,
  stage: "verified",
  payer: "G",
  transaction: Option.none(),
  authorization: () => Option.none()
})

/** Has these observed; the fiber that waits for the header. */
const observing = Effect.fnUntraced(function* (
  observers: Readonly<Record<string, () => Effect.Effect<ExtensionOutcome>>>
) {
  const extensions = yield* Extensions
  for (const [key, observe] of Object.entries(observers)) yield* extensions.register({ key, observe })
  const scope = yield* Effect.scope
  const header = observePayment(extensions, observation(Object.keys(observers)), scope)
  return yield* Effect.forkChild(header, { startImmediately: true })
})

/** The value of the header once it is there; None until then. */
const said = (fiber: Fiber.Fiber<Option.Option<string>>) => {
  const exit = fiber.pollUnsafe()
  if (exit?._tag !== "Success") return exit
  return JSON.parse(Buffer.from(Option.getOrThrow(exit.value), "base64").toString()) as unknown
}

const layer = Layer.merge(Extensions.layer, Logger.layer([]))

it.effect("waits fifty milliseconds for silent observers, however many [S254]", () =>
  Effect.gen(function* () {
    const fiber = yield* observing({
      one: () => Effect.never,
      other: () => Effect.never,
      quick: () => Effect.succeed(success)
    })
    yield* TestClock.adjust("49 millis")
    expect(said(fiber)).toBeUndefined()
    yield* TestClock.adjust("1 millis")
    const processing = { status: "processing" }
    expect(said(fiber)).toEqual({ "sent one": processing, "sent other": processing, "sent quick": success })
  }).pipe(Effect.scoped, Effect.provide(layer))
)

it.effect("an observer's answer in time is used without further waiting", () =>
  Effect.gen(function* () {
    const fiber = yield* observing({ slow: () => Effect.as(Effect.sleep("20 millis"), success) })
    yield* TestClock.adjust("20 millis")
    expect(said(fiber)).toEqual({ "sent slow": success })
  }).pipe(Effect.scoped, Effect.provide(layer))
)

it.effect("an observer that throws or dies is reported as processing immediately [S255]", () =>
  Effect.gen(function* () {
    const fiber = yield* observing({
      dies: () => Effect.die("boom"),
      throws: () => {
        throw new Error("boom")
      }
    })
    expect(said(fiber)).toEqual({ "sent dies": { status: "processing" }, "sent throws": { status: "processing" } })
  }).pipe(Effect.scoped, Effect.provide(layer))
)

it.effect("a cached observer result is used; a failing cache asks the observer [S255]", () =>
  Effect.gen(function* () {
    const extensions = yield* Extensions
    const asked: Array<string> = []
    const register = (key: string, recall: () => ExtensionOutcome | undefined) => {
      const observe = () => Effect.sync(() => (asked.push(key), success))
      return extensions.register({ key, observe, recall })
    }
    yield* register("knows", () => ({ status: "rejected", rejectedReason: "payto_conflict" }))
    yield* register("does not", () => undefined)
    yield* register("breaks", () => {
      throw new Error("boom")
    })
    const header = observePayment(extensions, observation(["knows", "does not", "breaks"]), yield* Effect.scope)
    expect(said(yield* Effect.forkChild(header, { startImmediately: true }))).toEqual({
      "sent knows": { status: "rejected", rejectedReason: "payto_conflict" },
      "sent does not": success,
      "sent breaks": success
    })
    expect(asked).toEqual(["does not", "breaks"])
  }).pipe(Effect.scoped, Effect.provide(layer))
)
