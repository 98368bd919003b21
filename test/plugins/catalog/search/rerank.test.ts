// A reranker is believed only when it scores each document once, in time.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Option, Redacted } from "effect"
import { FetchHttpClient, HttpClient } from "effect/http"
import { createServer, type IncomingHttpHeaders } from "node:http"
import type { AddressInfo } from "node:net"
import { rerank } from "../../../../plugins/catalog/search/rerank.ts"
import { resourceDocument } from "../../search-lexical/resourceDocument.ts"

interface Heard {
  body?: any
  headers?: IncomingHttpHeaders
}

/** A server that answers as told: a status and a body, or never. */
const reranker = (answer: { readonly status?: number; readonly body: unknown } | "silence", heard: Heard = {}) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => {
        const server = createServer((request, response) => {
          let text = ""
          request
            .on("data", (chunk) => (text += String(chunk)))
            .on("end", () => {
              heard.body = JSON.parse(text)
              heard.headers = request.headers
              if (answer !== "silence")
                response
                  .writeHead(answer.status ?? 200, { "content-type": "application/json" })
                  .end(typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body))
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
  resourceDocument({ id, serviceName: `service ${id}`, description: "x".repeat(5_000) })
)

const ask = (url: string, key: Option.Option<Redacted.Redacted> = Option.none()) =>
  Effect.gen(function* () {
    const client = yield* HttpClient.HttpClient
    return yield* rerank(
      client,
      { provider: "http", url, model: "m", top_k: 30, timeout_ms: 300, api_key_env: undefined },
      key,
      "weather",
      documents
    )
  }).pipe(Effect.provide(FetchHttpClient.layer))

describe("a reranker", () => {
  it.live("gives the order in either spelling, and is told no more than it needs", () =>
    Effect.gen(function* () {
      const heard: Heard = {}
      const scores = [0.1, 0.9, 0.5]
      const results = scores.map((relevance_score, index) => ({ index, relevance_score }))
      expect(yield* ask(yield* reranker({ body: { results } }, heard), Option.some(Redacted.make("secret")))).toEqual([
        1, 2, 0
      ])
      expect(yield* ask(yield* reranker({ body: scores.map((score, index) => ({ index, score })) }))).toEqual([1, 2, 0])
      expect(heard.headers?.authorization).toBe("Bearer secret")
      expect(heard.body).toMatchObject({ model: "m", query: "weather", top_n: 3 })
      expect(heard.body.documents.every((text: string) => text.length <= 2_000)).toBe(true)
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
  ] as const)("is not believed when it answers %s", ([, answer]) =>
    Effect.gen(function* () {
      const failure = yield* Effect.flip(ask(yield* reranker(answer)))
      expect(failure._tag).toBe("RerankingFailed")
    })
  )
})
