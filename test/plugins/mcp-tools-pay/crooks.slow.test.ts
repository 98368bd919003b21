import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtempSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { eventually } from "../../support/eventually.ts"
import { pay, PayWorld } from "./payWorld.ts"
import { amount, type Behaviour } from "./seller.ts"
import { call, type Json } from "../mcp-tools/support.ts"

let fresh = 0
const args = () => ({ a: ++fresh, b: 5_000 })
/** A seller that settles, but loses the response to a paid call. */
const loses: Behaviour = {
  wire: (message, response) => {
    if (message["params"]?._meta?.["x402/payment"] !== undefined) response.write = () => (response.destroy(), true)
    return false
  }
}
/** The seller's false claim is checked only briefly. */
const soon = "network_security.confirm_timeout_ms=300"
const day = (units: bigint) => `budget.max_per_day=${units}`

const content = { content: [{ type: "text", text: "3" }] }
const saying = (settlement: Json): Json => ({ ...content, _meta: { "x402/payment-response": settlement } })

layer(PayWorld.layer, { excludeTestServices: true, timeout: 240_000 })("a dishonest seller after the payment", (it) => {
  it.effect("a seller that loses its response is sent the same payment again [S104, S232]", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying, ref, seller } = yield* PayWorld
      const client = yield* paying([day(2_000n)])
      const before = yield* facilitator.balance(agent.publicKey())
      const own = args()
      seller.behaviour = loses
      const calls = seller.calls.length
      const lost = yield* pay(client, ref, own)
      expect(lost.body).toMatchObject({
        code: "SETTLEMENT_UNKNOWN",
        retryable: true,
        details: { paymentIdentifier: expect.stringMatching(/^pay_/), network: "ledger:testnet" }
      })
      expect((yield* pay(client, ref, args())).body["code"]).toBe("BUDGET_EXCEEDED")
      seller.behaviour = {}
      const found = yield* pay(client, ref, own)
      expect(found.body["receipt"]).toMatchObject({
        status: "settled",
        paymentIdentifier: lost.body["details"].paymentIdentifier
      })
      const payments = seller.calls
        .slice(calls)
        .flatMap(({ payment }) => (payment === undefined ? [] : [JSON.stringify(payment)]))
      expect(payments).toHaveLength(2)
      expect(payments[1]).toBe(payments[0])
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(amount)
    }).pipe(Effect.scoped)
  )

  it.effect(
    "a seller's false settlement claim is overruled by the ledger [S104, S215, S232]",
    () =>
      Effect.gen(function* () {
        const { agent, facilitator, paying, ref, seller } = yield* PayWorld
        seller.behaviour = {}
        const honest = yield* pay(yield* paying(), ref, args())
        const older = honest.body["receipt"].transaction
        const lies: ReadonlyArray<readonly [lie: string, misfit: string, (settled: Json) => Json]> = [
          ["an older payment's transaction", "transaction", (settled) => ({ ...settled, transaction: older })],
          ["a transaction that is none", "transaction", (settled) => ({ ...settled, transaction: "f".repeat(64) })],
          ["no transaction", "transaction", (settled) => ({ ...settled, transaction: "" })],
          ["another payer", "payer", (settled) => ({ ...settled, payer: seller.payTo })],
          ["another network", "network", (settled) => ({ ...settled, network: "ledger:pubnet" })],
          ["another amount", "amount", (settled) => ({ ...settled, amount: "1" })],
          ["a success in words", "success", () => ({ success: "true" })]
        ]
        const before = yield* facilitator.balance(agent.publicKey())
        for (const [lie, misfit, change] of lies) {
          const client = yield* paying([day(2_000n), soon])
          seller.behaviour = { paid: () => saying(change(seller.settlements.at(-1)!)) }
          const { body } = yield* pay(client, ref, args())
          expect({ lie, ...body }).toMatchObject({
            lie,
            ...content,
            receipt: {
              status: "settled",
              transaction: seller.settlements.at(-1)!["transaction"],
              settledAmount: amount.toString(),
              sellerReceiptFaults: expect.arrayContaining([misfit])
            }
          })
          expect((yield* pay(client, ref, args())).body["code"]).toBe("BUDGET_EXCEEDED")
        }
        expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(amount * BigInt(lies.length))
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect("a seller's claimed settlement without one on the ledger is not believed [S215]", () =>
    Effect.gen(function* () {
      const { paying, ref, seller } = yield* PayWorld
      const client = yield* paying([soon])
      seller.behaviour = {
        settle: (body) =>
          Promise.resolve({
            success: true,
            transaction: "a".repeat(64),
            network: "ledger:testnet",
            payer: body["paymentPayload"].accepted.payTo
          })
      }
      expect((yield* pay(client, ref, args())).body).toMatchObject({
        code: "SETTLEMENT_UNKNOWN",
        details: { contentKept: true }
      })
      seller.behaviour = {}
    }).pipe(Effect.scoped)
  )

  it.effect("a settled payment that the seller calls rejected is delivered later [S104, S231]", () =>
    Effect.gen(function* () {
      const { paying, ref, seller } = yield* PayWorld
      const client = yield* paying([day(2_000n)])
      seller.behaviour = {
        paid: () => ({
          ...content,
          isError: true,
          _meta: {
            "x402/payment-response": {
              success: false,
              transaction: "",
              network: "ledger:testnet",
              errorReason: "invalid_ledger_auth_expired"
            }
          }
        })
      }
      const own = args()
      const calls = seller.calls.length
      expect((yield* pay(client, ref, own)).body).toMatchObject({
        code: "PAYMENT_REJECTED",
        retryable: false,
        details: { reason: "invalid_ledger_auth_expired", authorizedUntilLedger: expect.any(Number) }
      })
      expect((yield* pay(client, ref, args())).body["code"]).toBe("BUDGET_EXCEEDED")
      seller.behaviour = {}
      expect((yield* pay(client, ref, own)).body).toMatchObject({
        structuredContent: { sum: own.a + own.b },
        receipt: { status: "settled" }
      })
      const payments = seller.calls.slice(calls).flatMap(({ payment }) => payment ?? [])
      expect(new Set(payments.map((payment) => JSON.stringify(payment))).size).toBe(1)
    }).pipe(Effect.scoped)
  )

  it.effect("a seller that requests payment again fails with PAYMENT_REQUIRED after one payment [S213, S229]", () =>
    Effect.gen(function* () {
      const { paying, ref, seller } = yield* PayWorld
      const client = yield* paying([day(4_000n)])
      const again = {
        x402Version: 2,
        error: "insufficient_funds",
        resource: { url: seller.url },
        accepts: [seller.terms()]
      }
      seller.behaviour = {
        paid: () => ({
          isError: true,
          structuredContent: again,
          content: [{ type: "text", text: JSON.stringify(again) }]
        })
      }
      const calls = seller.calls.length
      expect((yield* pay(client, ref, args())).body).toMatchObject({
        code: "PAYMENT_REQUIRED",
        retryable: true,
        details: { reason: "insufficient_funds" }
      })
      expect(seller.calls.slice(calls).filter(({ payment }) => payment !== undefined)).toHaveLength(1)
      seller.behaviour = {}
    }).pipe(Effect.scoped)
  )

  it.effect(
    "a payment reported as under way, or unanswered in time, stays unknown [S104, S232, S233]",
    () =>
      Effect.gen(function* () {
        const { paying, ref, seller } = yield* PayWorld
        const client = yield* paying(["network_security.paid_call_timeout_ms=1000"])
        for (const errorReason of [
          "settlement_pending",
          "settle_ledger_transaction_status_unknown",
          "settle_stellar_transaction_status_unknown"
        ]) {
          const said = { success: false, network: "stellar:testnet", errorReason, transaction: "b".repeat(64) }
          const paid = () => ({ ...content, isError: true, _meta: { "x402/payment-response": said } })
          // The ledger shows nothing, so the answer has the transaction that the seller named.
          seller.behaviour = { settle: () => Promise.resolve(said), paid }
          const unpaid = (yield* pay(client, ref, args())).body
          expect(unpaid).toMatchObject({ code: "SETTLEMENT_UNKNOWN", details: { transaction: said.transaction } })
          expect(unpaid["details"].paid).toBeUndefined()
          // The ledger shows the payment: the transaction is its own.
          seller.behaviour = { paid }
          const shown = (yield* pay(client, ref, args())).body
          expect(shown).toMatchObject({ code: "SETTLEMENT_UNKNOWN", details: { paid: true } })
          expect(shown["details"].transaction).not.toBe(said.transaction)
        }
        seller.behaviour = { paid: () => new Promise(() => undefined) }
        expect((yield* pay(client, ref, args())).body["code"]).toBe("SETTLEMENT_UNKNOWN")
        seller.behaviour = {}
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect(
    "a response lost before a restart is delivered for the same payment [S104, S232]",
    () =>
      Effect.gen(function* () {
        const { agent, facilitator, paying, ref, seller } = yield* PayWorld
        const folder = mkdtempSync(join(tmpdir(), "tollkeeper-budget-"))
        const own = args()
        const before = yield* facilitator.balance(agent.publicKey())
        seller.behaviour = loses
        const calls = seller.calls.length
        const first = yield* Effect.scoped(
          Effect.flatMap(paying(["budget.store=file"], undefined, folder), (client) => pay(client, ref, own))
        )
        expect(first.body["code"]).toBe("SETTLEMENT_UNKNOWN")
        seller.behaviour = {}
        const second = yield* Effect.scoped(
          Effect.flatMap(paying(["budget.store=file"], undefined, folder), (client) => pay(client, ref, own))
        )
        expect(second.body).toMatchObject({
          structuredContent: { sum: own.a + own.b },
          receipt: { status: "settled", paymentIdentifier: first.body["details"].paymentIdentifier }
        })
        const payments = seller.calls.slice(calls).flatMap(({ payment }) => payment ?? [])
        expect(new Set(payments.map((payment) => JSON.stringify(payment))).size).toBe(1)
        expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(amount)
        expect(JSON.parse(readFileSync(join(folder, "tools", "reservations.json"), "utf8"))).toMatchObject([
          { state: "spent" }
        ])
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect("a canceled call's payment continues, and a repeated call gets the content [S104, S215]", () =>
    Effect.gen(function* () {
      const { paying, ref, seller } = yield* PayWorld
      const folder = mkdtempSync(join(tmpdir(), "tollkeeper-budget-"))
      const client = yield* paying(["budget.store=file"], undefined, folder)
      const own = args()
      let finish: (() => void) | undefined
      const arrived = new Promise<void>((resolve) => {
        seller.behaviour = {
          paid: (result) =>
            new Promise((done) => {
              finish = () => done(result)
              resolve()
            })
        }
      })
      const cancel = new AbortController()
      const called = client
        .callTool({ name: "x402_call_resource", arguments: { ref, arguments: own } }, undefined, {
          signal: cancel.signal
        })
        .catch(() => "cancelled")
      yield* Effect.promise(() => arrived)
      cancel.abort()
      expect(yield* Effect.promise(() => called)).toBe("cancelled")
      yield* Effect.sleep("200 millis")
      finish!()
      seller.behaviour = {}
      const state = Effect.sync(
        () => JSON.parse(readFileSync(join(folder, "tools", "reservations.json"), "utf8"))[0].state as string
      )
      expect(yield* eventually(state, (now) => now !== "signed")).toBe("spent")
      const calls = seller.calls.length
      expect((yield* pay(client, ref, own)).body).toMatchObject({
        structuredContent: { sum: own.a + own.b },
        receipt: { status: "settled" }
      })
      expect(seller.calls.length).toBe(calls)
      // Another request of the session acknowledges the answer.
      yield* call(client, "x402_search_resources", {})
      expect(yield* eventually(state, (now) => now !== "spent")).toBe("acknowledged")
    }).pipe(Effect.scoped)
  )
})
