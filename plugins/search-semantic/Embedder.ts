// Who turns texts into vectors: one port, and its adapter for endpoints that speak OpenAI's embeddings interface
// (OpenAI, OpenRouter, TEI, Ollama, vLLM, llama.cpp). An answer is believed only as far as it checks: as many vectors
// as texts, each of the wanted length, finite, not zero. Vectors leave here with length 1. Errors hold no text, key or
// vector.
import { Context, Data, Effect, Layer, Option, Redacted, Schema, Stream } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import { readText } from "../../kernel/http/readText.ts"

export class EmbeddingFailed extends Data.TaggedError("EmbeddingFailed")<{
  readonly message: string
  /** The endpoint is fine and these texts are the reason: trying them one by one may help. */
  readonly perhapsTheTexts: boolean
}> {}

export interface EmbeddingRequest {
  readonly url: string
  readonly model: string
  readonly dimension: number
  readonly texts: ReadonlyArray<string>
  readonly timeoutMillis: number
}

export class Embedder extends Context.Service<
  Embedder,
  {
    /** One vector of length 1 a text, in their order. */
    readonly embed: (request: EmbeddingRequest) => Effect.Effect<ReadonlyArray<Float32Array>, EmbeddingFailed>
  }
>()("tollkeeper/search-semantic/Embedder") {
  static readonly layer = (options: {
    readonly key: Option.Option<Redacted.Redacted>
    readonly sendDimension: boolean
  }) => Layer.effect(Embedder, makeOpenAi(options)).pipe(Layer.provide(FetchHttpClient.layer))
}

const answerBytesMax = 64 * 1_048_576

const Answer = Schema.Struct({
  data: Schema.Array(Schema.Struct({ index: Schema.Int, embedding: Schema.Array(Schema.Number) }))
})

const failed = (message: string, perhapsTheTexts = false) => new EmbeddingFailed({ message, perhapsTheTexts })

/** The vector with length 1, or why it is none. */
export const checkVector = (numbers: ReadonlyArray<number>, dimension: number): Float32Array | string => {
  if (numbers.length !== dimension) return `a vector has ${numbers.length} numbers, ${dimension} are required`
  let square = 0
  for (const one of numbers) square += one * one
  if (!Number.isFinite(square)) return "a vector holds what is not a number"
  if (square < 1e-12) return "a vector is zero"
  const length = Math.sqrt(square)
  return Float32Array.from(numbers, (one) => one / length)
}

const makeOpenAi = Effect.fnUntraced(function* ({
  key,
  sendDimension
}: {
  readonly key: Option.Option<Redacted.Redacted>
  readonly sendDimension: boolean
}) {
  const client = yield* HttpClient.HttpClient

  const ask = Effect.fnUntraced(function* ({ dimension, model, texts, url }: EmbeddingRequest) {
    const request = HttpClientRequest.post(url).pipe(
      HttpClientRequest.bodyJsonUnsafe({
        model,
        input: texts,
        encoding_format: "float",
        ...(sendDimension ? { dimensions: dimension } : {})
      }),
      Option.isSome(key) ? HttpClientRequest.bearerToken(key.value) : (same) => same
    )
    const response = yield* Effect.mapError(
      client.execute(request).pipe(Effect.provideService(HttpClient.TracerDisabledWhen, () => true)),
      () => failed("the endpoint cannot be reached")
    )
    const unreadable = () => failed("the endpoint's answer cannot be read")
    if (response.status !== 200) {
      yield* Effect.ignore(Stream.runDrain(Stream.take(response.stream, 4)))
      return yield* failed(
        `the endpoint answers ${response.status}`,
        response.status === 400 || response.status === 413 || response.status === 422
      )
    }
    const tooLong = () => failed("the endpoint's answer is too long")
    const text = yield* readText(response.stream, answerBytesMax, tooLong).pipe(
      Effect.mapError((error) => (error instanceof EmbeddingFailed ? error : unreadable()))
    )
    const parsed = yield* Effect.try({ try: () => JSON.parse(text) as unknown, catch: unreadable })
    const { data } = yield* Effect.mapError(Schema.decodeUnknownEffect(Answer)(parsed), unreadable)
    const vectors: Array<Float32Array> = []
    for (const { embedding, index } of data) {
      const vector = checkVector(embedding, dimension)
      if (typeof vector === "string") return yield* failed(vector, embedding.length === dimension)
      if (index < 0 || index >= texts.length || vectors[index] !== undefined)
        return yield* failed("the endpoint numbers its vectors wrongly")
      vectors[index] = vector
    }
    if (data.length !== texts.length) return yield* failed(`${data.length} vectors for ${texts.length} texts`)
    return vectors
  })

  return Embedder.of({
    embed: (request) =>
      ask(request).pipe(
        Effect.timeoutOrElse({
          duration: request.timeoutMillis,
          orElse: () => Effect.fail(failed("the endpoint did not answer in time"))
        }),
        Effect.withSpan("search.embed", { kind: "client", attributes: { texts: request.texts.length } })
      )
  })
})
