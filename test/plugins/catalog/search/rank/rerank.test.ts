// A reranker is called through its provider's interface, within limits, and accepted only when it scores each document
// once, in time.
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Option, Redacted } from "effect"
import { FetchHttpClient, HttpClient } from "effect/http"
import { createServer, type IncomingHttpHeaders } from "node:http"
import type { AddressInfo } from "node:net"
import { Settings } from "../../../../../kernel/config/Settings.ts"
import { SearchSettings } from "../../../../../plugins/catalog/contract.ts"
import { Reranker } from "../../../../../plugins/catalog/search/rank/Reranker.ts"
import type { SearchValues } from "../../../../../plugins/catalog/search/searchSection.ts"
import { rerank } from "../../../../../plugins/catalog/search/rank/rerank.ts"
import { resourceDocument } from "../../../search-lexical/resourceDocument.ts"

interface Received {
  body?: any
  headers?: IncomingHttpHeaders
}

interface Answer {
  readonly status?: number
  readonly body: unknown
}

/** A server that responds as configured: a status and a body by request, or never. */
const reranker = (
  configured: Answer | "silence" | ((body: unknown) => Answer | Promise<Answer>),
  received: Received = {}
) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => {
        const server = createServer((request, response) => {
          let text = ""
          request
            .on("data", (chunk) => (text += String(chunk)))
            .on("end", () => {
              received.body = JSON.parse(text)
              received.headers = request.headers
              if (configured === "silence") return
              const answering = typeof configured === "function" ? configured(received.body) : configured
              void Promise.resolve(answering).then(({ body, status }) =>
                response
                  .writeHead(status ?? 200, { "content-type": "application/json" })
                  .end(typeof body === "string" ? body : JSON.stringify(body))
              )
            })
        })
        return new Promise<typeof server>((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)))
      }),
      (server) =>
        Effect.promise(
          () =>
            new Promise<void>((resolve) => {
              server.closeAllConnections()
              server.close(() => resolve())
            })
        )
    ),
    (server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/rerank`
  )

const documents = [1n, 2n, 3n].map((id) =>
  resourceDocument({ id, serviceName: `service ${id}`, description: `x${"\u{1f600}".repeat(2_500)}` })
)

const ask = (url: string, key: Option.Option<Redacted.Redacted> = Option.none(), timeoutMillis = 60_000) =>
  Effect.gen(function* () {
    const client = yield* HttpClient.HttpClient
    return yield* rerank(
      client,
      { provider: "http", url, model: "m", top_k: 30, timeout_ms: timeoutMillis, api_key_env: undefined },
      key,
      "weather",
      documents
    )
  }).pipe(Effect.provide(FetchHttpClient.layer))

interface Spoken {
  /** Members of a request: required and optional ones. Anything else is refused. */
  readonly required: Readonly<Record<string, (value: unknown) => boolean>>
  readonly optional: ReadonlyArray<string>
  readonly answer: (scores: ReadonlyArray<number>) => unknown
}

const isText = (value: unknown) => typeof value === "string" && value !== ""
const areTexts = (value: unknown) => Array.isArray(value) && value.length > 0 && value.every(isText)
const byScore = (scores: ReadonlyArray<number>) =>
  scores.map((score, index) => ({ index, score })).toSorted((a, b) => b.score - a.score)

/** The interfaces, as strict as the strictest server that implements each. */
const interfaces: Readonly<Record<"cohere" | "tei" | "llamacpp", Spoken>> = {
  cohere: {
    required: { model: isText, query: isText, documents: areTexts },
    optional: ["top_n", "max_tokens_per_doc", "priority"],
    answer: (scores) => ({
      id: "07734bd2",
      results: byScore(scores).map(({ index, score }) => ({ index, relevance_score: score })),
      meta: { api_version: { version: "2" }, billed_units: { search_units: 1 } }
    })
  },
  tei: {
    required: { query: isText, texts: areTexts },
    optional: ["raw_scores", "return_text", "truncate", "truncation_direction"],
    answer: byScore
  },
  llamacpp: {
    required: { query: isText, documents: areTexts },
    optional: ["model", "top_n"],
    // In the order of the documents, and logits, which may be negative.
    answer: (scores) => ({
      model: "bge-reranker-v2-m3",
      object: "list",
      usage: { prompt_tokens: 42, total_tokens: 42 },
      results: scores.map((score, index) => ({ index, relevance_score: 10 * score - 9 }))
    })
  }
}

/** A server that implements one of the interfaces and returns the configured scores. */
const speaking = (spoken: Spoken, scores: ReadonlyArray<number>, received: Array<unknown>) =>
  reranker((body: any) => {
    received.push(body)
    const members = Object.entries(body as Record<string, unknown>)
    const isFit =
      Object.entries(spoken.required).every(([name, holds]) => holds(body[name])) &&
      members.every(([name]) => name in spoken.required || spoken.optional.includes(name))
    return isFit ? { body: spoken.answer(scores) } : { status: 422, body: { error: "unknown or missing members" } }
  })

const portOf = (url: string, provider: "cohere" | "tei" | "llamacpp" | "http", more = {}) =>
  Layer.build(
    Reranker.layer.pipe(
      Layer.provide(FetchHttpClient.layer),
      Layer.provide(
        Layer.succeed(SearchSettings, {
          reranking: { provider, url, model: "m", top_k: 30, timeout_ms: 60_000, api_key_env: undefined, ...more }
        } as SearchValues)
      ),
      Layer.provide(Layer.succeed(Settings, {} as Settings["Service"]))
    )
  ).pipe(Effect.map((parts) => Context.get(parts, Reranker).order))

describe("a reranker's interface", () => {
  it.live.each(["cohere", "tei", "llamacpp"] as const)(
    "the reranker interface of %s matches its server's",
    (provider) =>
      Effect.gen(function* () {
        const received: Array<unknown> = []
        const order = yield* portOf(yield* speaking(interfaces[provider], [0.1, 0.9, 0.5], received), provider)
        expect(yield* order("weather", documents)).toEqual([1, 2, 0])
        expect(received).toHaveLength(1)
        // None of them accepts a response for another interface.
        const all = yield* portOf(yield* speaking(interfaces[provider], [1, 2, 3], []), "http")
        expect((yield* Effect.flip(all("weather", documents)))._tag).toBe("RerankingFailed")
      })
  )

  it.live("identical searches share one reranker request; a failing reranker is not called", () =>
    Effect.gen(function* () {
      const observed: Array<any> = []
      const waiting: Array<() => void> = []
      const held = yield* reranker((body: any) => {
        observed.push(body)
        return new Promise((resolve) => waiting.push(() => resolve({ body: byScore([1, 3, 2]) })))
      })
      const order = yield* portOf(held, "tei")
      const twins = yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(order("same", documents)))
      const others = yield* Effect.forEach([1, 2, 3, 4, 5, 6, 7], (at) =>
        Effect.forkChild(order(`other ${at}`, documents))
      )
      while (observed.length < 8) yield* Effect.sleep("10 millis")
      expect((yield* Effect.flip(order("one more", documents))).message).toContain("in flight")
      for (const end of waiting) end()
      for (const one of [...twins, ...others]) expect(yield* Fiber.join(one)).toEqual([1, 2, 0])
      expect(observed.map(({ query }) => query).filter((query) => query === "same")).toHaveLength(1)

      let asked = 0
      const failing = yield* reranker(() => {
        asked += 1
        return { status: 503, body: {} }
      })
      const broken = yield* portOf(failing, "cohere")
      for (let at = 0; at < 8; at++)
        expect((yield* Effect.flip(broken(`q${at}`, documents)))._tag).toBe("RerankingFailed")
      expect(asked).toBe(5)
    })
  )
})

describe("a reranker", () => {
  it.live("the reranker's order is read in either spelling, and requests are minimal", () =>
    Effect.gen(function* () {
      const received: Received = {}
      const scores = [0.1, 0.9, 0.5]
      const results = scores.map((relevance_score, index) => ({ index, relevance_score }))
      expect(
        yield* ask(yield* reranker({ body: { results } }, received), Option.some(Redacted.make("secret")))
      ).toEqual([1, 2, 0])
      expect(yield* ask(yield* reranker({ body: scores.map((score, index) => ({ index, score })) }))).toEqual([1, 2, 0])
      expect(received.headers?.authorization).toBe("Bearer secret")
      expect(received.body).toMatchObject({ model: "m", query: "weather", top_n: 3 })
      expect(received.body.documents.every((text: string) => text.length <= 2_000 && text.isWellFormed())).toBe(true)
    })
  )

  it.live.each([
    ["an error", { status: 500, body: { results: [] } }],
    ["nonsense", { body: "<html>" }],
    ["too few", { body: { results: [{ index: 0, relevance_score: 1 }] } }],
    ["one twice", { body: { results: [0, 0, 1].map((index) => ({ index, relevance_score: 1 })) } }],
    ["one that was not sent", { body: { results: [0, 1, 7].map((index) => ({ index, relevance_score: 1 })) } }],
    ["no score", { body: { results: [0, 1, 2].map((index) => ({ index })) } }],
    [
      "a score that is no number",
      {
        body: `{"results":[${["1e999", "1", "1"]
          .map((score, index) => `{"index":${index},"relevance_score":${score}}`)
          .join()}]}`
      }
    ],
    [
      "more than a megabyte",
      { body: { results: [0, 1, 2].map((index) => ({ index, relevance_score: 1, document: "x".repeat(500_000) })) } }
    ],
    ["nothing", "silence"]
  ] as const)("a reranker is not trusted when it answers %s", ([, answer]) =>
    Effect.gen(function* () {
      const failure = yield* Effect.flip(
        ask(yield* reranker(answer), Option.none(), answer === "silence" ? 300 : undefined)
      )
      expect(failure._tag).toBe("RerankingFailed")
    })
  )
})
