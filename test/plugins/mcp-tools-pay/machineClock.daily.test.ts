// Tool servers on machines with wrong clocks: payments count for the ledger's day, so a wrong clock opens no second
// budget, and neither does correcting it.
import { NodeServices } from "@effect/platform-node"
import { expect, layer } from "@effect/vitest"
import { Clock, Effect, FileSystem } from "effect"
import { skewedClock } from "../../support/skewedClock.ts"
import { agentKey, pay, PayWorld } from "./payWorld.ts"

const hour = 3_600_000
/** Room for one payment of 2,000 and half of another. */
const once = ["budget.store=file", "budget.max_per_day=3000"]

layer(PayWorld.layer, { excludeTestServices: true, timeout: 240_000 })("an agent's budget of a day", (it) => {
  it.effect("machines with clocks days apart share one budget [S217]", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying, ref, seller } = yield* PayWorld
      seller.behaviour = {}
      const files = yield* FileSystem.FileSystem
      const folder = yield* files.makeTempDirectoryScoped()
      const before = yield* facilitator.balance(agent.publicKey())
      const payAt = (skew: number, a: number) =>
        Effect.gen(function* () {
          const client = yield* paying(once, agentKey, folder)
          const { body } = yield* pay(client, ref, { a, b: 70_000 })
          return body["receipt"]?.status ?? body["code"]
        }).pipe(Effect.scoped, Effect.provideServiceEffect(Clock.Clock, skewedClock(skew)))
      const answers = yield* Effect.forEach([26 * hour, 0, -26 * hour, 96 * hour, 0], (skew, at) => payAt(skew, at))
      expect(answers).toEqual(["settled", ...Array.from({ length: 4 }, () => "BUDGET_EXCEEDED")])
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(2_000n)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("a call paid by a machine with a late clock is not repaid [S104, S232]", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying, ref, seller } = yield* PayWorld
      const files = yield* FileSystem.FileSystem
      const folder = yield* files.makeTempDirectoryScoped()
      const before = yield* facilitator.balance(agent.publicKey())
      const payAt = (skew: number) =>
        Effect.gen(function* () {
          const client = yield* paying(
            ["budget.store=file", "network_security.paid_call_timeout_ms=3000"],
            agentKey,
            folder
          )
          return (yield* pay(client, ref, { a: 7, b: 71_000 })).body
        }).pipe(Effect.scoped, Effect.provideServiceEffect(Clock.Clock, skewedClock(skew)))
      // Paid, but the response never comes: only the ledger has a record of it.
      seller.behaviour = { paid: () => new Promise<never>(() => undefined) }
      const first = yield* payAt(-hour)
      expect(first["code"]).toBe("SETTLEMENT_UNKNOWN")
      const paymentIdentifier = first["details"].paymentIdentifier
      expect(yield* payAt(hour)).toMatchObject({ code: "SETTLEMENT_UNKNOWN", details: { paymentIdentifier } })
      seller.behaviour = {}
      expect(yield* payAt(hour)).toMatchObject({ receipt: { paymentIdentifier, status: "settled" } })
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(2_000n)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
