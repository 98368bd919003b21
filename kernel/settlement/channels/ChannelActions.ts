// Operator actions on channels: list and resize. They use only the database; the replicas follow within their next
// turns.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Network } from "../../config/Network.ts"
import { countRequired } from "./ChannelCount.ts"
import type { ChannelState } from "./ChannelRows.ts"

export interface ChannelListed {
  readonly sponsor: string
  /** Its position in its list of keys. */
  readonly number: number
  readonly address: string
  readonly state: ChannelState
  /** The last sequence number used; null while it must be read from the ledger. */
  readonly sequence: bigint | null
  /** The open settlement that holds it. */
  readonly settlement: string | null
  readonly leased: boolean
  /** A facilitator with settings that require it has run within the last minutes. */
  readonly claimed: boolean
}

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

export class ChannelActions extends Context.Service<
  ChannelActions,
  {
    /** Every channel of the network, by sponsor and number. */
    readonly list: Sql<ReadonlyArray<ChannelListed>>
    /** The number that an operator requested; undefined without a request. */
    readonly required: Sql<number | undefined>
    /** From 1 to 1,000. Returns the number required before; undefined without one. */
    readonly resize: (count: number) => Sql<number | undefined>
  }
>()("tollkeeper/settlement/channels/ChannelMoves") {
  static readonly layer = Layer.effect(
    ChannelActions,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { id: network } = yield* Network
      return ChannelActions.of({
        list: sql<ChannelListed>`select sponsor, number, address, state, sequence, settlement::text as settlement,
          coalesce(leased_until > clock_timestamp(), false) as leased, required_until > clock_timestamp() as claimed
          from kernel_channels where network = ${network} order by sponsor, number, address`,
        required: countRequired(sql, network),
        resize: (count) =>
          Effect.tap(
            countRequired(sql, network),
            () => sql`insert into kernel_channel_counts (network, count) values (${network}, ${count})
            on conflict (network) do update set count = excluded.count, changed_at = clock_timestamp()`
          )
      })
    })
  )
}
