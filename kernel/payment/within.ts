// No request waits longer than it says, whatever it waits for, and none much longer than the process, which answers
// what it has begun before it stops. The effect runs in a fiber of the process; when its time is over it is interrupted
// and left behind, for the end of a statement that a database does not answer, or of a finalizer behind it, may be as
// long in coming as the answer.
import { Duration, Effect, Fiber, Option, type Scope } from "effect"
import { ListenAt } from "../http/ListenAt.ts"

/**
 * How long what was begun may go on once the process is asked to stop: longer than an outcome is waited for then, and
 * shorter than the listener waits.
 */
const stoppingWait = Duration.millis(2_500)

export const within = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  scope: Scope.Scope,
  duration: Duration.Input,
  late: () => A
): Effect.Effect<A, E, R | ListenAt> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const { closing } = yield* ListenAt
      const fiber = yield* Effect.forkIn(restore(effect), scope, { startImmediately: true })
      const leave = Effect.sync(() => fiber.interruptUnsafe())
      const stopping = Effect.as(Effect.andThen(closing, Effect.sleep(stoppingWait)), Option.none())
      const inTime = Effect.raceFirst(Effect.timeoutOption(Fiber.await(fiber), duration), stopping)
      const ended = yield* restore(inTime).pipe(Effect.onInterrupt(() => leave))
      if (Option.isSome(ended)) return yield* ended.value
      yield* leave
      return late()
    })
  )
