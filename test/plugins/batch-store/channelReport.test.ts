// The operators' report of channels: the store's, and the channels in use of sellers with their own store, by the
// ledger's last state, started withdrawals first, and as lines of `tollkeeper batch`.
import { expect, layer } from "@effect/vitest"
import { Console, Context, Effect, Layer } from "effect"
import { Command } from "effect/cli"
import { NodeServices } from "@effect/platform-node"
import { SqlClient } from "effect/sql"
import { describe } from "vitest"
import { Network } from "../../../kernel/config/Network.ts"
import { pageOfChannels, reportChannels } from "../../../plugins/batch-store/channelReport.ts"
import { StoredChannels } from "../../../plugins/batch-store/StoredChannels.ts"
import { KnownChannels } from "../../../plugins/x402-batch/contract.ts"
import { batch } from "../../../runtime/commands/batch.ts"
import { Within } from "../../../runtime/commands/CommandTarget.ts"
import { type DatabaseKind, databaseKinds, databaseLayer } from "../../support/databases.ts"

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
const network = Layer.succeed(Network, {
  id: "ledger:testnet",
  assets: new Map([[token, { contract: token, symbol: "USDC", decimals: 7, paymentMax: 1n }]])
} as never)

const services = (kind: DatabaseKind) =>
  Layer.mergeAll(StoredChannels.layer, KnownChannels.layer, network).pipe(
    Layer.provideMerge(databaseLayer(kind, ["kernel", "batch-store"]))
  )

const idOf = (number: number) => number.toString(16).padStart(64, "0")

describe.each(databaseKinds)("the report of channels on %s", (kind) =>
  layer(services(kind), { timeout: 60_000 })((it) => {
    it.effect("has stored and used channels, by the newest reading, withdrawals first", () =>
      Effect.gen(function* () {
        const channels = yield* StoredChannels
        const place = { principal: "key:shop", network: "ledger:testnet" }
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
        const seen = { balance: 1_000n, totalClaimed: 40n, withdrawRequestedAt: 0, refundNonce: 0n }
        const known = [
          { channelId: idOf(2), config: channelConfig, state: { ...seen, withdrawRequestedAt: 1_000_000 } },
          { channelId: idOf(3), config: channelConfig, state: { ...seen, balance: 50n } }
        ]
        ;(yield* KnownChannels).readBy(
          () => known,
          () => Effect.succeed(0n),
          (channelId) => known.find((one) => one.channelId === channelId)?.state
        )
        const { items, more } = yield* reportChannels
        expect(more).toBe(false)
        expect(
          items.map(({ channel_id, charged, claimed, held, principal, withdrawal_ends_at }) => [
            Number(channel_id),
            principal,
            held,
            charged,
            claimed,
            withdrawal_ends_at
          ])
        ).toEqual([
          [2, "key:shop", "960", "70", "40", "1970-01-12T14:01:40.000Z"],
          [1, "key:shop", "1000", "70", "0", null],
          [3, null, "10", null, "40", null]
        ])
        expect(items[0]).toMatchObject({ payer: account, pay_to: account, asset_symbol: "USDC", asset_decimals: 7 })
      })
    )

    it.effect("is narrowed, and paged by cursor with each channel once", () =>
      Effect.gen(function* () {
        const report = yield* reportChannels
        const kept = (filter: Parameters<typeof pageOfChannels>[1]) =>
          pageOfChannels(report, filter, { limit: 10 }).items.map(({ channel_id }) => Number(channel_id))
        expect(kept({})).toEqual([2, 1, 3])
        expect(kept({ state: "withdrawing" })).toEqual([2])
        expect(kept({ state: "open" })).toEqual([1, 3])
        expect(kept({ key: "shop", payer: account, asset: token })).toEqual([2, 1])
        expect(kept({ payTo: token })).toEqual([])
        const paged: Array<number> = []
        let cursor: string | null | undefined = undefined
        do {
          const page = pageOfChannels(report, {}, { limit: 1, ...(cursor === undefined ? {} : { cursor }) })
          paged.push(...page.items.map(({ channel_id }) => Number(channel_id)))
          expect(page.pagination.total).toBe(3)
          cursor = page.pagination.cursor
        } while (cursor !== null)
        expect(paged).toEqual([2, 1, 3])
      })
    )

    it.effect("takes any delay that a seller stored", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`update batch_store_channels set withdraw_delay = 9000000000000000, withdraw_requested_at = 1
        where channel_id = ${idOf(1)}`
        const { items } = yield* reportChannels
        expect(items.find(({ channel_id }) => channel_id === idOf(1))!.withdrawal_ends_at).toMatch(/^\+275760-/)
        yield* sql`update batch_store_channels set withdraw_delay = 900, withdraw_requested_at = 0`
      })
    )

    it.effect("is the answer of `tollkeeper batch` within a running facilitator", () =>
      Effect.gen(function* () {
        const lines: Array<string> = []
        const outer = yield* Console.Console
        const around = yield* Effect.context<KnownChannels | Network | SqlClient.SqlClient>()
        const running = Context.pick(KnownChannels, Network, SqlClient.SqlClient)(around)
        yield* Command.runWith(Command.make("tollkeeper").pipe(Command.withSubcommands([batch])), { version: "0" })([
          "batch"
        ]).pipe(
          Effect.provideService(Within, { services: running as unknown as Context.Context<never>, folder: "" }),
          Effect.provide(NodeServices.layer),
          Effect.provideService(Console.Console, { ...outer, log: (line: unknown) => void lines.push(String(line)) })
        )
        const text = lines.join("\n")
        expect(text).toContain("key:shop  USDC  960 held  70 charged  40 claimed")
        expect(text).toContain("withdrawal ends 1970-01-12T14:01:40.000Z")
        expect(text).toContain("its own store  USDC  10 held  40 claimed")
        expect(text).toContain("3 channels, 1 with a started withdrawal")
      })
    )
  })
)
