// `tollkeeper batch`: the facilitator's payment channels: the balance, the charged and claimed amounts, the age, and
// the end of a withdrawal. Within a running facilitator, channels from sellers' own stores are included while they are
// in use; standalone, only the store's table is read.
import { Clock, Effect, Layer } from "effect"
import { Command } from "effect/cli"
import { Network } from "../../kernel/config/Network.ts"
import { administration, type ReportedChannel } from "../../plugins/batch-store/plugin.ts"
import { answer, type CommandTarget, databaseStatus, jsonFlag, placeFlags, tablesOf } from "./CommandTarget.ts"

const tablesAt = (place: CommandTarget) =>
  databaseStatus(Network.layer.pipe(Layer.provideMerge(tablesOf(place, "batch-store"))))

/** A span of time in its largest unit, rounded down. */
const spanOf = (millis: number): string => {
  const minutes = Math.floor(millis / 60_000)
  return minutes >= 2_880
    ? `${Math.floor(minutes / 1_440)} days`
    : minutes >= 120
      ? `${Math.floor(minutes / 60)} h`
      : `${minutes} min`
}

/** Amounts are atomic units, as in the other commands. */
const lineOf = (channel: ReportedChannel, nowMillis: number): string => {
  const { asset, asset_symbol, charged, claimed, held, opened_at, principal, withdrawal_ends_at } = channel
  const leftMillis = withdrawal_ends_at === null ? 0 : Date.parse(withdrawal_ends_at) - nowMillis
  return [
    channel.channel_id,
    principal ?? "its own store",
    asset_symbol ?? asset,
    `${held} held`,
    ...(charged === null ? [] : [`${charged} charged`]),
    `${claimed} claimed`,
    ...(opened_at === null ? [] : [`${spanOf(nowMillis - Date.parse(opened_at))} old`]),
    ...(withdrawal_ends_at === null
      ? []
      : [`withdrawal ends ${withdrawal_ends_at}${leftMillis > 0 ? `, in ${spanOf(leftMillis)}` : ", passed"}`])
  ].join("  ")
}

export const batch = Command.make("batch", { ...placeFlags(), json: jsonFlag }, ({ json, ...place }) =>
  Effect.gen(function* () {
    const { items, more } = yield* administration.reportChannels
    const now = yield* Clock.currentTimeMillis
    const withdrawals = items.filter(({ withdrawal_ends_at }) => withdrawal_ends_at !== null).length
    const number = `${items.length}${more ? " or more" : ""} channels, ${withdrawals} with a started withdrawal`
    yield* answer(json, { items, more }, [...items.map((channel) => lineOf(channel, now)), number])
  }).pipe(Effect.provide(tablesAt(place)))
).pipe(
  Command.withDescription("Payment channels of batch-settlement: held, charged, claimed, age, deadline of a withdrawal")
)
