import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { toolError } from "../../../plugins/mcp-tools/contract.ts"
import { OpenPayments } from "../../../plugins/mcp-tools-pay/call/OpenPayments.ts"

it.effect("identical concurrent calls share one payment and its outcome [S212]", () =>
  Effect.gen(function* () {
    const { once, underWay } = yield* OpenPayments
    const gate = yield* Deferred.make<void>()
    let payments = 0
    const paying = Effect.gen(function* () {
      const receipt = ++payments
      yield* Deferred.await(gate)
      return { receipt }
    })
    expect(underWay("call")).toBe(undefined)
    const first = yield* Effect.forkChild(once("call", paying), { startImmediately: true })
    const second = yield* Effect.forkChild(once("call", paying), { startImmediately: true })
    const third = yield* Effect.forkChild(underWay("call")!, { startImmediately: true })
    const other = yield* Effect.forkChild(once("another", paying), { startImmediately: true })
    // A waiter that leaves does not affect the others.
    yield* Fiber.interrupt(second)
    yield* Deferred.succeed(gate, undefined)
    expect([yield* Fiber.join(first), yield* Fiber.join(third)]).toEqual([{ receipt: 1 }, { receipt: 1 }])
    yield* Fiber.join(other)
    expect([payments, underWay("call")]).toEqual([2, undefined])
    // Afterwards the call pays again.
    yield* once("call", paying)
    expect(payments).toBe(3)
  }).pipe(Effect.provide(OpenPayments.layer))
)

it.effect("a failed or interrupted payment fails for all waiters and is cleared [S212]", () =>
  Effect.gen(function* () {
    const { once, underWay } = yield* OpenPayments
    const gate = yield* Deferred.make<void>()
    const failing = Effect.andThen(Deferred.await(gate), Effect.fail(toolError("BUDGET_EXCEEDED", "no room")))
    const first = yield* Effect.forkChild(once("call", failing), { startImmediately: true })
    const waiting = yield* Effect.forkChild(once("call", failing), { startImmediately: true })
    yield* Deferred.succeed(gate, undefined)
    for (const fiber of [first, waiting])
      expect(yield* Effect.flip(Fiber.join(fiber))).toMatchObject({ code: "BUDGET_EXCEEDED" })
    const endless = yield* Effect.forkChild(once("call", Effect.never), { startImmediately: true })
    yield* Fiber.interrupt(endless)
    expect(underWay("call")).toBe(undefined)
  }).pipe(Effect.provide(OpenPayments.layer))
)
