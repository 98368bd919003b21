// The channels to lease. A lease raises a row's fence and sets a deadline; a later lease raises the fence again, and an
// older holder's record then matches no row. A lease becomes a hold in the transaction that records a settlement and
// ends with its outcome. Only channels with keys in this process are leased and counted: replicas with other settings
// share the table.
import { Context, Duration, Effect, Layer, type Scope } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { Limits } from "../../config/Limits.ts"
import { Network } from "../../config/Network.ts"
import { Facts } from "../../facts/Facts.ts"
import { isServedAnew } from "../../facts/FactsEpoch.ts"
import { Signer } from "../../signer/Signer.ts"

// The channels that may be leased. After a rotation the new channels do not exist yet. Until the first of them is
// ready, the replaced channels that are still open are leased, so that settling continues.

/** A condition on `kernel_channels`: open, and with one of these keys. */
export const leasableChannels = (
  sql: SqlClient.SqlClient,
  network: string,
  { channels, formerChannels }: Pick<Signer["Service"], "channels" | "formerChannels">
): Statement.Fragment => {
  const isOpen = sql`network = ${network} and state = 'ready' and sequence is not null`
  const isCurrent = sql`address = any(${channels})`
  if (formerChannels.length === 0) return sql`${isOpen} and ${isCurrent}`
  return sql`${isOpen} and (${isCurrent} or (address = any(${formerChannels})
    and not exists (select 1 from kernel_channels where ${isOpen} and ${isCurrent})))`
}

export interface ChannelLease {
  readonly address: string
  readonly fence: bigint
  /** The sequence number the next transaction of this channel uses. */
  readonly sequence: bigint
}

export interface ChannelCounts {
  /** Channels that exist and may be leased. */
  readonly ready: number
  /** Of these, channels that are neither leased nor held. */
  readonly free: number
}

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

/** Marks channels for a reread, and wakes the reader. */
const makeDistrust = (sql: SqlClient.SqlClient, network: string) => {
  const wakes = new Set<Effect.Effect<void>>()
  const wakeAll = Effect.suspend(() => Effect.forEach(wakes, (wake) => wake, { discard: true }))
  let distrustedIn = -1
  const distrust = Effect.fnUntraced(function* (ledger: number) {
    // A network that was reset begins again with small numbers.
    if (ledger === distrustedIn) return
    yield* sql`update kernel_channels set reread = true
      where network = ${network} and state <> 'retired' and not reread`
    distrustedIn = ledger
    yield* wakeAll
  })
  const onDistrusted = (wake: Effect.Effect<void>) =>
    Effect.acquireRelease(
      Effect.sync(() => void wakes.add(wake)),
      () => Effect.sync(() => wakes.delete(wake))
    )
  return { distrust, onDistrusted, wakeAll }
}

export class ChannelStore extends Context.Service<
  ChannelStore,
  {
    /**
     * Leases up to `count` of the free channels that rested longest; empty if none is free now. Also empty while the
     * journal's epoch is not the server's: its last commits may be lost, and sequence numbers with them.
     */
    readonly take: (count: number) => Sql<ReadonlyArray<ChannelLease>>
    /**
     * The recorded sequence numbers are wrong: every channel of the network is read from the ledger before it is leased
     * again. At most once for each ledger, by `ledger`: a lagging node rejects good numbers.
     */
    readonly distrust: (ledger: number) => Sql<void>
    /** Runs when channels must be reread, while the Scope lives; it must not wait. */
    readonly onDistrusted: (wake: Effect.Effect<void>) => Effect.Effect<void, never, Scope.Scope>
    /** Releases a lease that did not become a hold; does nothing for a lost lease. */
    readonly release: (lease: ChannelLease) => Sql<void>
    /**
     * Stores an account's sequence number, as of a ledger, for a channel that has none or must be reread. The channel
     * must be neither leased nor held, and its last outcome not newer.
     */
    readonly learn: (address: string, sequence: bigint, asOfLedger: number) => Sql<void>
    /**
     * Replaces the number `stored` of an idle channel by its account's, as of a ledger: another signer used it. Does
     * nothing if the channel is leased or held, its number has changed since it was read, or its last outcome is newer.
     */
    readonly correct: (address: string, stored: bigint, sequence: bigint, asOfLedger: number) => Sql<boolean>
    readonly counts: Sql<ChannelCounts>
  }
>()("tollkeeper/settlement/channels/ChannelStore") {
  static readonly layer = Layer.effect(
    ChannelStore,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const limits = yield* Limits
      const network = yield* Network
      const signer = yield* Signer
      const facts = yield* Facts
      const { distrust, onDistrusted, wakeAll } = makeDistrust(sql, network.id)

      const leasable = () => leasableChannels(sql, network.id, signer)
      const lease = (count: number) => sql<ChannelLease>`with free as (
          select address from kernel_channels
          where ${leasable()} and settlement is null and not reread
            and (leased_until is null or leased_until < clock_timestamp())
            and not (select ${sql.literal(isServedAnew)})
          order by used_at limit ${count} for update skip locked)
        update kernel_channels as c set fence = c.fence + 1,
          leased_until = clock_timestamp() + make_interval(secs => ${Duration.toSeconds(limits.channelLease)}::float8)
        from free where c.address = free.address
        returning c.address, c.fence, c.sequence + 1 as sequence`

      const take = Effect.fnUntraced(function* (count: number) {
        const leases = yield* lease(count)
        if (leases.length > 0) return leases
        const [server] = yield* sql<{ anew: boolean }>`select ${sql.literal(isServedAnew)} as anew`
        if (!server!.anew) return leases
        // Begins an epoch; all channels are reread in it.
        yield* facts.end
        yield* wakeAll
        return leases
      })

      return ChannelStore.of({
        take,
        distrust,
        onDistrusted,
        release: (lease) =>
          Effect.asVoid(sql`update kernel_channels set leased_until = null
            where address = ${lease.address} and fence = ${lease.fence} and settlement is null`),
        learn: (address, sequence, asOfLedger) =>
          Effect.asVoid(sql`update kernel_channels
            set state = 'ready', sequence = ${sequence}::int8, sequence_ledger = ${asOfLedger}, reread = false,
              fence = fence + case when reread then 1 else 0 end
            where address = ${address} and state in ('wanted', 'ready') and settlement is null
              and (sequence is null or reread)
              and (leased_until is null or leased_until < clock_timestamp())
              and sequence_ledger <= ${asOfLedger}`),
        correct: (address, stored, sequence, asOfLedger) =>
          Effect.map(
            sql`update kernel_channels
              set sequence = ${sequence}::int8, sequence_ledger = ${asOfLedger}, fence = fence + 1
              where address = ${address} and settlement is null
                and (leased_until is null or leased_until < clock_timestamp())
                and sequence = ${stored}::int8 and sequence_ledger <= ${asOfLedger} returning 1`,
            ({ length }) => length === 1
          ),
        counts: Effect.map(
          Effect.suspend(
            () => sql<{ ready: number; free: number }>`select count(*)::int as ready,
            (count(*) filter (where settlement is null
              and (leased_until is null or leased_until < clock_timestamp())))::int as free
            from kernel_channels where ${leasable()}`
          ),
          ([row]) => row ?? { ready: 0, free: 0 }
        )
      })
    })
  )
}
