// How long a repeated call waits for the catalog before it finishes an earlier payment, and the behavior of an unpaid
// call; and what calls get that come too late to pay. Uses a test clock.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { concurrent } from "../../../plugins/mcp-tools-pay/call/heldError.ts"
import { makePurchase, orRecovered, type Shop } from "../../../plugins/mcp-tools-pay/call/makePurchase.ts"
import type { Invocation, Output } from "../../../plugins/mcp-tools-pay/call/Invocation.ts"
import { Payments } from "../../../plugins/mcp-tools-pay/call/Payments.ts"
import { Policy } from "../../../plugins/mcp-tools-pay/policy/Policy.ts"
import { type Caller, toolError, type ToolError } from "../../../plugins/mcp-tools/contract.ts"
import { provideTest } from "../../support/layerTest.ts"

type Prepared = Effect.Effect<string, ToolError>

const away = toolError("UPSTREAM_TIMEOUT", "the facilitator is unavailable; retry later")

/** A catalog that returns these answers, one per request; `log` records the events. */
const catalogOf = (answers: ReadonlyArray<Prepared>) => {
  const log: Array<string> = []
  let asked = 0
  const prepared: Prepared = Effect.suspend(() => {
    log.push("asked")
    return Effect.onInterrupt(answers[asked++]!, () => Effect.sync(() => void log.push("given up")))
  })
  const paidFor =
    (outcome: Output | undefined) =>
    (found: Effect.Effect<void>): Effect.Effect<Output | undefined> =>
      found.pipe(Effect.andThen(Effect.sync(() => void log.push("resumed"))), Effect.as(outcome))
  return { log, paidFor, prepared }
}

const content = { content: ["paid for"] }
const unpaid = () => Effect.succeed(undefined)

it.effect("an earlier payment is finished after two seconds of a catalog that hangs, which is given up first", () =>
  Effect.gen(function* () {
    const { log, paidFor, prepared } = catalogOf([Effect.never])
    const call = yield* Effect.forkChild(orRecovered(prepared, paidFor(content)))
    yield* TestClock.adjust("1900 millis")
    expect(log).toEqual(["asked"])
    yield* TestClock.adjust("100 millis")
    expect(yield* Fiber.join(call)).toEqual({ outcome: content })
    expect(log).toEqual(["asked", "given up", "resumed"])
  })
)

it.effect("a call that was not paid for waits for a slow catalog and asks it once", () =>
  Effect.gen(function* () {
    const { log, prepared } = catalogOf([Effect.as(Effect.sleep("9 seconds"), "prepared")])
    const call = yield* Effect.forkChild(orRecovered(prepared, unpaid))
    yield* TestClock.adjust("9 seconds")
    expect(yield* Fiber.join(call)).toBe("prepared")
    expect(log).toEqual(["asked"])
    const failing = catalogOf([Effect.andThen(Effect.sleep("9 seconds"), away)])
    const failed = yield* Effect.forkChild(Effect.flip(orRecovered(failing.prepared, unpaid)))
    yield* TestClock.adjust("9 seconds")
    expect((yield* Fiber.join(failed)).code).toBe("UPSTREAM_TIMEOUT")
  })
)

it.effect("a call whose earlier payment is proven dead is prepared anew", () =>
  Effect.gen(function* () {
    const { log, paidFor, prepared } = catalogOf([Effect.never, Effect.succeed("prepared")])
    const call = yield* Effect.forkChild(orRecovered(prepared, paidFor(undefined)))
    yield* TestClock.adjust("2 seconds")
    expect(yield* Fiber.join(call)).toBe("prepared")
    expect(log).toEqual(["asked", "given up", "resumed", "asked"])
  })
)

it.effect("a payment that is made while the catalog fails is found", () =>
  Effect.gen(function* () {
    const { paidFor, prepared } = catalogOf([away])
    expect(yield* orRecovered(prepared, paidFor(content))).toEqual({ outcome: content })
    const late = catalogOf([Effect.andThen(Effect.sleep("9 seconds"), away)])
    let known: Output | undefined
    const call = yield* Effect.forkChild(orRecovered(late.prepared, () => Effect.sync(() => known)))
    yield* TestClock.adjust("3 seconds")
    known = content
    yield* TestClock.adjust("6 seconds")
    expect(yield* Fiber.join(call)).toEqual({ outcome: content })
  })
)

it.effect("an error of an earlier payment ends the call, and the wait for the catalog", () =>
  Effect.gen(function* () {
    const { log, prepared } = catalogOf([Effect.never])
    const unknown = toolError("SETTLEMENT_UNKNOWN", "signed, unconfirmed")
    const call = yield* Effect.forkChild(Effect.flip(orRecovered(prepared, () => unknown)))
    yield* TestClock.adjust("2 seconds")
    expect((yield* Fiber.join(call)).code).toBe("SETTLEMENT_UNKNOWN")
    expect(log).toEqual(["asked", "given up"])
  })
)

it.effect("a call that came too late to pay gets its twin's result, behind other late calls", () =>
  Effect.gen(function* () {
    const none = { _tag: "None", made: 0, released: [] } as const
    const late = { _tag: "UnderWay", outcome: concurrent } as const
    const open = { _tag: "Open", open: {}, reservation: {} } as never
    const invocation = { key: "call", option: {} } as unknown as Invocation
    const asked = Effect.succeed({ challenge: {}, option: {}, seller: {} })
    const shop = { ask: asked, connect: Effect.die("no seller is needed") } as unknown as Shop
    for (const states of [
      [none, late, late, open],
      [late, late, open]
    ]) {
      let reads = 0
      const output = yield* makePurchase(invocation, {} as Caller, shop).pipe(
        provideTest(Payments, {
          stateOf: () => Effect.sync(() => states[reads++]!),
          pay: () => concurrent,
          resume: () => Effect.succeed(content)
        }),
        provideTest(Policy, { verify: () => Effect.succeed(Effect.void) })
      )
      expect(output).toEqual(content)
      expect(reads).toBe(states.length)
    }
  })
)
