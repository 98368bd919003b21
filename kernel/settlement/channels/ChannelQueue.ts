// Waiters for a channel, in turns over principals. Only the head of the queue queries the store, for itself and for all
// waiters behind it in one statement: a ledger's close frees many channels at a time. A released channel wakes it;
// otherwise it polls.
import { Context, Deferred, Duration, Effect, Exit, Fiber, Latch, Layer, Option } from "effect"
import type { SqlError } from "effect/sql"
import { monotonicMillis } from "../../time/monotonicMillis.ts"
import { type ChannelLease, ChannelStore } from "./ChannelStore.ts"
import { FairQueue } from "./FairQueue.ts"
import { ReleaseRateEstimator } from "./ReleaseRateEstimator.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"

/** Poll interval of the head without a wake-up: other replicas release channels too. */
const pollAgain = Duration.millis(250)

/** Channels requested in one statement. */
const takeMax = 100

/** A waiter's place in the queue. */
interface Turn {
  /** Done when it is the head of the queue, or has its lease. */
  readonly called: Deferred.Deferred<void>
  lease: ChannelLease | undefined
}

const call = ({ called }: Turn) => Deferred.doneUnsafe(called, Effect.void)

/** The waiters, and the head that queries for them. */
class Turns {
  readonly #queue = new FairQueue<Turn>()
  readonly #onEmpty: () => void
  #head: Turn | undefined

  /** `onEmpty` is called when the last waiter has left. */
  constructor(onEmpty: () => void) {
    this.#onEmpty = onEmpty
  }

  get behind(): number {
    return this.#queue.size
  }

  add(principal: string): Turn {
    const turn: Turn = { called: Deferred.makeUnsafe(), lease: undefined }
    this.#queue.add(principal, turn)
    return turn
  }

  /** Makes the next in turn the head, if there is none. */
  pass(): void {
    if (this.#head !== undefined) return
    this.#head = this.#queue.next()
    if (this.#head === undefined) this.#onEmpty()
    else call(this.#head)
  }

  /** Hands a lease to the next waiter behind the head; false without one. */
  give(lease: ChannelLease): boolean {
    const next = this.#queue.next()
    if (next === undefined) return false
    next.lease = lease
    call(next)
    return true
  }

  leave(principal: string, turn: Turn): void {
    this.#queue.remove(principal, turn)
    if (this.#head === turn) this.#head = undefined
    this.pass()
  }
}

/**
 * Runs a statement in a separate fiber, bounded like any statement. An interrupt would end the statement even if the
 * caller is uninterruptible or is releasing a lease: it would lease channels without a holder, or keep one leased.
 */
const toItsEnd = <A, E>(statement: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.uninterruptible(Effect.flatMap(Effect.forkDetach(statement, { startImmediately: true }), Fiber.join))

export class ChannelQueue extends Context.Service<
  ChannelQueue,
  {
    /** Waits for a channel; None if no channel was released in time. */
    readonly lease: (
      principal: string,
      waitMax: Duration.Duration
    ) => Effect.Effect<Option.Option<ChannelLease>, SqlError.SqlError>
    readonly release: (lease: ChannelLease) => Effect.Effect<void>
    /** Notifies the queue that a channel may have been released. */
    readonly freed: Effect.Effect<void>
    readonly scarcity: ReleaseRateEstimator
  }
>()("tollkeeper/settlement/channels/ChannelQueue") {
  static readonly layer = Layer.effect(
    ChannelQueue,
    Effect.gen(function* () {
      const store = yield* ChannelStore
      const bell = yield* Latch.make()
      const scarcity = new ReleaseRateEstimator()
      const turns = new Turns(() => scarcity.ended())

      const freed = Effect.suspend(() => {
        scarcity.freed()
        return Effect.asVoid(bell.release)
      })

      const release = (lease: ChannelLease) =>
        toItsEnd(store.release(lease)).pipe(
          Effect.andThen(freed),
          // A lease that cannot be released expires.
          Effect.catch((error) => Effect.logWarning("a channel lease could not be released; it will expire", error))
        )

      /**
       * Leases up to as many channels as the head and the waiters behind it need; true when the head has one. A waiter
       * that is interrupted at that moment still receives its lease, and releases it.
       */
      const take = Effect.fnUntraced(function* (turn: Turn) {
        const [asked, returned] = [Math.min(takeMax, 1 + turns.behind), scarcity.returned]
        const leases = yield* toItsEnd(store.take(asked))
        const now = yield* monotonicMillis
        for (const _ of leases) scarcity.leased(now)
        if (leases.length < asked) scarcity.found(now, Math.max(0, returned - leases.length))
        const [own, ...others] = leases
        turn.lease = own
        // Its waiter may have left by now.
        for (const lease of others) if (!turns.give(lease)) yield* release(lease)
        return own !== undefined
      }, Effect.uninterruptible)

      const waitFor = Effect.fnUntraced(function* (turn: Turn) {
        turns.pass()
        yield* Deferred.await(turn.called)
        if (turn.lease !== undefined) return
        while (!(yield* take(turn))) yield* Effect.timeoutOption(bell.await, pollAgain)
      })

      const wait = (principal: string, waitMax: Duration.Duration) =>
        Effect.acquireUseRelease(
          Effect.sync(() => turns.add(principal)),
          (turn) => Effect.as(Effect.timeoutOption(waitFor(turn), waitMax), turn),
          (turn, exit) =>
            Effect.suspend(() => {
              turns.leave(principal, turn)
              return Exit.isSuccess(exit) || turn.lease === undefined ? Effect.void : release(turn.lease)
            })
        )

      const lease = (principal: string, waitMax: Duration.Duration) =>
        wait(principal, waitMax).pipe(
          // A lease that arrived exactly when the wait ended counts.
          Effect.map(({ lease }) => Option.fromUndefinedOr(lease)),
          withSpanIfSampled("channel.lease")
        )

      return ChannelQueue.of({ lease, release, freed, scarcity })
    })
  )
}
