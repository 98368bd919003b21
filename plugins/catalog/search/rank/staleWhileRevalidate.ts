// A report over much is cached for a minute, so that a page that requests it repeatedly waits once, and the database
// works on it at most every quarter of a minute. One over little is made each time. The rows that were counted decide
// which it is, never a clock.
import { Effect, type Scope } from "effect"
import { monotonicMillis } from "../../../../kernel/time/monotonicMillis.ts"
import { LruCache } from "../../../../kernel/cache/LruCache.ts"

const keptMillis = 60_000
/** Refreshed in the background when it is older than this. */
const freshMillis = 15_000
const keptMax = 16

interface Kept<A> {
  readonly value: A
  readonly at: number
  isRenewed: boolean
}

/** Caches `make` by key; its background work ends with the Scope. */
export const staleWhileRevalidate = Effect.fnUntraced(function* <K, A, E, R>(
  name: string,
  make: (key: K) => Effect.Effect<A, E, R>,
  isLarge: (value: A) => boolean
): Effect.fn.Return<(key: K) => Effect.Effect<A, E, R>, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const kept = new LruCache<K, Kept<A>>({ name, capacity: keptMax })

  const renew = Effect.fnUntraced(function* (key: K) {
    const value = yield* make(key)
    const at = yield* monotonicMillis
    if (isLarge(value)) kept.set(key, { value, at, isRenewed: false })
    else kept.delete(key)
    return value
  })

  return Effect.fnUntraced(function* (key: K) {
    const now = yield* monotonicMillis
    const known = kept.get(key, ({ at }) => now - at <= keptMillis)
    if (known === undefined) return yield* renew(key)
    if (now - known.at > freshMillis && !known.isRenewed) {
      known.isRenewed = true
      const again = Effect.catchCause(renew(key), (cause) =>
        Effect.andThen(
          Effect.sync(() => (known.isRenewed = false)),
          Effect.logWarning("cannot refresh a report; serving the last one", cause)
        )
      )
      yield* Effect.forkIn(again, scope)
    }
    return known.value
  })
})
