// Verify of an authorization with an ended settlement, on each database of the run: invalid, even if a simulation would
// succeed. `resend.daily.test.ts` tests undelivered successes.
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Context, Effect, Layer } from "effect"
import { describe } from "vitest"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { TxCode } from "../../../plugins/ledger-local/transaction/Wire.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"

const price = 10_000n
const identified = (id: string) => ({ extensions: { "payment-identifier": { info: { required: false, id } } } })

const settle = Effect.fnUntraced(function* (facilitator: Facilitator, body: unknown) {
  while (true) {
    const answer = yield* facilitator.settle(body)
    if (answer.json.errorReason !== "settle_ledger_transaction_status_unknown") return answer
  }
})

const world = Effect.fnUntraced(function* (facilitator: Facilitator) {
  const payer = yield* facilitator.account()
  const payTo = (yield* facilitator.account(0n)).publicKey()
  return {
    payer,
    pay: (extra: object = {}) => facilitator.payment({ payer, payTo, amount: price, maxTimeoutSeconds: 300, ...extra })
  }
})

describe.each(databaseKinds)("verify on %s", (database) => {
  it.live(
    "verify of a settled authorization is invalid, even with lagging nodes [S91, S96]",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ database })
        const { payer, pay } = yield* world(facilitator)
        const { body } = yield* pay()
        expect((yield* facilitator.verify(body)).json.isValid).toBe(true)
        expect((yield* settle(facilitator, body)).json.success).toBe(true)
        // Simulations by a node that has not seen the settlement yet.
        yield* facilitator.ledger.setFaults([
          { onRpc: (method) => (method === "simulateTransaction" ? { kind: "stale", ledgers: 100 } : undefined) }
        ])
        const again = yield* facilitator.verify(body)
        expect(again.json).toMatchObject({
          isValid: false,
          invalidReason: "settle_ledger_already_settled",
          payer: payer.publicKey()
        })
        // The same authorization in other bytes around it.
        const changed: any = structuredClone(body)
        changed.paymentPayload.resource = { url: "https://elsewhere.example/" }
        expect((yield* facilitator.verify(changed)).json.isValid).toBe(false)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "verify after a failed settlement is invalid, even if unspent [S91]",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ database })
        const { payer, pay } = yield* world(facilitator)
        const { body } = yield* pay()
        // The network refuses the transaction permanently, so that it is cancelled: nothing moved.
        yield* facilitator.ledger.setFaults([{ onSend: ({ isSoroban }) => (isSoroban ? TxCode.malformed : undefined) }])
        const failed = yield* settle(facilitator, body)
        expect(failed.json.errorReason).toBe("settle_ledger_transaction_failed")
        yield* facilitator.ledger.setFaults([])
        expect((yield* facilitator.verify(body)).json).toMatchObject({
          isValid: false,
          invalidReason: "settle_ledger_transaction_failed",
          invalidMessage: failed.json.errorMessage,
          payer: payer.publicKey()
        })
        expect((yield* facilitator.verify((yield* pay()).body)).json.isValid).toBe(true)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "verify of an identifier's ended payment is invalid on every replica [S91, S93]",
    () =>
      Effect.gen(function* () {
        const source = yield* Layer.build(sourceLayer(database))
        const opened = yield* Context.get(source, DatabaseSource).open
        const shared = {
          database: Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) }),
          environment: { SPONSOR_SECRET: Keypair.random().secret() }
        }
        const first = yield* startFacilitator(shared)
        const { pay } = yield* world(first)
        const { body } = yield* pay(identified("an-end-of-another-replica"))
        yield* first.ledger.setFaults([{ onSend: ({ isSoroban }) => (isSoroban ? TxCode.malformed : undefined) }])
        expect((yield* settle(first, body)).json.errorReason).toBe("settle_ledger_transaction_failed")
        yield* first.ledger.setFaults([])
        const second = yield* startFacilitator({ ...shared, ledgerUrl: first.ledgerUrl })
        const ended = { isValid: false, invalidReason: "settle_ledger_transaction_failed" }
        expect((yield* second.verify(body)).json).toMatchObject(ended)
        // A cached outcome applies to the authorization even without its identifier.
        const bare: any = structuredClone(body)
        delete bare.paymentPayload.extensions
        expect((yield* second.verify(bare)).json).toMatchObject(ended)
      }).pipe(Effect.scoped),
    240_000
  )
})
