// Who wants a channel and finds none free waits in order of arrival, for a bounded time, behind a bounded queue. Only
// the head of the queue asks the store.
import { Context, Duration, Effect, Latch, Layer, Option, Semaphore } from "effect"
import type { SqlError } from "effect/sql"
import { Limits } from "../../config/Limits.ts"
import { LedgerClock } from "../../ledger/LedgerClock.ts"
import { type ChannelCounts, type ChannelLease, ChannelStore } from "./ChannelStore.ts"

/** Callers that may wait at a time; more are answered busy at once. */
const waitersMax = 2_000
/** How often the head of the queue looks again without being woken: channels are freed by other replicas too. */
const lookAgain = Duration.millis(250)

export class ChannelPool extends Context.Service<
  ChannelPool,
  {
    /** A free channel, or None when none came free in time. */
    readonly lease: Effect.Effect<Option.Option<ChannelLease>, SqlError.SqlError>
    /** Gives an unused lease back. */
    readonly release: (lease: ChannelLease) => Effect.Effect<void>
    /** Tells the queue that a channel may have come free. */
    readonly freed: Effect.Effect<void>
    readonly counts: Effect.Effect<ChannelCounts, SqlError.SqlError>
  }
>()("tollkeeper/settlement/channels/ChannelPool") {
  static readonly layer = Layer.effect(
    ChannelPool,
    Effect.gen(function* () {
      const store = yield* ChannelStore
      const limits = yield* Limits
      const clock = yield* LedgerClock
      const head = yield* Semaphore.make(1)
      const bell = yield* Latch.make()
      let waiting = 0

      /** One close interval and 3 s: a channel held now is usually free by then. */
      const waitMax =
        limits.channelWait === undefined
          ? clock.now.pipe(
              Effect.map(({ secondsPerLedger }) => Duration.millis(secondsPerLedger * 1_000 + 3_000)),
              Effect.catch(() => Effect.succeed(Duration.seconds(8)))
            )
          : Effect.succeed(limits.channelWait)

      /** A lease that was taken is told of, even when whoever wanted it is interrupted in that very moment. */
      const takeOrWait = Effect.fnUntraced(function* (taken: (lease: ChannelLease) => void) {
        while (true) {
          const lease = yield* Effect.uninterruptible(
            Effect.tap(store.take, (lease) => Effect.sync(() => Option.map(lease, taken)))
          )
          if (Option.isSome(lease)) return
          yield* Effect.timeoutOption(bell.await, lookAgain)
        }
      })

      const lease = Effect.gen(function* () {
        if (waiting >= waitersMax) return Option.none<ChannelLease>()
        waiting += 1
        let taken: ChannelLease | undefined
        return yield* Effect.flatMap(waitMax, (wait) =>
          Effect.timeoutOption(head.withPermits(1)(takeOrWait((lease) => void (taken = lease))), wait)
        ).pipe(
          Effect.map(() => Option.fromUndefinedOr(taken)),
          Effect.onInterrupt(() => (taken === undefined ? Effect.void : release(taken))),
          Effect.ensuring(Effect.sync(() => (waiting -= 1)))
        )
      }).pipe(Effect.withSpan("channel.lease"))

      const release = (lease: ChannelLease) =>
        store.release(lease).pipe(
          Effect.andThen(bell.release),
          // A lease that cannot be given back ends by itself.
          Effect.catch((error) => Effect.logWarning("a channel lease was not given back and will run out", error))
        )

      return ChannelPool.of({
        lease,
        release,
        freed: Effect.asVoid(bell.release),
        counts: store.counts
      })
    })
  )
}
