// No request waits longer than it says, whatever it waits for. The effect runs in a fiber of the process; when its time
// is over it is interrupted and left behind, for the end of a statement that a database does not answer, or of a
// finalizer behind it, may be as long in coming as the answer.
import { type Duration, Effect, Fiber, Option, type Scope } from "effect"

export const within = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  scope: Scope.Scope,
  duration: Duration.Input,
  late: () => A
): Effect.Effect<A, E, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkIn(restore(effect), scope, { startImmediately: true })
      const leave = Effect.sync(() => fiber.interruptUnsafe())
      const ended = yield* restore(Effect.timeoutOption(Fiber.await(fiber), duration)).pipe(
        Effect.onInterrupt(() => leave)
      )
      if (Option.isSome(ended)) return yield* ended.value
      yield* leave
      return late()
    })
  )
