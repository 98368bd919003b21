// What is kept of a database is kept of one place to read from: a replica may know less than the primary, and is asked
// by itself.
import { Effect, type Scope } from "effect"
import { ReadTarget, type ReadTargetName } from "./ReadReplica.ts"

/**
 * That of the place which the asking fiber reads from, made in one turn by whoever asks first; what it began ends with
 * the Scope that this is called in.
 */
export const perReadTarget = <A, R>(
  make: (source: ReadTargetName) => Effect.Effect<A, never, R>
): Effect.Effect<Effect.Effect<A>, never, R | Scope.Scope> =>
  Effect.map(Effect.context<R | Scope.Scope>(), (services) => {
    const known = new Map<ReadTargetName, A>()
    return Effect.gen(function* () {
      const source = yield* ReadTarget
      const before = known.get(source)
      if (before !== undefined) return before
      const made = yield* Effect.provideContext(make(source), services)
      known.set(source, made)
      return made
    })
  })
