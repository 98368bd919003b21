// Reranking of the best hits by an endpoint, in the format of its interface: Cohere's, that of Hugging Face's
// text-embeddings-inference (TEI), llama.cpp's, or one with the fields of all of them, for servers that ignore unknown
// fields (Jina, vLLM). It is optional, bounded in time, and accepted only if its answer is a permutation of the
// request's hits; otherwise the fused order is kept.
import { Data, Effect, Option, type Redacted, Schema } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { readText } from "../../../../kernel/http/readText.ts"
import type { ResourceDocument } from "../../contract.ts"
import type { SearchValues } from "../searchSection.ts"

export class RerankingFailed extends Data.TaggedError("RerankingFailed")<{ readonly message: string }> {}

/** Characters of a document that the reranker reads. */
const charactersMax = 2_000
const answerBytesMax = 1_048_576

const Scored = Schema.Struct({
  index: Schema.Int,
  relevance_score: Schema.optionalKey(Schema.Finite),
  score: Schema.optionalKey(Schema.Finite)
})
const Answer = Schema.Union([Schema.Struct({ results: Schema.Array(Scored) }), Schema.Array(Scored)])
const decodeAnswer = Schema.decodeUnknownEffect(Answer)

const textOf = ({ description, serviceName, tags, toolName }: ResourceDocument): string =>
  [serviceName, toolName, description, tags.join(", ")]
    .filter((part) => part !== "")
    .join("\n")
    .slice(0, charactersMax)
    .toWellFormed()

type Provider = Exclude<SearchValues["reranking"]["provider"], "none">

/** The body of a request, with the fields of its interface only: an interface may not accept another's fields. */
const requests: Readonly<
  Record<Provider, (model: string, query: string, texts: ReadonlyArray<string>) => Readonly<Record<string, unknown>>>
> = {
  cohere: (model, query, documents) => ({ model, query, documents, top_n: documents.length }),
  // Without `truncate` a text beyond the model's length fails the whole request.
  tei: (_, query, texts) => ({ query, texts, raw_scores: false, return_text: false, truncate: true }),
  llamacpp: (model, query, documents) => ({ model, query, documents, top_n: documents.length }),
  http: (model, query, texts) => ({
    model,
    query,
    documents: texts,
    texts,
    top_n: texts.length,
    return_documents: false
  })
}

/** The order of the documents by the endpoint, best first, as indexes. */
export const rerank = Effect.fn("Catalog.rerank")(function* (
  client: HttpClient.HttpClient,
  { model, provider, timeout_ms: timeoutMillis, url }: SearchValues["reranking"] & { readonly provider: Provider },
  key: Option.Option<Redacted.Redacted>,
  query: string,
  documents: ReadonlyArray<ResourceDocument>
): Effect.fn.Return<ReadonlyArray<number>, RerankingFailed> {
  const failed = (message: string) => new RerankingFailed({ message })
  const texts = documents.map(textOf)
  const asked = requests[provider](model, query, texts)
  const request = HttpClientRequest.post(url).pipe(
    HttpClientRequest.bodyJsonUnsafe(asked),
    Option.isSome(key) ? HttpClientRequest.bearerToken(key.value) : (same) => same
  )
  const answer = yield* Effect.gen(function* () {
    const response = yield* client
      .execute(request)
      .pipe(Effect.provideService(HttpClient.TracerDisabledWhen, () => true))
    if (response.status !== 200) return yield* failed(`the reranker answers ${response.status}`)
    const text = yield* readText(response.stream, answerBytesMax, () => failed("the reranker's answer is too long"))
    return yield* decodeAnswer(
      yield* Effect.try({
        try: () => JSON.parse(text) as unknown,
        catch: () => failed("the reranker's answer cannot be read")
      })
    )
  }).pipe(
    Effect.timeout(timeoutMillis),
    Effect.mapError((error) =>
      error instanceof RerankingFailed ? error : failed("the reranker timed out or returned an invalid response")
    )
  )
  const scored = ("results" in answer ? answer.results : answer).map(({ index, relevance_score, score }) => ({
    index,
    score: relevance_score ?? score
  }))
  const indexes = new Set(scored.map(({ index }) => index))
  const isWhole =
    scored.length === documents.length &&
    indexes.size === documents.length &&
    scored.every(({ index, score }) => index >= 0 && index < documents.length && score !== undefined)
  if (!isWhole) return yield* failed("the reranker did not score each document once")
  return scored.sort((a, b) => b.score! - a.score! || a.index - b.index).map(({ index }) => index)
})
