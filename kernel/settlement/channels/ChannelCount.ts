// The required number of channels: what an operator set last, else the setting. The operator's number is a row that
// every replica reads with its next turn, so a change needs no restart. Bounded by the channels whose keys this process
// has.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Network } from "../../config/Network.ts"
import { Signer } from "../../signer/Signer.ts"

export class ChannelCount extends Context.Service<
  ChannelCount,
  {
    /** The number as last read; from 1 to the channels with keys. */
    readonly known: () => number
    /** Takes the number that an operator requested, if any; returns the number in effect. */
    readonly heed: (asked: number | null | undefined) => number
    /** Reads the number. */
    readonly read: Effect.Effect<number, SqlError.SqlError>
  }
>()("tollkeeper/settlement/channels/ChannelCount") {
  static readonly layer = Layer.effect(
    ChannelCount,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const network = yield* Network
      const signer = yield* Signer
      // Channels whose seeds the operator gave are all required.
      const configured = () => (signer.areChannelsGiven ? signer.channels.length : network.channelCount)
      let known = configured()

      const heed = (asked: number | null | undefined) =>
        (known = Math.min(asked ?? configured(), signer.channels.length))

      return ChannelCount.of({
        known: () => known,
        heed,
        read: Effect.map(countRequired(sql, network.id), heed)
      })
    })
  )
}

/** The operator's number: a row, or none. */
export const askedCount = (sql: SqlClient.SqlClient, network: string) =>
  sql<{ count: number }>`select count from kernel_channel_counts where network = ${network}`

/** The number that an operator requested, if any. */
export const countRequired = (sql: SqlClient.SqlClient, network: string) =>
  Effect.map(askedCount(sql, network), ([row]) => row?.count)
