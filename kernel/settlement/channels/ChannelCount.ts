// The required number of channels: an operator's last request, else the setting. The operator's number is a row that
// every replica reads with its next turn, so a change needs no restart. The number is bounded by the channels with keys
// in this process.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Network } from "../../config/Network.ts"
import { Signer } from "../../signer/Signer.ts"

export class ChannelCount extends Context.Service<
  ChannelCount,
  {
    /** The number as last read; from 1 to the channels with keys. */
    readonly known: () => number
    /** Applies the number that an operator requested, if any; returns the number in effect. */
    readonly heed: (requested: number | null | undefined) => number
    readonly read: Effect.Effect<number, SqlError.SqlError>
  }
>()("tollkeeper/settlement/channels/ChannelCount") {
  static readonly layer = Layer.effect(
    ChannelCount,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const network = yield* Network
      const signer = yield* Signer
      // All channels are required if the operator gave their seeds.
      const configured = () => (signer.areChannelsGiven ? signer.channels.length : network.channelCount)
      let count = configured()

      const heed = (requested: number | null | undefined) =>
        (count = Math.min(requested ?? configured(), signer.channels.length))

      return ChannelCount.of({
        known: () => count,
        heed,
        read: Effect.map(countRequired(sql, network.id), heed)
      })
    })
  )
}

/** The operator's number: at most one row. */
export const askedCount = (sql: SqlClient.SqlClient, network: string) =>
  sql<{ count: number }>`select count from kernel_channel_counts where network = ${network}`

/** The number that an operator requested, if any. */
export const countRequired = (sql: SqlClient.SqlClient, network: string) =>
  Effect.map(askedCount(sql, network), ([row]) => row?.count)
