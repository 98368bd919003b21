// Channel report for operators. It combines the store's channels with the channels that a running process uses,
// including those of sellers with their own store. State that the process read from the ledger takes precedence over
// the store's state.
import { Context, Effect, Option, Schema } from "effect"
import { max as larger } from "effect/BigInt"
import { SqlClient } from "effect/sql"
import { Network } from "../../kernel/config/Network.ts"
import {
  columns,
  computed,
  float,
  moment,
  text as textColumn,
  units as unitsColumn
} from "../../kernel/database/table.ts"
import { cursorFields, text, time, units } from "../../kernel/http/wireSchema.ts"
import { type KnownChannel, KnownChannels } from "../x402-batch/contract.ts"

export const reportMax = 1_000

export const ReportedChannel = Schema.Struct({
  channel_id: text("32 bytes, hex."),
  principal: Schema.NullOr(text("The seller's key; null for a seller with its own store.")),
  payer: text("Address of the payer."),
  pay_to: text("Address of the receiver."),
  asset: text("The token's contract."),
  asset_symbol: Schema.NullOr(Schema.String),
  asset_decimals: Schema.NullOr(Schema.Int),
  held: units("Deposited, and not claimed, refunded or withdrawn; atomic units."),
  charged: Schema.NullOr(units("Total charged, according to the seller's record in the store.")),
  claimed: units("Total claimed."),
  lost: Schema.NullOr(units("Charged, not claimed in time, and withdrawn by the payer.")),
  opened_at: Schema.NullOr(time("When the store first saw the channel.")),
  last_request_at: Schema.NullOr(time("The last request that reserved or charged it.")),
  withdrawal_ends_at: Schema.NullOr(time("When a started withdrawal may end: claims are possible until then."))
}).annotate({ identifier: "BatchReportedChannel" })
export type ReportedChannel = typeof ReportedChannel.Type

export const ChannelReport = Schema.Struct({
  items: Schema.Array(ReportedChannel),
  more: Schema.Boolean.annotate({ description: "Whether there are more channels than in the report." }),
  pagination: Schema.Struct({
    ...cursorFields,
    total: Schema.Int.annotate({ description: "Matches among the channels of the report." })
  })
}).annotate({ identifier: "BatchChannelReport" })

const channels = columns({
  channelId: textColumn,
  principal: textColumn,
  payer: computed("config->>'payer'", textColumn),
  payTo: computed("receiver", textColumn),
  asset: computed("token", textColumn),
  withdrawDelay: { ...float, cast: "float8" },
  balance: unitsColumn,
  charged: unitsColumn,
  claimed: computed("total_claimed", unitsColumn),
  lost: unitsColumn,
  withdrawRequestedAt: { ...float, cast: "float8" },
  openedAt: moment,
  requestedAt: moment
})

/** The latest moment that a Date has, ms: a seller may store any delay. */
const momentMax = 8_640_000_000_000_000

const endOf = (requestedAt: number, delay: number): string | null =>
  requestedAt === 0 ? null : new Date(Math.min((requestedAt + delay) * 1_000, momentMax)).toISOString()

/** Started withdrawals first, ordered by their end; then channels by the amount they hold, largest first. */
const urgency = (a: ReportedChannel, b: ReportedChannel): number => {
  const [first, second] = [a.withdrawal_ends_at, b.withdrawal_ends_at]
  if (first !== second) return first === null ? 1 : second === null ? -1 : first < second ? -1 : 1
  const [held, other] = [BigInt(a.held), BigInt(b.held)]
  return held === other ? (a.channel_id < b.channel_id ? -1 : 1) : held > other ? -1 : 1
}

/** Filters of the report; an absent member does not filter. */
export interface ChannelFilter {
  readonly payer?: string | undefined
  readonly payTo?: string | undefined
  readonly key?: string | undefined
  readonly asset?: string | undefined
  /** With a started withdrawal, or without one. */
  readonly state?: string | undefined
}

/** A page of it; the cursor is the place of the last channel of the page before: `END_HELD_ID`. */
export interface ChannelPage {
  readonly limit: number
  readonly cursor?: string | undefined
}

const cursorOf = ({ channel_id, held, withdrawal_ends_at }: ReportedChannel): string =>
  `${withdrawal_ends_at ?? ""}_${held}_${channel_id}`

