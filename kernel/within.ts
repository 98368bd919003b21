// Nobody waits longer than was said, whatever is waited for: a request for a payment's answer, a statement for the
// database. The effect runs in a fiber of an owner that outlives the wait. Who has waited long enough, or is
// interrupted, goes on at once; the effect is interrupted and left behind, for the end of a statement that a database
// does not answer, or of a finalizer behind it, may be as long in coming as the answer.
import { Clock, Duration, Effect, type Exit, Fiber, type Scope } from "effect"

/** What is left behind: done once it has really ended. */
export type Leftover = Effect.Effect<unknown>

/** An end that is waited for by many at the price of one fiber. */
export interface Ending {
  /** Calls when it has come, at once if it has; the answer takes the call back. */
  readonly listen: (ended: () => void) => () => void
}

/** The end of an effect that runs for as long as the Scope lives. */
export const endingOf = Effect.fnUntraced(function* (end: Effect.Effect<void>) {
  const listeners = new Set<() => void>()
  let hasEnded = false
  const tell = Effect.sync(() => {
    hasEnded = true
    for (const listener of [...listeners]) listener()
  })
  yield* Effect.forkIn(Effect.andThen(end, tell), yield* Effect.scope)
  const ending: Ending = {
    listen: (ended) => {
      if (hasEnded) {
        ended()
        return () => {}
      }
      listeners.add(ended)
      return () => void listeners.delete(ended)
    }
  }
  return ending
})

export interface Patience<out A, out E, out R> {
  readonly longest: Duration.Input
  /** Ends the wait before that; default never. */
  readonly until?: Ending
  /** Whose fiber it is, and ends with. */
  readonly owner: Scope.Scope
  /** The answer when the time is over. */
  readonly late: Effect.Effect<A, E, R>
  /** Told of what is left behind, before it is interrupted. */
  readonly left?: (leftover: Leftover) => void
}

interface Wait {
  /** When its time is over, nanoseconds of the monotonic clock. */
  readonly end: bigint
  isOver: boolean
  told: () => void
}

/**
 * The ends of all waits of one length under one owner: they come in the order in which the waits began, so one fiber
 * sleeps until the next of them, for as long as anybody waits. A fiber and a timer for each wait would cost a busy
 * process as much as many a thing that is waited for.
 */
class Deadlines {
  /** Undefined: without an end. */
  readonly #nanos: bigint | undefined
  readonly #waits = new Set<Wait>()
  /** Who sleeps for the waits there are; nobody while there is none. */
  #sleeper: { fiber?: Fiber.Fiber<void> } | undefined

  constructor(millis: number) {
    this.#nanos = Number.isFinite(millis) ? BigInt(Math.ceil(millis * 1e6)) : undefined
  }

  /** From now on. */
  readonly begin: Effect.Effect<Wait> = Effect.flatMap(Clock.Clock, (clock) => {
    const wait: Wait = { end: clock.monotonicTimeNanosUnsafe() + (this.#nanos ?? 0n), isOver: false, told: () => {} }
    if (this.#nanos === undefined) return Effect.succeed(wait)
    this.#waits.add(wait)
    if (this.#sleeper !== undefined) return Effect.succeed(wait)
    const sleeper: { fiber?: Fiber.Fiber<void> } = {}
    this.#sleeper = sleeper
    return Effect.map(Effect.forkDetach(Effect.interruptible(this.#sleep(sleeper))), (fiber) => {
      sleeper.fiber = fiber
      return wait
    })
  })

  finish(wait: Wait): void {
    if (!this.#waits.delete(wait) || this.#waits.size > 0) return
    this.#sleeper?.fiber?.interruptUnsafe()
    this.#sleeper = undefined
  }

  #sleep(sleeper: object): Effect.Effect<void> {
    return Effect.flatMap(Clock.monotonicTimeNanos, (now) => {
      // Somebody else sleeps by now, or nobody has to.
      if (this.#sleeper !== sleeper) return Effect.void
      for (const wait of this.#waits) {
        if (wait.end > now)
          return Effect.flatMap(Effect.sleep(Duration.nanos(wait.end - now)), () => this.#sleep(sleeper))
        this.#waits.delete(wait)
        wait.isOver = true
        wait.told()
      }
      if (this.#sleeper === sleeper) this.#sleeper = undefined
      return Effect.void
    })
  }
}

/** By owner and by length: a few lengths each. */
const deadlines = new WeakMap<Scope.Scope, Map<number, Deadlines>>()

const deadlinesOf = (owner: Scope.Scope, millis: number): Deadlines => {
  const own = deadlines.get(owner) ?? new Map<number, Deadlines>()
  deadlines.set(owner, own)
  const known = own.get(millis) ?? new Deadlines(millis)
  own.set(millis, known)
  return known
}

/** The fiber's exit; undefined when its time is over first. */
const exitOf = <A, E>(fiber: Fiber.Fiber<A, E>, wait: Wait, until: Ending | undefined) =>
  Effect.callback<Exit.Exit<A, E> | undefined>((resume) => {
    const stops: Array<() => void> = []
    let isHeard = false
    const stop = () => {
      for (const one of stops.splice(0)) one()
    }
    const hear = (exit: Exit.Exit<A, E> | undefined) => {
      if (isHeard) return
      isHeard = true
      stop()
      resume(Effect.succeed(exit))
    }
    wait.told = () => hear(undefined)
    if (wait.isOver) hear(undefined)
    // Each may have ended already, and then says so at once.
    if (until !== undefined) stops.push(until.listen(() => hear(undefined)))
    stops.push(fiber.addObserver(hear))
    if (isHeard) stop()
    return Effect.sync(() => {
      isHeard = true
      stop()
    })
  })

/** Bounded also where the caller must not be interrupted: a COMMIT, a ROLLBACK. */
export const within = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  { late, left, longest, owner, until }: Patience<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkIn(Effect.interruptible(effect), owner, { startImmediately: true })
      const already = fiber.pollUnsafe()
      if (already !== undefined) return yield* already
      const leave = Effect.sync(() => {
        if (fiber.pollUnsafe() !== undefined) return
        left?.(Fiber.await(fiber))
        fiber.interruptUnsafe()
      })
      const ends = deadlinesOf(owner, Duration.toMillis(Duration.fromInputUnsafe(longest)))
      const wait = yield* ends.begin
      const exit = yield* restore(Effect.interruptible(exitOf(fiber, wait, until))).pipe(
        Effect.onInterrupt(() => {
          ends.finish(wait)
          return leave
        })
      )
      ends.finish(wait)
      if (exit !== undefined) return yield* exit
      yield* leave
      return yield* late
    })
  )
