// Nobody waits longer than was said, whatever is waited for: a request for a payment's answer, a statement for the
// database. The effect runs in a fiber of an owner that outlives the wait. Who has waited long enough, or is
// interrupted, goes on at once; the effect is interrupted and left behind, for the end of a statement that a database
// does not answer, or of a finalizer behind it, may be as long in coming as the answer.
import { type Duration, Effect, Exit, Fiber, Scope } from "effect"

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

/** The fiber's exit; undefined when its time is over first. */
const exitOf = <A, E>(fiber: Fiber.Fiber<A, E>, timer: Fiber.Fiber<void>, until: Ending | undefined) =>
  Effect.callback<Exit.Exit<A, E> | undefined>((resume) => {
    const stops: Array<() => void> = [() => timer.interruptUnsafe()]
    let isOver = false
    const stop = () => {
      isOver = true
      for (const one of stops.splice(0)) one()
    }
    const hear = (exit: Exit.Exit<A, E> | undefined) => {
      if (isOver) return
      stop()
      resume(Effect.succeed(exit))
    }
    // Each may have ended already, and then says so at once.
    stops.push(timer.addObserver((exit) => (Exit.isSuccess(exit) ? hear(undefined) : undefined)))
    if (until !== undefined) stops.push(until.listen(() => hear(undefined)))
    stops.push(fiber.addObserver(hear))
    if (isOver) stop()
    return Effect.sync(stop)
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
      const timer = yield* Effect.forkDetach(Effect.interruptible(Effect.sleep(longest)))
      const exit = yield* restore(Effect.interruptible(exitOf(fiber, timer, until))).pipe(
        Effect.onInterrupt(() => leave)
      )
      if (exit !== undefined) return yield* exit
      yield* leave
      return yield* late
    })
  )
