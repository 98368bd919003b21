// Those who wait for a channel, in turns over principals. Only the head of the queue asks the store; it is woken when a
// channel may have come free, and looks by itself now and then.
import { Clock, Context, Deferred, Duration, Effect, Latch, Layer, Option } from "effect"
import type { SqlError } from "effect/sql"
import { type ChannelLease, ChannelStore } from "./ChannelStore.ts"
import { FairQueue } from "./FairQueue.ts"
import { Scarcity } from "./Scarcity.ts"
import { spanned } from "../../spanned.ts"

/** How often the head of the queue looks again without being woken: channels are freed by other replicas too. */
const lookAgain = Duration.millis(250)

type Turn = Deferred.Deferred<void>

export class ChannelQueue extends Context.Service<
  ChannelQueue,
  {
    /** Waits for a channel; None when none came free in time. */
    readonly lease: (
      principal: string,
      waitMax: Duration.Duration
    ) => Effect.Effect<Option.Option<ChannelLease>, SqlError.SqlError>
    /** Gives an unused lease back. */
    readonly release: (lease: ChannelLease) => Effect.Effect<void>
    /** Tells the queue that a channel may have come free. */
    readonly freed: Effect.Effect<void>
    readonly scarcity: Scarcity
  }
>()("tollkeeper/settlement/channels/ChannelQueue") {
  static readonly layer = Layer.effect(
    ChannelQueue,
    Effect.gen(function* () {
      const store = yield* ChannelStore
      const bell = yield* Latch.make()
      const scarcity = new Scarcity()
      const queue = new FairQueue<Turn>()
      let head: Turn | undefined

      /** Makes the next in turn the head of the queue, when it has none. */
      const pass = Effect.suspend(() => {
        if (head !== undefined) return Effect.void
        head = queue.next()
        if (head !== undefined) return Effect.asVoid(Deferred.succeed(head, undefined))
        scarcity.ended()
        return Effect.void
      })

      const release = (lease: ChannelLease) =>
        store.release(lease).pipe(
          Effect.andThen(bell.release),
          // A lease that cannot be given back ends by itself.
          Effect.catch((error) => Effect.logWarning("a channel lease was not given back and will run out", error))
        )

      /** Tells of a lease that was taken, even when whoever asked for it is interrupted in that very moment. */
      const take = Effect.fnUntraced(function* (taken: (lease: ChannelLease) => void) {
        const lease = yield* store.take
        const now = yield* Clock.currentTimeMillis
        Option.match(lease, {
          onNone: () => scarcity.found(now),
          onSome: (lease) => {
            scarcity.leased(now)
            taken(lease)
          }
        })
        return Option.isSome(lease)
      }, Effect.uninterruptible)

      const waitFor = Effect.fnUntraced(function* (turn: Turn, waitMax: Duration.Duration) {
        let taken: ChannelLease | undefined
        const served = Effect.gen(function* () {
          yield* pass
          yield* Deferred.await(turn)
          while (!(yield* take((lease) => void (taken = lease)))) yield* Effect.timeoutOption(bell.await, lookAgain)
        })
        return yield* Effect.timeoutOption(served, waitMax).pipe(
          Effect.map(() => Option.fromUndefinedOr(taken)),
          Effect.onInterrupt(() => (taken === undefined ? Effect.void : release(taken)))
        )
      })

      const lease = (principal: string, waitMax: Duration.Duration) =>
        Effect.acquireUseRelease(
          Effect.tap(Deferred.make<void>(), (turn) => Effect.sync(() => queue.add(principal, turn))),
          (turn) => waitFor(turn, waitMax),
          (turn) =>
            Effect.suspend(() => {
              queue.remove(principal, turn)
              if (head === turn) head = undefined
              return pass
            })
        ).pipe(spanned("channel.lease"))

      return ChannelQueue.of({ lease, release, freed: Effect.asVoid(bell.release), scarcity })
    })
  )
}
