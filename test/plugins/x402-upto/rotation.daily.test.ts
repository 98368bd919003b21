import { assert, describe, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { startUpto } from "./world.ts"

describe("a rotated sponsor", () => {
  it.live(
    "a rotated sponsor still authorizes earlier upto signatures and pays nothing",
    () =>
      Effect.gen(function* () {
        const [before, after] = [Keypair.random(), Keypair.random()]
        const old = yield* startUpto({
          channels: 1,
          closeMillis: 1_000,
          environment: { SPONSOR_SECRET: before.secret() }
        })
        const { payTo, payer } = yield* old.parties(5_000n)
        const lasting = { payer, payTo, maxTimeoutSeconds: 300 }
        const [first, second] = [yield* old.upto(lasting), yield* old.upto(lasting)]
        const startAs = (secret: string) =>
          startUpto({
            channels: 1,
            ledgerUrl: old.ledgerUrl,
            set: ["plugins=[x402-exact, x402-upto]"],
            environment: { SPONSOR_SECRET: secret }
          })
        const rotated = yield* startAs(`${after.secret()},${before.secret()}`)
        assert.strictEqual(rotated.sponsor, after.publicKey())
        assert.strictEqual((yield* rotated.verify(first.verifyBody)).json.isValid, true)
        const settled = yield* rotated.settle(first.settleBody(400n))
        assert.strictEqual(settled.json.success, true)
        const found = yield* Effect.promise(() => rotated.rpc("getTransaction", { hash: settled.json.transaction }))
        assert.strictEqual(found.status, "SUCCESS")
        const [row] = (yield* rotated.sql`select sponsor from kernel_settlements`) as any
        assert.strictEqual(row.sponsor, after.publicKey())

        const forgotten = yield* startAs(after.secret())
        const refused = yield* forgotten.settle(second.settleBody(400n))
        assert.strictEqual(refused.json.errorReason, "invalid_upto_ledger_payload_wrong_facilitator")
        assert.strictEqual(yield* rotated.balance(payTo), 400n)
      }).pipe(Effect.scoped) as Effect.Effect<void>,
    240_000
  )
})
