// Nobody waits longer than was said, whatever is waited for: a request for a payment's answer, a statement for the
// database. The effect runs in a fiber of an owner that outlives the wait. Who has waited long enough, or is
// interrupted, goes on at once; the effect is interrupted and left behind, for the end of a statement that a database
// does not answer, or of a finalizer behind it, may be as long in coming as the answer.
import { type Duration, Effect, Fiber, Option, type Scope } from "effect"

/** What is left behind: done once it has really ended. */
export type Leftover = Effect.Effect<unknown>

export interface Patience<out A, out E, out R> {
  readonly longest: Duration.Input
  /** Ends the wait before that, by its own end; default never. */
  readonly until?: Effect.Effect<void>
  /** Whose fiber it is, and ends with. */
  readonly owner: Scope.Scope
  /** The answer when the time is over. */
  readonly late: Effect.Effect<A, E, R>
  /** Told of what is left behind, before it is interrupted. */
  readonly left?: (leftover: Leftover) => void
}

/** Bounded also where the caller must not be interrupted: a COMMIT, a ROLLBACK. */
export const within = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  { late, left, longest, owner, until }: Patience<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkIn(Effect.interruptible(effect), owner, { startImmediately: true })
      const leave = Effect.sync(() => {
        if (fiber.pollUnsafe() !== undefined) return
        left?.(Fiber.await(fiber))
        fiber.interruptUnsafe()
      })
      const answered = Effect.timeoutOption(Fiber.await(fiber), longest)
      const inTime = until === undefined ? answered : Effect.raceFirst(answered, Effect.as(until, Option.none()))
      const ended = yield* restore(Effect.interruptible(inTime)).pipe(Effect.onInterrupt(() => leave))
      if (Option.isSome(ended)) return yield* ended.value
      yield* leave
      return yield* late
    })
  )