const isBehind = (one: ReportedChannel, cursor: string | undefined): boolean => {
  if (cursor === undefined) return true
  const [ends = "", held = "0", channel_id = ""] = cursor.split("_")
  return urgency({ ...one, withdrawal_ends_at: ends === "" ? null : ends, held, channel_id }, one) < 0
}

const keeps =
  ({ asset, key, payTo, payer, state }: ChannelFilter) =>
  (one: ReportedChannel): boolean =>
    (payer === undefined || one.payer === payer) &&
    (payTo === undefined || one.pay_to === payTo) &&
    (asset === undefined || one.asset === asset) &&
    (key === undefined || one.principal === key || one.principal === `key:${key}`) &&
    (state === undefined || (one.withdrawal_ends_at !== null) === (state === "withdrawing"))

/** A page of the report's channels, which are in the order of their urgency. */
export const pageOfChannels = (
  { items, more }: { readonly items: ReadonlyArray<ReportedChannel>; readonly more: boolean },
  filter: ChannelFilter,
  { cursor, limit }: ChannelPage
): typeof ChannelReport.Type => {
  const kept = items.filter(keeps(filter))
  const behind = kept.filter((one) => one.channel_id !== cursor?.slice(-64) && isBehind(one, cursor))
  const shown = behind.slice(0, limit)
  const last = behind.length > shown.length ? shown.at(-1) : undefined
  return {
    items: shown,
    more,
    pagination: { limit, cursor: last === undefined ? null : cursorOf(last), total: kept.length }
  }
}

/** Channels from the store. Empty if the store was never enabled; then only the process has channels. */
const readRows = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, network: string) {
  const [table] = yield* sql<{ isThere: boolean }>`select to_regclass('batch_store_channels') is not null as "isThere"`
  if (table?.isThere !== true) return []
  const rows = yield* sql`select ${sql.literal(channels.selected)}
    from batch_store_channels where network = ${network}
    order by withdraw_requested_at = 0, withdraw_requested_at + withdraw_delay, balance - total_claimed desc, channel_id
    limit ${reportMax + 1}`
  return rows.map(channels.decode)
})

/** Reads the report with two statements, and from this process's cache if it serves the scheme. */
export const reportChannels = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { assets, id } = yield* Network
  const known = Option.match(Context.getOption(yield* Effect.context<never>(), KnownChannels), {
    onNone: (): ReadonlyArray<KnownChannel> => [],
    onSome: (channels) => channels.all()
  })
  const rows = yield* readRows(sql, id)
  const denomination = (asset: string) => ({
    asset,
    asset_symbol: assets.get(asset)?.symbol ?? null,
    asset_decimals: assets.get(asset)?.decimals ?? null
  })
  const byId = new Map(known.map((one) => [one.channelId, one]))
  const stored = rows.map((row): ReportedChannel => {
    const seen = byId.get(row.channelId)?.state
    const claimed = larger(row.claimed, seen?.totalClaimed ?? 0n)
    return {
      channel_id: row.channelId,
      principal: row.principal,
      payer: row.payer,
      pay_to: row.payTo,
      ...denomination(row.asset),
      held: larger(0n, (seen?.balance ?? row.balance) - claimed).toString(),
      charged: row.charged.toString(),
      claimed: claimed.toString(),
      lost: row.lost.toString(),
      opened_at: row.openedAt.toISOString(),
      last_request_at: row.requestedAt.toISOString(),
      withdrawal_ends_at: endOf(seen?.withdrawRequestedAt ?? row.withdrawRequestedAt, row.withdrawDelay)
    }
  })
  const inStore = new Set(rows.map(({ channelId }) => channelId))
  const others = known.flatMap(({ channelId, config, state }): ReadonlyArray<ReportedChannel> =>
    inStore.has(channelId)
      ? []
      : [
          {
            channel_id: channelId,
            principal: null,
            payer: config.payer,
            pay_to: config.receiver,
            ...denomination(config.token),
            held: (state.balance - state.totalClaimed).toString(),
            charged: null,
            claimed: state.totalClaimed.toString(),
            lost: null,
            opened_at: null,
            last_request_at: null,
            withdrawal_ends_at: endOf(state.withdrawRequestedAt, config.withdrawDelay)
          }
        ]
  )
  const all = [...stored, ...others].sort(urgency)
  return { items: all.slice(0, reportMax), more: all.length > reportMax }
})
