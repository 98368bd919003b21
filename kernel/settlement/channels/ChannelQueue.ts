// Those who wait for a channel, in turns over principals. Only the head of the queue asks the store, for itself and for
// all who stand behind it in one statement: a ledger's close frees many channels at a time. It is woken when a channel
// may have come free, and looks by itself now and then.
import { Context, Deferred, Duration, Effect, Exit, Fiber, Latch, Layer, Option } from "effect"
import type { SqlError } from "effect/sql"
import { monotonicMillis } from "../../time/monotonicMillis.ts"
import { type ChannelLease, ChannelStore } from "./ChannelStore.ts"
import { FairQueue } from "./FairQueue.ts"
import { ReleaseRateEstimator } from "./ReleaseRateEstimator.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"

/** How often the head of the queue looks again without being woken: channels are freed by other replicas too. */
const pollAgain = Duration.millis(250)

/** Channels that are asked for at once. */
const takeMax = 100

/** Somebody's place in the queue. */
interface Turn {
  /** Done when it is the head of the queue, or has its lease. */
  readonly called: Deferred.Deferred<void>
  lease: ChannelLease | undefined
}

const call = ({ called }: Turn) => Deferred.doneUnsafe(called, Effect.void)

/** Who waits, and the one of them who asks. */
class Turns {
  readonly #queue = new FairQueue<Turn>()
  readonly #nobody: () => void
  #head: Turn | undefined

  /** `nobody` is called when nobody waits any more. */
  constructor(nobody: () => void) {
    this.#nobody = nobody
  }

  /** Who stands behind the head. */
  get behind(): number {
    return this.#queue.size
  }

  add(principal: string): Turn {
    const turn: Turn = { called: Deferred.makeUnsafe(), lease: undefined }
    this.#queue.add(principal, turn)
    return turn
  }

  /** Makes the next in turn the head, when there is none. */
  pass(): void {
    if (this.#head !== undefined) return
    this.#head = this.#queue.next()
    if (this.#head === undefined) this.#nobody()
    else call(this.#head)
  }

  /** Gives a lease to the next behind the head; false when nobody is there. */
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
 * A statement ends for whoever is interrupted, also where the caller is not to be, or is giving back what it had: it
 * would lease channels that nobody hears of, or keep one. This one has a fiber of its own, and is waited for as long as
 * any statement is.
 */
const toItsEnd = <A, E>(statement: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.uninterruptible(Effect.flatMap(Effect.forkDetach(statement, { startImmediately: true }), Fiber.join))

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
          // A lease that cannot be given back ends by itself.
          Effect.catch((error) => Effect.logWarning("a channel lease was not given back and will run out", error))
        )

      /**
       * Leases channels for the head of the queue and for those behind it, as many as there are; true when the head has
       * one. Who is interrupted in that very moment has it all the same, and gives it back.
       */
      const take = Effect.fnUntraced(function* (turn: Turn) {
        const [asked, returned] = [Math.min(takeMax, 1 + turns.behind), scarcity.returned]
        const leases = yield* toItsEnd(store.take(asked))
        const now = yield* monotonicMillis
        for (const _ of leases) scarcity.leased(now)
        if (leases.length < asked) scarcity.found(now, Math.max(0, returned - leases.length))
        const [own, ...others] = leases
        turn.lease = own
        // Whom it was for has perhaps given up meanwhile.
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
          // A lease that came in the moment in which the wait ended counts.
          Effect.map(({ lease }) => Option.fromUndefinedOr(lease)),
          withSpanIfSampled("channel.lease")
        )

      return ChannelQueue.of({ lease, release, freed, scarcity })
    })
  )
}
