// Query vectors: cached in memory, one flight for equal queries that come at once, behind the breaker. A flight belongs
// to the plugin: a search that gives up takes nothing from the others that wait for the same vector.
import { Context, Deferred, Effect, Layer } from "effect"
import { Breaker } from "./Breaker.ts"
import { Embedder, type EmbeddingFailed, type EmbeddingRequest } from "./Embedder.ts"

export class QueryVectors extends Context.Service<
  QueryVectors,
  {
    /** A vector for one text, by `key` of generation and text. */
    readonly vector: (key: string, request: EmbeddingRequest) => Effect.Effect<Float32Array, EmbeddingFailed>
  }
>()("tollkeeper/search-semantic/QueryVectors") {
  /** `entriesMax`: vectors kept; the one that was asked for longest ago goes first. */
  static readonly layer = (entriesMax: number) =>
    Layer.effect(
      QueryVectors,
      Effect.gen(function* () {
        const embedder = yield* Embedder
        const breaker = yield* Breaker
        const scope = yield* Effect.scope
        const cache = new Map<string, Float32Array>()
        const flights = new Map<string, Deferred.Deferred<Float32Array, EmbeddingFailed>>()
        const keep = (key: string, vector: Float32Array): void => {
          cache.delete(key)
          cache.set(key, vector)
          if (cache.size > entriesMax) cache.delete(cache.keys().next().value!)
        }

        const fly = (
          key: string,
          request: EmbeddingRequest,
          flight: Deferred.Deferred<Float32Array, EmbeddingFailed>
        ) =>
          breaker.run(embedder.embed(request)).pipe(
            Effect.map(([vector]) => vector!),
            Effect.tap((vector) => Effect.sync(() => keep(key, vector))),
            Effect.onExit((exit) => {
              flights.delete(key)
              return Deferred.done(flight, exit)
            })
          )

        const vector = (key: string, request: EmbeddingRequest): Effect.Effect<Float32Array, EmbeddingFailed> =>
          Effect.suspend(() => {
            const known = cache.get(key)
            if (known !== undefined) {
              keep(key, known)
              return Effect.succeed(known)
            }
            const flying = flights.get(key)
            if (flying !== undefined) return Deferred.await(flying)
            const flight = Deferred.makeUnsafe<Float32Array, EmbeddingFailed>()
            flights.set(key, flight)
            return Effect.andThen(Effect.forkIn(fly(key, request, flight), scope), Deferred.await(flight))
          })

        return QueryVectors.of({ vector })
      })
    )
}
