// The watch for withdrawals while other requests fill the cache of channel states: each channel's record is compared
// with the state that its own reading showed. A stand-in for the facilitator reads into the real cache.
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Network } from "../../../kernel/config/Network.ts"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { Facilitator } from "../../../kernel/payment/Facilitator.ts"
import { Schemes } from "../../../kernel/payment/Scheme.ts"
import { Claims } from "../../../plugins/batch-store/Claims.ts"
import { StoredChannels } from "../../../plugins/batch-store/StoredChannels.ts"
import { watchWithdrawals } from "../../../plugins/batch-store/watchWithdrawals.ts"
import { KnownChannels } from "../../../plugins/x402-batch/contract.ts"
import { StateCache } from "../../../plugins/x402-batch/StateCache.ts"
import { layer as cryptoLayer } from "../../../runtime/platform/nodeCrypto.ts"
import { databaseLayer } from "../../support/databases.ts"

const account = "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ"
const token = "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA"
const channelConfig = {
  payer: account,
  payerAuthorizer: account,
  receiver: account,
  receiverAuthorizer: account,
  token,
  withdrawDelay: 900,
  salt: "00".repeat(32)
}
const place = { principal: "key:shop", network: "ledger:testnet" }
const idOf = (number: number) => number.toString(16).padStart(64, "0")
const withdrawing = { balance: 1_000n, totalClaimed: 0n, withdrawRequestedAt: 1_000_000, refundNonce: 0n }
/** As many as the cache has entries. */
const floodSize = 20_000

const cache = new StateCache(token)
const readInto = (channelId: string) => cache.store({ channelId, ledger: 10, state: withdrawing, readMillis: 0 })
const facilitator = Layer.succeed(Facilitator, {
  verify: ({ payload }: any) =>
    Effect.sync(() => {
      const { channelId } = payload.voucher
      // The last channel of the page is read slowly: others fill the cache before its own reading.
      if (channelId === idOf(2)) for (let at = 0; at < floodSize; at++) readInto(idOf(1_000 + at))
      readInto(channelId)
      return { isValid: true, payer: account }
    })
} as never)

const services = Layer.mergeAll(StoredChannels.layer, Claims.layer, KnownChannels.layer, Schemes.layer).pipe(
  Layer.provideMerge(Facts.layer),
  Layer.provideMerge(Layer.mergeAll(Supervisor.layer, facilitator, cryptoLayer)),
  Layer.provideMerge(Layer.succeed(Network, { id: place.network, assets: new Map() } as never)),
  Layer.provideMerge(databaseLayer("pglite", ["kernel", "batch-store"]))
)

layer(services, { timeout: 60_000 })((it) => {
  it.effect("sees a withdrawal of a channel that the cache has evicted", () =>
    Effect.gen(function* () {
      const channels = yield* StoredChannels
      const sql = yield* SqlClient.SqlClient
      for (const number of [1, 2]) {
        const asked = {
          channelConfig,
          payment: `payment-${number}`.padEnd(16, "-"),
          price: "100",
          state: { balance: "1000", totalClaimed: "0", withdrawRequestedAt: 0, refundNonce: 0 },
          voucher: { channelId: idOf(number), maxClaimableAmount: "100", signature: "ab".repeat(64) }
        }
        yield* channels.reserve(place, asked, { ttlSeconds: 60, channelsMax: 9 })
        yield* channels.charge(place, { payment: asked.payment, channelId: idOf(number), amount: "70" })
      }
      const known = yield* KnownChannels
      known.readBy(
        () =>
          cache.all().flatMap(({ channelId, state }) => (state ? [{ channelId, config: channelConfig, state }] : [])),
        () => Effect.succeed(0n),
        (channelId) => cache.last(channelId)?.state
      )
      yield* yield* watchWithdrawals
      expect(cache.last(idOf(1))).toBeUndefined()
      const rows = yield* sql<{ readonly at: number }>`select withdraw_requested_at::float8 as at
        from batch_store_channels order by channel_id`
      expect(rows.map(({ at }) => at)).toEqual([1_000_000, 1_000_000])
    })
  )
})
