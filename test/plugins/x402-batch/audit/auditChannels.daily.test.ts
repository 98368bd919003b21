// The channels' audit over a facilitator that worked, with another one on the same contract. Over the same records with
// one change, it reports that change.
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Context, Duration, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { remoteAuthorizer, remoteChannels } from "../../../../examples/batch/remoteChannels.ts"
import { readLedger } from "../../../../kernel/audit/readLedger.ts"
import { Network } from "../../../../kernel/config/Network.ts"
import {
  auditChannels,
  readRecordedChannels,
  type RecordedChannels
} from "../../../../plugins/x402-batch/audit/auditChannels.ts"
import * as NodeCrypto from "../../../../runtime/platform/nodeCrypto.ts"
import * as NodeHttpCalls from "../../../../runtime/platform/nodeHttpCalls.ts"
import { testnetUsdc } from "../../../../runtime/redteam/buyer.ts"
import { databaseKinds } from "../../../support/databases.ts"
import { type BatchFacilitator, startBatch } from "../world.ts"

const apiKey = "shop-secret-0123456789"
const network = "ledger:testnet"
const environment = {
  FACILITATOR_API_KEYS: `shop:${apiKey}`,
  BATCH_AUTHORIZER_SECRET: "a secret for the authorizers of this test"
}

/** The audit of a facilitator's channels, over the records that `change` returns. */
const auditOf = (
  facilitator: BatchFacilitator,
  change: (recorded: RecordedChannels) => RecordedChannels = (one) => one
) =>
  Effect.gen(function* () {
    const recorded = change(yield* readRecordedChannels)
    const endpoint = { url: facilitator.ledgerUrl, timeout: Duration.seconds(5) }
    const view = yield* readLedger({
      ...endpoint,
      passphrase: "Test SDF Network ; September 2015",
      sinceLedger: 0,
      accounts: new Set(),
      contracts: recorded.contracts
    })
    return yield* auditChannels(recorded, view, endpoint)
  }).pipe(
    Effect.provideService(SqlClient.SqlClient, facilitator.sql),
    Effect.provideService(Network, Context.getUnsafe(facilitator.services, Network as never) as Network["Service"]),
    Effect.provide(Layer.mergeAll(NodeServices.layer, NodeCrypto.layer, NodeHttpCalls.layer))
  )

