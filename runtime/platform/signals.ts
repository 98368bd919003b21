// Signals of the operating system as effects.
import { Effect, type Scope } from "effect"
import process from "node:process"

/** Runs an effect on each SIGHUP for as long as the Scope lives. */
export const onHangup = <R>(effect: Effect.Effect<void, never, R>): Effect.Effect<void, never, R | Scope.Scope> =>
  Effect.gen(function* () {
    const context = yield* Effect.context<R>()
    const handler = () => void Effect.runForkWith(context)(effect)
    yield* Effect.acquireRelease(
      Effect.sync(() => process.on("SIGHUP", handler)),
      () => Effect.sync(() => process.off("SIGHUP", handler))
    )
  })
