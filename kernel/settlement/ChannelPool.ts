// Channels are lent for moments. A lease is a row's fence raised and a deadline set; whoever leases it later raises the fence
// again, and an older holder's record then finds nothing to hold. A lease becomes a hold in the transaction that records a
// settlement and ends with its outcome. Who finds no free channel waits in order of arrival, for a bounded time, behind a bounded queue;
// only the head of the queue asks the database.
import { Context, Duration, Effect, Latch, Layer, Option, Semaphore } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Limits } from "../config/Limits.ts"
import { Network } from "../config/Network.ts"
import { LedgerClock } from "../ledger/LedgerClock.ts"
import { Signer } from "../signer/Signer.ts"

export interface ChannelLease {
  readonly address: string
  readonly fence: bigint
  /** The sequence number the next transaction of this channel uses. */
  readonly sequence: bigint
}

/** Callers that may wait at a time; more are answered busy at once. */
const waitersMax = 2_000
/** How often the head of the queue looks again without being woken: channels are freed by other replicas too. */
const lookAgain = Duration.millis(250)

export class ChannelPool extends Context.Service<ChannelPool, {
  /** A free channel, or None when none came free in time. */
  readonly lease: Effect.Effect<Option.Option<ChannelLease>, SqlError.SqlError>
  /** Gives an unused lease back. */
  readonly release: (lease: ChannelLease) => Effect.Effect<void>
  /** Tells the queue that a channel may have come free. */
  readonly freed: Effect.Effect<void>
  readonly counts: Effect.Effect<{ readonly ready: number; readonly free: number }, SqlError.SqlError>
}>()("tollkeeper/settlement/ChannelPool") {
  static readonly layer = Layer.effect(
    ChannelPool,
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const limits = yield* Limits
      const network = yield* Network
      const signer = yield* Signer
      const clock = yield* LedgerClock
      const head = yield* Semaphore.make(1)
      const bell = yield* Latch.make()
      let waiting = 0

      const take = Effect.gen(function*() {
        const rows = yield* sql<{ address: string; fence: bigint; sequence: bigint }>`update kernel_channels
          set fence = fence + 1, leased_until = clock_timestamp() + make_interval(secs => ${Duration.toMillis(limits.channelLease) / 1_000}::float8)
          where address = (
            select address from kernel_channels
            where network = ${network.id} and sponsor = ${signer.sponsor} and state = 'ready' and sequence is not null and settlement is null
              and (leased_until is null or leased_until < clock_timestamp())
            order by used_at limit 1 for update skip locked)
          returning address, fence, sequence + 1 as sequence`
        return Option.fromUndefinedOr(rows[0])
      })

      /** One close interval and 3 s: a channel held now is usually free by then. */
      const waitMax = limits.channelWait === undefined
        ? clock.now.pipe(
          Effect.map(({ secondsPerLedger }) => Duration.millis(secondsPerLedger * 1_000 + 3_000)),
          Effect.catch(() => Effect.succeed(Duration.seconds(8)))
        )
        : Effect.succeed(limits.channelWait)

      const takeOrWait: Effect.Effect<ChannelLease, SqlError.SqlError> = Effect.gen(function*() {
        while (true) {
          const lease = yield* take
          if (Option.isSome(lease)) return lease.value
          yield* Effect.timeoutOption(bell.await, lookAgain)
        }
      })

      const lease = Effect.gen(function*() {
        if (waiting >= waitersMax) return Option.none<ChannelLease>()
        waiting += 1
        const wait = yield* waitMax
        return yield* Effect.timeoutOption(head.withPermits(1)(takeOrWait), wait).pipe(
          Effect.ensuring(Effect.sync(() => waiting -= 1))
        )
      }).pipe(Effect.withSpan("channel.lease"))

      return ChannelPool.of({
        lease,
        release: (lease) =>
          sql`update kernel_channels set leased_until = null where address = ${lease.address} and fence = ${lease.fence} and settlement is null`.pipe(
            Effect.andThen(bell.release),
            // A lease that cannot be given back ends by itself.
            Effect.catch((error) => Effect.logWarning("a channel lease was not given back and will run out", error))
          ),
        freed: Effect.asVoid(bell.release),
        counts: Effect.map(
          sql<{ ready: number; free: number }>`select count(*)::int as ready,
            (count(*) filter (where settlement is null and (leased_until is null or leased_until < clock_timestamp())))::int as free
            from kernel_channels where network = ${network.id} and sponsor = ${signer.sponsor} and state = 'ready'`,
          ([row]) => row ?? { ready: 0, free: 0 }
        )
      })
    })
  )
}
