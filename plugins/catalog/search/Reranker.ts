// The port of a second look at the best hits, by the settings: off, or an endpoint (`rerank.ts`). It fails soft: what
// becomes of its failure is the ranking's affair, and the fused order then stands.
import { Context, Effect, Layer, Option } from "effect"
import { HttpClient } from "effect/http"
import { Settings } from "../../../kernel/config/Settings.ts"
import { type ResourceDocument, SearchSettings } from "../contract.ts"
import { rerank, type RerankingFailed } from "./rerank.ts"

export class Reranker extends Context.Service<
  Reranker,
  {
    /** Hits that are looked at again; 0 when it is off. */
    readonly topK: number
    /** The order of the documents, best first, as indexes: each once. */
    readonly order: (
      query: string,
      documents: ReadonlyArray<ResourceDocument>
    ) => Effect.Effect<ReadonlyArray<number>, RerankingFailed>
  }
>()("tollkeeper/catalog/Reranker") {
  static readonly layer = Layer.effect(
    Reranker,
    Effect.gen(function* () {
      const { reranking } = yield* SearchSettings
      const client = yield* HttpClient.HttpClient
      const key = reranking.api_key_env === undefined ? Option.none() : (yield* Settings).secret(reranking.api_key_env)
      return Reranker.of({
        topK: reranking.provider === "none" ? 0 : reranking.top_k,
        order: (query, documents) => rerank(client, reranking, key, query, documents)
      })
    })
  )
}
