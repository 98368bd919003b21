// How many channels there shall be: what an operator said last, else what the settings say. The operator's word is a
// row that every replica reads with its next turn, so growing and shrinking needs no restart. Bounded by the channels
// whose keys this process has.
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Network } from "../../config/Network.ts"
import { Signer } from "../../signer/Signer.ts"
import type { ChannelState } from "./ChannelRows.ts"

export class ChannelCount extends Context.Service<
  ChannelCount,
  {
    /** The number as last read; from 1 to the channels with keys. */
    readonly known: () => number
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
      const configured = Option.isSome(network.channelSecrets) ? signer.channels.length : network.channelCount
      let known = configured

      return ChannelCount.of({
        known: () => known,
        read: Effect.map(
          countRequired(sql, network.id),
          (count) => (known = Math.min(count ?? configured, signer.channels.length))
        )
      })
    })
  )
}

const countRequired = (sql: SqlClient.SqlClient, network: string) =>
  Effect.map(
    sql<{ count: number }>`select count from kernel_channel_counts where network = ${network}`,
    ([row]) => row?.count
  )

export interface ChannelListed {
  readonly sponsor: string
  /** Its place in the list of keys it comes from. */
  readonly number: number
  readonly address: string
  readonly state: ChannelState
  /** The last sequence number used; null while it must be read from the ledger. */
  readonly sequence: bigint | null
  /** The open settlement that holds it. */
  readonly settlement: string | null
  readonly leased: boolean
  /** A facilitator whose settings require it has run within the last minutes. */
  readonly claimed: boolean
}

/** What an operator does with channels: see them, and say how many there shall be. Works on the database alone. */
export const channelMoves = (sql: SqlClient.SqlClient, network: string) => ({
  list: sql<ChannelListed>`select sponsor, number, address, state, sequence, settlement::text as settlement,
    coalesce(leased_until > clock_timestamp(), false) as leased, wanted_until > clock_timestamp() as claimed
    from kernel_channels where network = ${network} order by sponsor, number, address`,
  required: countRequired(sql, network),
  /** From 1 to 1,000. The replicas follow within their next turns. */
  resize: (count: number) =>
    Effect.asVoid(sql`insert into kernel_channel_counts (network, count) values (${network}, ${count})
      on conflict (network) do update set count = excluded.count, changed_at = clock_timestamp()`)
})
