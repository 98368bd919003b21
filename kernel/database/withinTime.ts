// A bound on how long somebody waits for the database, whatever the driver is doing: to interrupt a statement takes the
// driver seconds when the server does not answer, and who waits must not wait for that too. The statement is left to a
// fiber of the owner's, which ends it in its own time.
import { Duration, Effect, Fiber, Option, type Scope } from "effect"
import { SqlError } from "effect/sql"

/** What is left behind: done once the statement has really ended. */
export type Leftover = Effect.Effect<unknown>

export const tookTooLong = (operation: string, waited: Duration.Duration): SqlError.SqlError => {
  const message = `the database did not answer within ${Duration.toMillis(waited)} ms`
  return new SqlError.SqlError({
    reason: new SqlError.ConnectionError({ cause: new Error(message), message, operation })
  })
}

/**
 * The effect, for so long at most. Who is interrupted or has waited long enough goes on at once, and `left` is told
 * what was left behind.
 */
export const withinTime = <A>(
  effect: Effect.Effect<A, SqlError.SqlError>,
  longest: Duration.Duration,
  owner: Scope.Scope,
  left: (leftover: Leftover) => void
): Effect.Effect<A, SqlError.SqlError> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkIn(Effect.interruptible(effect), owner, { startImmediately: true })
      const abandon = Effect.suspend(() => {
        if (fiber.pollUnsafe() !== undefined) return Effect.void
        left(Fiber.await(fiber))
        return Effect.forkIn(Fiber.interrupt(fiber), owner)
      })
      // Bounded also where the caller must not be interrupted: a COMMIT, a ROLLBACK.
      const awaited = Effect.interruptible(Fiber.await(fiber))
      const exit = yield* restore(Effect.timeoutOption(awaited, longest)).pipe(Effect.onInterrupt(() => abandon))
      if (Option.isSome(exit)) return yield* exit.value
      yield* abandon
      return yield* tookTooLong("query", longest)
    })
  )
