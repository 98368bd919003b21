// The adapter for embeddings endpoints against test servers: its requests, its validation, and its errors.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Option, Redacted } from "effect"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { checkVector, Embedder, type EmbeddingRequest } from "../../../plugins/search-semantic/provider/Embedder.ts"
import { layer as httpCalls } from "../../../runtime/platform/nodeHttpCalls.ts"

const key = "sk-an-embeddings-key"

interface ReceivedRequest {
  readonly url: string | undefined
  readonly authorization: string | undefined
  readonly body: Record<string, unknown>
}

type Answering = (asked: ReceivedRequest, response: ServerResponse) => void

const bodyOf = async (request: IncomingMessage): Promise<Record<string, unknown>> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return JSON.parse(Buffer.concat(chunks).toString("utf8")) as Record<string, unknown>
}

/** A server that responds as configured, and the requests it received. */
const startEndpoint = Effect.fnUntraced(function* (answer: Answering) {
  const asked: Array<ReceivedRequest> = []
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      const one = { url: request.url, authorization: request.headers.authorization, body }
      asked.push(one)
      answer(one, response)
    })
  })
  yield* Effect.acquireRelease(
    Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))),
    () =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
  )
  return { asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/embeddings` }
})

const said =
  (data: unknown): Answering =>
  (_, response) =>
    void response.end(JSON.stringify({ data }))

const embed = (request: Partial<EmbeddingRequest> & Pick<EmbeddingRequest, "url">) =>
  Effect.flatMap(Embedder, (embedder) =>
    embedder.embed({ model: "m", dimension: 2, texts: ["one"], timeoutMillis: 5_000, ...request })
  ).pipe(
    Effect.provide(
      Embedder.layer({ key: Option.some(Redacted.make(key)), sendDimension: true }).pipe(Layer.provide(httpCalls))
    )
  )

describe("an embeddings endpoint", () => {
  it.live("all texts are embedded in one request, in order, at length 1", () =>
    Effect.gen(function* () {
      const endpoint = yield* startEndpoint(
        said([
          { index: 1, embedding: [0, -2] },
          { index: 0, embedding: [3, 4] }
        ])
      )
      const vectors = yield* embed({ url: endpoint.url, texts: ["one", "two"] })
      expect(vectors).toEqual([Float32Array.of(0.6, 0.8), Float32Array.of(0, -1)])
      expect(endpoint.asked).toEqual([
        {
          url: "/v1/embeddings",
          authorization: `Bearer ${key}`,
          body: { model: "m", input: ["one", "two"], encoding_format: "float", dimensions: 2 }
        }
      ])
    }).pipe(Effect.scoped)
  )

  it.live("an embeddings response is accepted only after validation", () =>
    Effect.gen(function* () {
      const errors: Array<readonly [unknown, string]> = [
        [[{ index: 0, embedding: [1, "1"] }], "a vector contains a value that is not a number"],
        [[{ index: 0, embedding: [1, null] }], "a vector contains a value that is not a number"],
        [[{ index: 0, embedding: [1, 2, 3] }], "a vector has 3 numbers, 2 are required"],
        [[{ index: 0, embedding: [0, 0] }], "a vector is zero"],
        [[{ index: 0, embedding: "AACAPwAAgD8=" }], "the endpoint's answer cannot be read"],
        [[{ index: 1, embedding: [1, 2] }], "the endpoint numbers its vectors wrongly"],
        [[], "0 vectors for 1 texts"],
        ["nothing", "the endpoint's answer cannot be read"]
      ]
      for (const [data, message] of errors) {
        const endpoint = yield* startEndpoint(said(data))
        expect((yield* Effect.flip(embed({ url: endpoint.url }))).message).toBe(message)
      }
      const { url } = yield* startEndpoint((_, response) => void response.end("<html>"))
      expect((yield* Effect.flip(embed({ url }))).message).toBe("the endpoint's answer cannot be read")
    }).pipe(Effect.scoped)
  )

  it.live("provider errors are separated from errors caused by the texts", () =>
    Effect.gen(function* () {
      for (const status of [400, 413, 422, 401, 500]) {
        const endpoint = yield* startEndpoint((_, response) => void response.writeHead(status).end("why"))
        expect(yield* Effect.flip(embed({ url: endpoint.url }))).toMatchObject({
          message: `the endpoint answers ${status}`,
          perhapsTheTexts: status === 400 || status === 413 || status === 422
        })
      }
    }).pipe(Effect.scoped)
  )

  it.live("a provider's redirect is not followed, so its key stays private", () =>
    Effect.gen(function* () {
      const other = yield* startEndpoint(said([{ index: 0, embedding: [1, 2] }]))
      const { url } = yield* startEndpoint((_, response) => void response.writeHead(307, { location: other.url }).end())
      expect((yield* Effect.flip(embed({ url }))).message).toBe("the endpoint answers 307")
      expect(other.asked).toEqual([])
    }).pipe(Effect.scoped)
  )

  it.live("an unreachable or invalid provider is reported without the key", () =>
    Effect.gen(function* () {
      const silent = yield* startEndpoint(() => {})
      const late = yield* Effect.flip(embed({ url: silent.url, timeoutMillis: 50 }))
      expect(late.message).toBe("the endpoint did not answer in time")
      for (const url of ["http://127.0.0.1:1/", "ftp://127.0.0.1/", "no address"]) {
        const error = yield* Effect.flip(embed({ url }))
        expect([url, error.message]).toEqual([url, "the endpoint cannot be reached"])
        expect(JSON.stringify(error)).not.toContain(key)
      }
    }).pipe(Effect.scoped)
  )

  it("only finite vectors of the configured length are accepted", () => {
    expect(checkVector([3, 4], 2)).toEqual(Float32Array.of(0.6, 0.8))
    expect(checkVector([1e200, 1e200], 2)).toBe("a vector contains a value that is not a number")
    expect(checkVector([1, Number.NaN], 2)).toBe("a vector contains a value that is not a number")
  })
})
