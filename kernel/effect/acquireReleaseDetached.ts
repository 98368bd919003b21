// Acquires a resource with a release that needs no service of its caller. `Effect.acquireRelease` keeps the caller's
// services for the release and merges them over those of the fiber that closes the Scope: with ninety of them that
// costs more than most releases.
import { Effect, type Exit, Scope } from "effect"

/** Acquired uninterruptibly, unless `interruptible`; released when the Scope ends, for any reason. */
export const acquireReleaseDetached = <A, E, R>(
  acquire: Effect.Effect<A, E, R>,
  release: (acquired: A, exit: Exit.Exit<unknown, unknown>) => Effect.Effect<void>,
  options: { readonly interruptible?: boolean } = {}
): Effect.Effect<A, E, R | Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.scope, (scope) =>
      Effect.tap(options.interruptible === true ? restore(acquire) : acquire, (acquired) =>
        Scope.addFinalizerExit(scope, (exit) => release(acquired, exit))
      )
    )
  )
