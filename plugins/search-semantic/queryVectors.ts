// Query vectors: cached in memory, one flight for equal queries that come at once, and a breaker that leaves a failing
// endpoint alone for a while, so that a dead provider costs a search nothing but its semantic half. A flight belongs to
// the plugin: a search that gives up takes nothing from the others that wait for the same vector.
import { Clock, Deferred, Effect, Exit, type Scope } from "effect"
import { type Embedder, EmbeddingFailed, type EmbeddingRequest } from "./Embedder.ts"

export interface BreakerOptions {
  /** Failures in a row after which it opens. */
  readonly failures: number
  /** How long it stays open; then one request tries. */
  readonly millis: number
}

export interface Breaker {
  readonly run: <A>(effect: Effect.Effect<A, EmbeddingFailed>) => Effect.Effect<A, EmbeddingFailed>
  /** The last failure, while there is one. */
  readonly trouble: () => string | undefined
  readonly isOpen: Effect.Effect<boolean>
}

export const makeBreaker = ({ failures, millis }: BreakerOptions): Breaker => {
  let inRow = 0
  let openUntil = 0
  let trouble: string | undefined
  const isOpen = Effect.map(Clock.currentTimeMillis, (now) => now < openUntil)
  return {
    isOpen,
    trouble: () => trouble,
    run: (effect) =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        if (now < openUntil)
          return yield* new EmbeddingFailed({
            message: `the endpoint is left alone: ${trouble}`,
            perhapsTheTexts: false
          })
        // While it is half open, one request tries and the others are still kept away.
        if (inRow >= failures) openUntil = now + millis
        const exit = yield* Effect.exit(effect)
        if (Exit.isSuccess(exit)) {
          inRow = 0
          openUntil = 0
          trouble = undefined
          return exit.value
        }
        const error = exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error
        if (error !== undefined && !error.perhapsTheTexts) {
          inRow += 1
          trouble = error.message
          if (inRow >= failures) openUntil = (yield* Clock.currentTimeMillis) + millis
        }
        return yield* Effect.failCause(exit.cause)
      })
  }
}

export interface QueryVectorOptions {
  readonly embedder: Embedder["Service"]
  readonly breaker: Breaker
  /** Vectors kept; the one that was asked for longest ago goes first. */
  readonly entriesMax: number
  readonly scope: Scope.Scope
}

/** A vector for one text, by `key` of generation and text. */
export const makeQueryVectors = ({ breaker, embedder, entriesMax, scope }: QueryVectorOptions) => {
  const cache = new Map<string, Float32Array>()
  const flights = new Map<string, Deferred.Deferred<Float32Array, EmbeddingFailed>>()

  const fly = (key: string, request: EmbeddingRequest, flight: Deferred.Deferred<Float32Array, EmbeddingFailed>) =>
    breaker.run(embedder.embed(request)).pipe(
      Effect.map(([vector]) => vector!),
      Effect.tap((vector) =>
        Effect.sync(() => {
          cache.set(key, vector)
          if (cache.size > entriesMax) cache.delete(cache.keys().next().value!)
        })
      ),
      Effect.onExit((exit) => {
        flights.delete(key)
        return Deferred.done(flight, exit)
      })
    )

  return (key: string, request: EmbeddingRequest): Effect.Effect<Float32Array, EmbeddingFailed> =>
    Effect.suspend(() => {
      const known = cache.get(key)
      if (known !== undefined) {
        cache.delete(key)
        cache.set(key, known)
        return Effect.succeed(known)
      }
      const flying = flights.get(key)
      if (flying !== undefined) return Deferred.await(flying)
      const flight = Deferred.makeUnsafe<Float32Array, EmbeddingFailed>()
      flights.set(key, flight)
      return Effect.andThen(Effect.forkIn(fly(key, request, flight), scope), Deferred.await(flight))
    })
}
