import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { databaseKinds } from "../../support/databases.ts"
import { startBatch } from "./world.ts"

describe("a batch-settlement channel", () => {
  it.live.each(databaseKinds)(
    "is deposited into, paid from by vouchers, claimed, settled and refunded on %s",
    (database) =>
      Effect.gen(function* () {
        const facilitator = yield* startBatch({ database })
        const { batch } = facilitator
        const seller = yield* facilitator.seller
        const payer = yield* facilitator.account(10_000n)
        const channel = batch.channel(payer, seller.payTo, seller.authorizer)
        const { channelId } = channel
        const opening = yield* Effect.promise(() => batch.deposit(channel, 6_000n, 100n))
        const body = batch.body(channel, opening, 100n)
        const verified = yield* facilitator.verify(body)
        assert.deepStrictEqual(verified.json, {
          isValid: true,
          payer: payer.publicKey(),
          extra: { channelId, balance: "0", totalClaimed: "0", withdrawRequestedAt: 0, refundNonce: "0" }
        })
        const settled = yield* facilitator.settle(body)
        assert.deepStrictEqual(
          [settled.json.success, settled.json.amount, settled.json.payer, settled.json.extra.channelState.balance],
          [true, "6000", payer.publicKey(), "6000"]
        )
        assert.deepStrictEqual([settled.json.asset, verified.json.asset], [channel.config.token, undefined])
        const members = ({ json }: { readonly json: object }) =>
          Object.keys(json)
            .filter((name) => name !== "extensions")
            .toSorted()
        assert.deepStrictEqual(
          members(settled),
          ["amount", "asset", "extra", "network", "payer", "success", "transaction"],
          settled.text
        )
        assert.strictEqual(yield* facilitator.balance(payer.publicKey()), 4_000n)

        const paid = yield* facilitator.verify(batch.body(channel, batch.pay(channel, 200n), 100n))
        const state = { channelId, balance: "6000", totalClaimed: "0", withdrawRequestedAt: 0, refundNonce: "0" }
        // A close time at or before that of the reading: signatures that name an earlier one have ended.
        const { asOf } = paid.json.extra
        assert.isTrue(Number.isSafeInteger(asOf) && asOf > 1_600_000_000)
        assert.deepStrictEqual(paid.json, { isValid: true, payer: payer.publicKey(), extra: { ...state, asOf } })
        const claims = [{ channel, max: 200n, total: 150n }]
        const claimed = yield* facilitator.settle(batch.body(channel, batch.claim(claims), 0n))
        // A claim moves nothing, and a seller's own calls name no payer.
        const own = ["amount", "network", "success", "transaction"]
        assert.deepStrictEqual([claimed.json.success, claimed.json.amount], [true, ""], claimed.text)
        assert.deepStrictEqual(members(claimed), own, claimed.text)
        const swept = yield* facilitator.settle(batch.body(channel, batch.settle(seller.payTo), 0n))
        assert.deepStrictEqual([swept.json.success, swept.json.amount], [true, "150"], swept.text)
        assert.deepStrictEqual(members(swept), own, swept.text)
        assert.strictEqual(yield* facilitator.balance(seller.payTo), 150n)

        const refund = batch.refund(channel, 200n, 5_800n, 0n)
        const refunded = yield* facilitator.settle(batch.body(channel, refund, 100n))
        assert.deepStrictEqual(
          [refunded.json.success, refunded.json.amount, refunded.json.payer, refunded.json.extra?.channelState],
          [
            true,
            "5800",
            payer.publicKey(),
            { channelId, balance: "200", totalClaimed: "200", withdrawRequestedAt: 0, refundNonce: "1" }
          ],
          refunded.text
        )
        assert.strictEqual(yield* facilitator.balance(payer.publicKey()), 9_800n)
      }).pipe(Effect.scoped)
  )

  it.live("is where the local profile says it is", () =>
    Effect.gen(function* () {
      const { localBatchContractOf } = yield* Effect.promise(
        () => import("../../../plugins/x402-batch-local/deploy.ts")
      )
      assert.strictEqual((yield* startBatch()).contract, localBatchContractOf("Test SDF Network ; September 2015"))
    }).pipe(Effect.scoped)
  )
})
