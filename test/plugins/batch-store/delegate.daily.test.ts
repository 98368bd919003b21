// A seller without its own key: its channels name the authorizer that the facilitator holds for its API key, and its
// claims and refunds arrive unsigned. The facilitator signs for no other caller.
import { assert, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { BatchClaims } from "../../../examples/batch/BatchClaims.ts"
import { BatchStellarServer } from "../../../examples/batch/BatchStellarServer.ts"
import { delegateAuthorizer, remoteAuthorizer } from "../../../examples/batch/remoteChannels.ts"
import { startBatchSeller } from "../../../examples/batch/startBatchSeller.ts"
import { pay, refund } from "../../../examples/client/prepared.mjs"
import { makeBatch } from "../../support/batchBuyer.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
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
      // The test does not have the authorizer's key, so it signs with another.
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
      // A wrong signature is not replaced.
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

it.live(
  "a seller with channels of its own and no key claims, settles and refunds by the facilitator's",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({ environment, set: ["prepare.public=true"] })
      const network = "stellar:testnet"
      const store = { facilitator: facilitator.url, apiKey: keys.shop, network }
      const receiver = (yield* facilitator.account(0n)).publicKey()
      const buyer = yield* facilitator.account(100_000n)
      const authorizer = yield* Effect.promise(() => delegateAuthorizer(store))
      const headers = { authorization: `Bearer ${keys.shop}` }
      const { kinds } = (yield* facilitator.ask("/supported", { headers })).json
      const { extra } = kinds.find((one: any) => one.scheme === "batch-settlement")
      assert.deepStrictEqual([extra.receiverAuthorizer, extra.delegatedRefund], [authorizer.address, true])
      // The store's own key is another one: it is lost with the database, this one is not.
      assert.notStrictEqual(authorizer.address, (yield* Effect.promise(() => remoteAuthorizer(store))).address)
      const other = yield* Effect.promise(() => delegateAuthorizer({ ...store, apiKey: keys.other }))
      assert.notStrictEqual(other.address, authorizer.address)
      const server = new BatchStellarServer({ receiver, authorizer, minDepositTimes: 1 })
      const options = { server, ...store, asset: testnetUsdc, price: 1_000n }
      const seller = yield* Effect.acquireRelease(
        Effect.promise(() => startBatchSeller(options)),
        (one) => Effect.promise(() => one.close())
      )
      const page = `${seller.url}/page`
      const required: any = yield* Effect.promise(() => fetch(page).then((answer) => answer.json()))
      const buying = {
        secret: buyer.secret(),
        facilitator: facilitator.url,
        maxAmount: 10_000n,
        batch: { contracts: [required.accepts[0].extra.batchContract], depositTimes: 5, channels: new Map() }
      }
      for (const _ of [1, 2]) {
        const { receipt } = yield* Effect.promise(() => pay(page, buying))
        assert.strictEqual(receipt?.success, true, JSON.stringify(receipt))
      }
      const claims = new BatchClaims({ ...store, server, token: testnetUsdc })
      yield* Effect.promise(() => claims.claim())
      yield* Effect.promise(() => claims.settle())
      assert.strictEqual(yield* facilitator.balance(receiver), 2_000n)
      const { receipt } = yield* Effect.promise(() => refund(page, buying))
      assert.deepStrictEqual([receipt?.success, receipt?.amount], [true, "3000"], JSON.stringify(receipt))
      assert.strictEqual(yield* facilitator.balance(buyer.publicKey()), 98_000n)
    }).pipe(Effect.scoped),
  240_000
)
