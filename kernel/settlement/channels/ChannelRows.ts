// The table of channels, for its reconciler. Replicas with other settings and other keys share the table, so no replica
// may retire a channel that another requires. Each replica records every minute the channels that its settings claim. A
// channel that its own settings no longer require is retired immediately, one of a rotated-out sponsor once no running
// replica signs as that sponsor, and any other only when its claims have lapsed.
import { Context, Effect, Layer } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient, type SqlError } from "effect/sql"
import { Network } from "../../config/Network.ts"
import { Crypto } from "../../platform/Crypto.ts"
import { Signer } from "../../signer/Signer.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"
import { askedCount } from "./ChannelCount.ts"
import { liveSeconds } from "./RotationJournal.ts"

/**
 * As stored. A required channel without an account is planned; the table calls it `wanted`, because older versions of
 * this program share the table and support only that value.
 */
export type ChannelState = typeof planned | "ready" | "retiring" | "merging" | "retired"
export const planned = "wanted"

export interface ChannelRow {
  readonly address: string
  readonly state: Exclude<ChannelState, "retired">
  /** Null when it must be read from the ledger. */
  readonly sequence: bigint | null
  readonly sequence_ledger: bigint
  /** Held by a settlement. */
  readonly held: boolean
  readonly leased: boolean
}

/** Lifetime of a process's claim: three surveys, one a minute. */
const lapseSeconds = 180

/** The first read of a turn, and usually the only one. */
interface ChannelOverview {
  /** The number of channels that an operator requested, if any. */
  readonly asked: number | null
  /** Whether one of the owned channels waits for its number or for its end. */
  readonly isWaiting: boolean
}

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

export class ChannelRows extends Context.Service<
  ChannelRows,
  {
    /** Names the settings and keys of this process; replicas that agree in both share the work and the name. */
    readonly settingsId: string
    /**
     * Ensures a row for each of the first `count` channels, in any earlier state; channels that no process requires are
     * no longer leased.
     */
    readonly claim: (count: number) => Sql<void>
    /** Every channel that is not retired and has a key in this process, including former ones. */
    readonly owned: Sql<ReadonlyArray<ChannelRow>>
    readonly glance: Sql<ChannelOverview>
    /** The merge of a channel has ended, or its account was removed. */
    readonly endMerge: (row: ChannelRow, isGone: boolean) => Sql<void>
  }
>()("tollkeeper/settlement/channels/ChannelRows") {
  static readonly layer = Layer.effect(
    ChannelRows,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const network = yield* Network
      const signer = yield* Signer
      const crypto = yield* Crypto
      // Read on each use, because a rotation changes them all.
      const keysNow = () => [...signer.channels, ...signer.formerChannels]
      const own = () => sql`network = ${network.id} and address = any(${keysNow()})`
      const settingsIdNow = () => {
        const settings = [signer.sponsor, signer.areChannelsGiven ? "" : network.channelCount, ...keysNow()]
        return Hex.encode(crypto.sha256(new TextEncoder().encode(settings.join()))).slice(0, 16)
      }

      const claim = Effect.fnUntraced(function* (count: number) {
        const required = signer.channels.slice(0, count)
        const [keys, settingsId] = [keysNow(), settingsIdNow()]
        const former = signer.sponsors.filter((address) => address !== signer.sponsor)
        // No running replica signs as the sponsor that claimed it, and the channels that follow it are open.
        const isReplaced = sql`sponsor = any(${former}::text[])
          and not exists (select 1 from kernel_signers s
            where s.network = ${network.id} and s.sponsor = kernel_channels.sponsor
              and s.seen_at > clock_timestamp() - make_interval(secs => ${liveSeconds}::float8))
          and not exists (select 1 from kernel_channels n where n.address = any(${required}::text[])
            and (n.state <> 'ready' or n.sequence is null or n.reread))`
        yield* sql`insert into kernel_channels as c (address, network, sponsor, number, required_by, required_until)
          select address, ${network.id}, ${signer.sponsor}, place - 1, ${settingsId},
            clock_timestamp() + make_interval(secs => ${lapseSeconds}::float8)
          from unnest(${required}::text[]) with ordinality as listed(address, place)
          on conflict (address) do update set sponsor = excluded.sponsor, number = excluded.number,
            required_by = excluded.required_by, required_until = excluded.required_until,
            sequence = case when c.state = 'retired' then null else c.sequence end,
            state = case c.state when 'retired' then 'wanted' when 'retiring' then 'ready' else c.state end`
        yield* sql`update kernel_channels set state = 'retiring'
          where network = ${network.id} and state in ('wanted', 'ready') and address <> all(${required}::text[])
            and (sponsor = ${signer.sponsor} or address = any(${keys}))
            and (required_by = ${settingsId} or required_until < clock_timestamp() or (${isReplaced}))`
      }, withSpanIfSampled("ChannelRows.claim"))

      return ChannelRows.of({
        get settingsId() {
          return settingsIdNow()
        },
        claim,
        owned: Effect.suspend(
          () => sql<ChannelRow>`select address, state, case when not reread then sequence end as sequence,
            sequence_ledger, settlement is not null as held,
          coalesce(leased_until > clock_timestamp(), false) as leased from kernel_channels
          where ${own()} and state <> 'retired' order by number, address`
        ),
        glance: Effect.map(
          Effect.suspend(
            () => sql<ChannelOverview>`select (${askedCount(sql, network.id)}) as asked, exists (
              select 1 from kernel_channels where ${own()} and state <> 'retired' and settlement is null
                and (sequence is null or reread
                  or (state in ('retiring', 'merging') and (leased_until is null or leased_until < clock_timestamp())))
            ) as "isWaiting"`
          ),
          ([glance]) => glance!
        ),
        endMerge: ({ address, state }, isGone) =>
          Effect.asVoid(sql`update kernel_channels set state = ${isGone ? "retired" : "retiring"}
            where address = ${address} and state = ${state} and settlement is null`)
      })
    })
  )
}
