// Query vectors: cached in memory, single flight for equal queries, behind the circuit breaker. A flight belongs to the
// plugin: a search that gives up does not cancel it for other searches that wait for the same vector. A search with
// other branches waits only a moment, and does not wait for an endpoint known to be slow.
import { Context, Deferred, Effect, Layer } from "effect"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { LruCache } from "../../../kernel/cache/LruCache.ts"
import { CircuitBreaker } from "./CircuitBreaker.ts"
import { Embedder, EmbeddingFailed, type EmbeddingRequest } from "./Embedder.ts"

interface QueryVectorOptions {
  readonly entriesMax: number
  readonly patienceMillis: number
}

const tooSlow = new EmbeddingFailed({
  message: "the endpoint is slow: querying it in the background",
  perhapsTheTexts: false
})

export class QueryVectors extends Context.Service<
  QueryVectors,
  {
    /** A vector for one text, by `key` of generation and text. `isHurried`: other branches can answer. */
    readonly vector: (
      key: string,
      request: EmbeddingRequest,
      isHurried?: boolean
    ) => Effect.Effect<Float32Array, EmbeddingFailed>
  }
>()("tollkeeper/search-semantic/QueryVectors") {
  /**
   * `entriesMax`: capacity of the cache, least recently used evicted first. `patienceMillis`: how long a hurried
   * search waits, and the threshold of a slow answer.
   */
  static readonly layer = ({ entriesMax, patienceMillis }: QueryVectorOptions) =>
    Layer.effect(
      QueryVectors,
      Effect.gen(function* () {
        const embedder = yield* Embedder
        const breaker = yield* CircuitBreaker
        const scope = yield* Effect.scope
        const cache = new LruCache<string, Float32Array>({ name: "query-vectors", capacity: entriesMax })
        const flights = new Map<string, Deferred.Deferred<Float32Array, EmbeddingFailed>>()

        const timed = Effect.fnUntraced(function* (request: EmbeddingRequest) {
          const from = yield* monotonicMillis
          const [vector] = yield* breaker.run(embedder.embed(request))
          yield* breaker.answered((yield* monotonicMillis) - from <= patienceMillis)
          return vector!
        })

        /** Joins the request for a vector that is in flight, or starts one. */
        const flightOf = (key: string, request: EmbeddingRequest) =>
          Effect.suspend(() => {
            const flying = flights.get(key)
            if (flying !== undefined) return Effect.succeed(flying)
            const flight = Deferred.makeUnsafe<Float32Array, EmbeddingFailed>()
            flights.set(key, flight)
            const flown = timed(request).pipe(
              Effect.tap((vector) => Effect.sync(() => cache.set(key, vector))),
              Effect.onExit((exit) => {
                flights.delete(key)
                return Deferred.done(flight, exit)
              })
            )
            return Effect.as(Effect.forkIn(flown, scope), flight)
          })

        const hurried = Effect.fnUntraced(function* (
          key: string,
          request: EmbeddingRequest
        ): Effect.fn.Return<Float32Array, EmbeddingFailed> {
          const pace = yield* breaker.pace
          if (pace === "slow") return yield* tooSlow
          const flight = yield* flightOf(key, request)
          if (pace === "probe") return yield* tooSlow
          return yield* Effect.timeoutOrElse(Deferred.await(flight), {
            duration: patienceMillis,
            orElse: () => Effect.andThen(breaker.answered(false), Effect.fail(tooSlow))
          })
        })

        const vector = (
          key: string,
          request: EmbeddingRequest,
          isHurried = false
        ): Effect.Effect<Float32Array, EmbeddingFailed> =>
          Effect.suspend(() => {
            const cachedVector = cache.get(key)
            if (cachedVector !== undefined) return Effect.succeed(cachedVector)
            return isHurried ? hurried(key, request) : Effect.flatMap(flightOf(key, request), Deferred.await)
          })

        return QueryVectors.of({ vector })
      })
    )
}
