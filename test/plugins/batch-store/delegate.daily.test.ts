// A seller without a key of its own: its channels name the authorizer that the facilitator holds for its API key, and its
// claims and refunds come without a signature. No other caller is signed for.
import { assert, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { remoteAuthorizer } from "../../../examples/batch/remoteChannels.ts"
import { makeBatch } from "../../support/batchBuyer.ts"
import { startFacilitator } from "../../support/facilitator.ts"

const keys = { shop: "shop-secret-0123456789", other: "other-secret-0123456789" }
const environment = {
  FACILITATOR_API_KEYS: `shop:${keys.shop},other:${keys.other}`,
  BATCH_AUTHORIZER_SECRET: "a secret for the authorizers of this test"
}
const reason = (word: string) => `invalid_batch_settlement_ledger_${word}`

it.live(
  "claims and refunds for the key whose authorizer it holds, and for no other",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({ environment })
      const { kinds } = (yield* facilitator.ask("/supported", { headers: { authorization: `Bearer ${keys.shop}` } }))
        .json
      const kind = kinds.find(({ scheme }: { readonly scheme: string }) => scheme === "batch-settlement")
      const batch = makeBatch(facilitator.rpc, kind.extra.batchContract)
      const store = { facilitator: facilitator.url, apiKey: keys.shop, network: "stellar:testnet" }
      const { address } = yield* Effect.promise(() => remoteAuthorizer(store))
      const payTo = (yield* facilitator.account(0n)).publicKey()
      const payer = yield* facilitator.account(10_000n)
      // Its key is not here: what a test would sign with it is another's signature.
      const stranger = Keypair.random()
      const channel = batch.channel(payer, payTo, stranger, { receiverAuthorizer: address })
      const settle = (body: unknown, key?: string) =>
        Effect.map(
          facilitator.ask("/settle", {
            method: "POST",
            headers: {
              "content-type": "application/json",
              ...(key === undefined ? {} : { authorization: `Bearer ${key}` })
            },
            body: JSON.stringify(body)
          }),
          ({ json }) => json
        )
      const opening = yield* Effect.promise(() => batch.deposit(channel, 6_000n, 100n))
      assert.strictEqual((yield* settle(batch.body(channel, opening, 100n), keys.shop)).success, true)

      const claim = { ...batch.claim([{ channel, max: 200n, total: 150n }]), claimAuthorizerSignature: undefined }
      const claiming = batch.body(channel, claim, 0n)
      assert.strictEqual((yield* settle(claiming, keys.other)).errorReason, reason("authorizer_not_configured"))
      const claimed = yield* settle(claiming, keys.shop)
      assert.deepStrictEqual([claimed.success, claimed.errorReason], [true, undefined])
      // A signature that is there and wrong is not replaced.
      const wrong = batch.claim([{ channel, max: 300n, total: 250n }])
      const refusedClaim = yield* settle(batch.body(channel, wrong, 0n), keys.shop)
      assert.strictEqual(refusedClaim.errorReason, reason("authorizer_address_mismatch"))

      const refund = { ...batch.refund(channel, 150n, 5_850n, 0n), refundAuthorizerSignature: undefined }
      const refunding = batch.body(channel, { ...refund, claimAuthorizerSignature: undefined }, 100n)
      assert.strictEqual((yield* settle(refunding, keys.other)).errorReason, reason("authorizer_not_configured"))
      const refunded = yield* settle(refunding, keys.shop)
      assert.deepStrictEqual([refunded.success, refunded.amount], [true, "5850"], JSON.stringify(refunded))
      assert.strictEqual(yield* facilitator.balance(payer.publicKey()), 9_850n)
    }).pipe(Effect.scoped),
  240_000
)