describe.each(databaseKinds)("the audit of channels on %s", (database) => {
  it.live(
    "sums what the contract holds, and names what a record says otherwise",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startBatch({ database, environment })
        const other = yield* startBatch({
          ledgerUrl: facilitator.ledgerUrl,
          set: [
            "plugins=[x402-exact,x402-batch]",
            `networks.ledger:testnet.friendbot_url=${facilitator.ledgerUrl}/friendbot`,
            `networks.ledger:testnet.batch_contract=${facilitator.contract}`
          ]
        })
        const { batch } = facilitator
        const settled = Effect.fnUntraced(function* (by: BatchFacilitator, body: object) {
          const headers = { "content-type": "application/json", authorization: `Bearer ${apiKey}` }
          const { json, text } = yield* by.ask("/settle", { method: "POST", headers, body: JSON.stringify(body) })
          assert.strictEqual(json.success, true, text)
        })
        const seller = yield* facilitator.seller
        const first = yield* facilitator.account(1_000n)
        const channel = batch.channel(first, seller.payTo, seller.authorizer)
        const deposit = yield* Effect.promise(() => batch.deposit(channel, 1_000n, 1n))
        yield* settled(facilitator, batch.body(channel, deposit, 1n))
        // A top-up that another facilitator settles, a claim, its settle, and a refund of a part.
        const payer = yield* facilitator.account(500n)
        const topUp = yield* Effect.promise(() => batch.deposit(channel, 500n, 1n, payer))
        yield* settled(other, batch.body(channel, topUp, 1n))
        const claim = batch.claim([{ channel, max: 300n, total: 300n }])
        yield* settled(facilitator, batch.body(channel, claim, 0n))
        yield* settled(facilitator, batch.body(channel, batch.settle(seller.payTo), 0n))
        yield* settled(facilitator, batch.body(channel, batch.refund(channel, 400n, 200n, 0n), 0n))

        const options = { facilitator: facilitator.url, apiKey, network }
        const { address } = yield* Effect.promise(() => remoteAuthorizer(options))
        const buyer = yield* facilitator.account(70n)
        const kept = batch.channel(buyer, seller.payTo, Keypair.random(), { receiverAuthorizer: address })
        const opening = yield* Effect.promise(() => batch.deposit(kept, 70n, 1n))
        yield* settled(facilitator, batch.body(kept, opening, 1n))
        yield* Effect.promise(async () => {
          const stored = remoteChannels(options)
          const pendingId = "request-0123456789"
          const voucher = batch.voucher(kept, 20n)
          const state = { balance: "70", totalClaimed: "0", withdrawRequestedAt: 0, refundNonce: 0 }
          const asked = { pendingId, channelConfig: kept.config, voucher, price: "20", state, ttlMillis: 60_000 }
          assert.strictEqual((await stored.reserve(asked)).status, "reserved")
          const charge = { channelId: kept.channelId, pendingId, amount: "20", voucher }
          assert.strictEqual((await stored.charge(charge)).status, "charged")
        })

        // 1,000 + 500 deposited, 400 claimed, of these 300 paid out, 200 refunded; and 70 in the other channel.
        assert.deepStrictEqual(yield* auditOf(facilitator), {
          channels: 2,
          older: 0,
          ofOthers: 1,
          changed: 0,
          archived: 0,
          tokens: [{ contract: facilitator.contract, token: testnetUsdc, held: "970", unsettled: "100", has: "1070" }],
          mismatches: []
        })
        const rulesOf = (change: (recorded: RecordedChannels) => RecordedChannels) =>
          Effect.map(auditOf(facilitator, change), ({ mismatches }) => mismatches.map(({ rule }) => rule))
        const calls =
          (
            name: string,
            change: (one: RecordedChannels["calls"][number]) => Partial<RecordedChannels["calls"][number]>
          ) =>
          (recorded: RecordedChannels): RecordedChannels => ({
            ...recorded,
            calls: recorded.calls.map((one) => (one.functionName === name ? { ...one, ...change(one) } : one))
          })
        const more = ({ moved }: { readonly moved: bigint }) => ({ moved: moved + 1n })
        assert.deepStrictEqual(yield* rulesOf(calls("deposit", more)), [
          "channel event",
          "channel event",
          "channel balance",
          "channel balance"
        ])
        assert.deepStrictEqual(yield* rulesOf(calls("refund", more)), ["channel event", "channel balance"])
        assert.deepStrictEqual(yield* rulesOf(calls("settle", more)), ["channel event"])
        const claiming = calls("claim", ({ claims }) => ({
          claims: claims.map((one) => ({ ...one, totalClaimed: 401n }))
        }))
        assert.deepStrictEqual(yield* rulesOf(claiming), ["channel claim"])
        yield* facilitator.sql`update batch_store_channels set total_claimed = 1`
        assert.deepStrictEqual(yield* rulesOf((one) => one), ["channel store"])
        yield* facilitator.sql`update batch_store_channels set total_claimed = 0, charged = 9`
        // The seller claims independently of the store, with the store's key.
        const byStore = { ...kept, receiverAuthorizer: Keypair.random() }
        const payload = {
          ...batch.claim([{ channel: byStore, max: 20n, total: 20n }]),
          claimAuthorizerSignature: undefined
        }
        yield* settled(facilitator, batch.body(kept, payload, 0n))
        assert.deepStrictEqual(yield* rulesOf((one) => one), ["channel charges"])
      }).pipe(Effect.scoped) as Effect.Effect<void>,
    240_000
  )
})
