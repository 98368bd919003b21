// The port of the reranker, by the settings: off, or an endpoint (`rerank.ts`). On failure the ranking keeps the fused
// order. Equal concurrent searches share one request (single flight), a few run concurrently and none waits for a
// place, and an endpoint that failed several times in a row has its circuit open for a while, after which one search
// tries.
import { Context, Deferred, Effect, Exit, Layer, Option } from "effect"
import { HttpClient } from "effect/http"
import { Settings } from "../../../../kernel/config/Settings.ts"
import { makeCircuitBreaker } from "../../../../kernel/effect/circuitBreaker.ts"
import { type ResourceDocument, SearchSettings } from "../../contract.ts"
import { rerank, RerankingFailed } from "./rerank.ts"

/** Concurrent requests; a search beyond is not reranked. */
const concurrentMax = 8
/** Consecutive failures after which the circuit opens, and for how long. */
const failuresMax = 5
const restMillis = 10_000

type Order = Effect.Effect<ReadonlyArray<number>, RerankingFailed>

/** The concurrency limit, circuit breaker and single flight of one endpoint. */
const makeShared = Effect.gen(function* () {
  const circuit = yield* makeCircuitBreaker<RerankingFailed>({
    failures: failuresMax,
    openMillis: restMillis,
    refused: () => new RerankingFailed({ message: "circuit open: the reranker failed repeatedly" })
  })
  const flights = new Map<string, Deferred.Deferred<ReadonlyArray<number>, RerankingFailed>>()
  let inFlight = 0

  const run = (order: Order): Order =>
    Effect.suspend(() => {
      if (inFlight >= concurrentMax)
        return Effect.fail(new RerankingFailed({ message: "too many reranking requests are in flight" }))
      inFlight += 1
      return Effect.ensuring(
        circuit.run(order),
        Effect.sync(() => (inFlight -= 1))
      )
    })

  return Effect.fnUntraced(function* (
    flight: string,
    order: Order
  ): Effect.fn.Return<ReadonlyArray<number>, RerankingFailed> {
    const running = flights.get(flight)
    if (running !== undefined) return yield* Deferred.await(running)
    const answer = Deferred.makeUnsafe<ReadonlyArray<number>, RerankingFailed>()
    flights.set(flight, answer)
    return yield* run(order).pipe(
      Effect.onExit((exit) => {
        flights.delete(flight)
        const interrupted = new RerankingFailed({ message: "the search that requested it was interrupted" })
        return Deferred.done(answer, Exit.hasInterrupts(exit) ? Exit.fail(interrupted) : exit)
      })
    )
  })
})

export class Reranker extends Context.Service<
  Reranker,
  {
    /** Hits that are reranked; 0 when it is off. */
    readonly topK: number
    /** The order of the documents, best first, as indexes: each once. */
    readonly order: (query: string, documents: ReadonlyArray<ResourceDocument>) => Order
  }
>()("tollkeeper/catalog/Reranker") {
  static readonly layer = Layer.effect(
    Reranker,
    Effect.gen(function* () {
      const { reranking } = yield* SearchSettings
      const client = yield* HttpClient.HttpClient
      const key = reranking.api_key_env === undefined ? Option.none() : (yield* Settings).secret(reranking.api_key_env)
      const { provider } = reranking
      if (provider === "none") return Reranker.of({ topK: 0, order: () => Effect.succeed([]) })
      const share = yield* makeShared
      return Reranker.of({
        topK: reranking.top_k,
        order: (query, documents) =>
          share(
            JSON.stringify([query, documents.map(({ id, version }) => `${id} ${version}`)]),
            rerank(client, { ...reranking, provider }, key, query, documents)
          )
      })
    })
  )
}
