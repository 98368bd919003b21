// Port from texts to vectors, and its adapter for endpoints with OpenAI's embeddings interface (OpenAI, OpenRouter,
// TEI, Ollama, vLLM, llama.cpp). An answer is validated: as many vectors as texts, each of the configured length,
// finite, not zero. Vectors are normalized to length 1. Errors hold no text, key or vector.
import { Context, Data, Effect, Layer, Option, Redacted, Schema } from "effect"
import { type CallFailed, HttpCalls } from "../../../kernel/platform/HttpCalls.ts"

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
  }) => Layer.effect(Embedder, makeOpenAi(options))
}

const answerBytesMax = 64 * 1_048_576

const Answer = Schema.Struct({
  data: Schema.Array(Schema.Struct({ index: Schema.Int, embedding: Schema.Unknown }))
})

const whyNoAnswer: Readonly<Record<CallFailed["reason"], string>> = {
  timeout: "the endpoint did not answer in time",
  unreachable: "the endpoint cannot be reached",
  "too long": "the endpoint's answer is too long"
}

const isHttp = (url: string): boolean => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)

const failed = (message: string, perhapsTheTexts = false) => new EmbeddingFailed({ message, perhapsTheTexts })

/** The vector with length 1, or why it is invalid. */
export const checkVector = (numbers: ReadonlyArray<unknown>, dimension: number): Float32Array | string => {
  if (numbers.length !== dimension) return `a vector has ${numbers.length} numbers, ${dimension} are required`
  const vector = new Float32Array(dimension)
  let square = 0
  for (let at = 0; at < dimension; at++) {
    const one = numbers[at]
    square += typeof one === "number" ? one * one : Number.NaN
  }
  if (!Number.isFinite(square)) return "a vector contains a value that is not a number"
  if (square < 1e-12) return "a vector is zero"
  const length = Math.sqrt(square)
  for (let at = 0; at < dimension; at++) vector[at] = (numbers[at] as number) / length
  return vector
}

const makeOpenAi = Effect.fnUntraced(function* ({
  key,
  sendDimension
}: {
  readonly key: Option.Option<Redacted.Redacted>
  readonly sendDimension: boolean
}) {
  const http = yield* HttpCalls

  const ask = Effect.fnUntraced(function* ({ dimension, model, texts, timeoutMillis, url }: EmbeddingRequest) {
    if (!isHttp(url)) return yield* failed(whyNoAnswer.unreachable)
    const headers = Option.match(key, {
      onNone: () => ({}),
      onSome: (secret) => ({ authorization: `Bearer ${Redacted.value(secret)}` })
    })
    const body = JSON.stringify({
      model,
      input: texts,
      encoding_format: "float",
      ...(sendDimension ? { dimensions: dimension } : {})
    })
    const answer = yield* Effect.mapError(
      http.post({ url, headers, body, timeoutMillis, bytesMax: answerBytesMax }),
      ({ reason }) => failed(whyNoAnswer[reason])
    )
    if (answer.status !== 200) {
      return yield* failed(
        `the endpoint answers ${answer.status}`,
        answer.status === 400 || answer.status === 413 || answer.status === 422
      )
    }
    const unreadable = () => failed("the endpoint's answer cannot be read")
    const parsed = yield* Effect.try({ try: () => JSON.parse(answer.body) as unknown, catch: unreadable })
    const { data } = yield* Effect.mapError(Schema.decodeUnknownEffect(Answer)(parsed), unreadable)
    const vectors: Array<Float32Array> = []
    for (const { embedding, index } of data) {
      if (!Array.isArray(embedding)) return yield* unreadable()
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
        Effect.withSpan("search.embed", { kind: "client", attributes: { texts: request.texts.length } })
      )
  })
})
