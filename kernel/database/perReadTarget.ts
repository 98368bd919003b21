// State cached per read target: a replica may be behind the primary, so each has separate state.
import { Effect, type Scope } from "effect"
import { ReadTarget, type ReadTargetName } from "./ReadReplica.ts"

/**
 * The value for the calling fiber's read target, made synchronously on first use; its resources end with the Scope that
 * this is called in.
 */
export const perReadTarget = <A, R>(
  make: (source: ReadTargetName) => Effect.Effect<A, never, R>
): Effect.Effect<Effect.Effect<A>, never, R | Scope.Scope> =>
  Effect.map(Effect.context<R | Scope.Scope>(), (services) => {
    const byTarget = new Map<ReadTargetName, A>()
    return Effect.gen(function* () {
      const source = yield* ReadTarget
      const before = byTarget.get(source)
      if (before !== undefined) return before
      const made = yield* Effect.provideContext(make(source), services)
      byTarget.set(source, made)
      return made
    })
  })
