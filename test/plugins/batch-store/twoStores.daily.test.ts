// One channel and several stores: two facilitators with one secret, two sellers of one facilitator, a seller with a
// separate key. A channel names its store by its authorizer, and every other store refuses it.
import { assert, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { remoteAuthorizer, remoteChannels } from "../../../examples/batch/remoteChannels.ts"
import { databaseKinds } from "../../support/databases.ts"
import { startBatch } from "../x402-batch/world.ts"

const keys = { shop: "shop-secret-0123456789", other: "other-secret-0123456789" }
const environment = {
  FACILITATOR_API_KEYS: `shop:${keys.shop},other:${keys.other}`,
  BATCH_AUTHORIZER_SECRET: "one secret of both facilitators' authorizers"
}
const network = "ledger:testnet"
const [price, balance] = [100n, 1_000n]

for (const database of databaseKinds)
  it.live(
    `a channel is sold by its own store alone, on ${database}`,
    () =>
      Effect.gen(function* () {
        const first = yield* startBatch({
          database,
          environment,
          set: ["plugins=[ledger-local,x402-batch-local,x402-batch,batch-store]"]
        })
        const second = yield* startBatch({
          database,
          environment,
          ledgerUrl: first.ledgerUrl,
          set: ["plugins=[x402-batch,batch-store]", `networks.ledger:testnet.batch_contract=${first.contract}`]
        })
        const place = { facilitator: first.url, network, apiKey: keys.shop }
        const { address } = yield* Effect.promise(() => remoteAuthorizer(place))
        const payTo = Keypair.random().publicKey()
        const channelOf = (receiverAuthorizer: string) =>
          first.batch.channel(Keypair.random(), payTo, Keypair.random(), { receiverAuthorizer })
        /** The amount that a store sells on a channel, one call after the other. */
        const soldAt = (store: typeof place, channel: ReturnType<typeof channelOf>) =>
          Effect.promise(async () => {
            const stored = remoteChannels(store)
            const { channelId, config: channelConfig } = channel
            const state = { balance: String(balance), totalClaimed: "0", withdrawRequestedAt: 0, refundNonce: 0 }
            let sold = 0n
            try {
              for (; sold + price <= balance; sold += price) {
                const pendingId = `request-0123456789-${sold}`
                const voucher = first.batch.voucher(channel, sold + price)
                const asked = { pendingId, channelConfig, voucher, price: String(price), state, ttlMillis: 60_000 }
                const { status } = await stored.reserve(asked)
                const charge = { channelId, pendingId, amount: String(price), voucher }
                if (status !== "reserved" || (await stored.charge(charge)).status !== "charged") break
              }
            } catch (error) {
              return `${sold}: ${String(error)}`
            }
            return String(sold)
          })
        const channel = channelOf(address)
        assert.strictEqual(yield* soldAt(place, channel), String(balance))
        const refused = /^0: .*conflict.*not this store's key/
        assert.match(yield* soldAt({ ...place, facilitator: second.url }, channel), refused)
        assert.match(yield* soldAt({ ...place, apiKey: keys.other }, channel), refused)
        // A seller with its own key keeps its records itself: nothing shows two stores that it uses both.
        const own = channelOf(Keypair.random().publicKey())
        for (const { url } of [first, second]) assert.match(yield* soldAt({ ...place, facilitator: url }, own), refused)
        // Its key for channels that a seller keeps itself belongs to no store either.
        const headers = { authorization: `Bearer ${keys.shop}` }
        const { json } = yield* first.ask("/supported", { headers })
        const { receiverAuthorizer } = json.kinds[0].extra
        assert.notStrictEqual(receiverAuthorizer, address)
        assert.match(yield* soldAt(place, channelOf(receiverAuthorizer)), refused)
      }).pipe(Effect.scoped),
    120_000
  )
