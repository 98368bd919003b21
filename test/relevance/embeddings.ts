// An embeddings endpoint for tests, with OpenAI's interface on its own port. A function of the text gives its answers,
// and faults can be injected: an error status, an answer that never comes, vectors of the wrong length, nonsense. One
// such function reproduces a recorded dense ranking: each query is an axis, and a document's coordinates are its
// recorded scores.
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, type Scope } from "effect"
import type { Dataset } from "./dataset.ts"

export type ErrorBody = "none" | "status" | "hang" | "length" | "nonsense" | "zero"

export interface EmbeddingsEndpoint {
  readonly url: string
  readonly fault: { current: ErrorBody }
  readonly requests: () => number
  /** From the last request. */
  readonly models: ReadonlySet<string>
}

export const startEmbeddings = (
  embed: (text: string, model: string) => ReadonlyArray<number>
): Effect.Effect<EmbeddingsEndpoint, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => {
        const error: { current: ErrorBody } = { current: "none" }
        const models = new Set<string>()
        let requests = 0
        const server = createServer((request, response) => {
          const chunks: Array<Buffer> = []
          request.on("data", (chunk: Buffer) => chunks.push(chunk))
          request.on("end", () => {
            requests += 1
            const { input, model } = JSON.parse(Buffer.concat(chunks).toString()) as {
              input: ReadonlyArray<string>
              model: string
            }
            models.add(model)
            if (error.current === "hang") return
            if (error.current === "status") return response.writeHead(500).end("no")
            if (error.current === "nonsense") return response.writeHead(200).end("<html>")
            const vector = (text: string) => {
              const numbers = embed(text, model)
              return error.current === "length"
                ? numbers.slice(1)
                : error.current === "zero"
                  ? numbers.map(() => 0)
                  : numbers
            }
            response.writeHead(200, { "content-type": "application/json" })
            response.end(
              JSON.stringify({
                object: "list",
                model,
                data: input.map((text, index) => ({ object: "embedding", index, embedding: vector(text) }))
              })
            )
          })
        })
        return new Promise<{ server: typeof server; endpoint: EmbeddingsEndpoint }>((resolve) =>
          server.listen(0, "127.0.0.1", () =>
            resolve({
              server,
              endpoint: {
                url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/embeddings`,
                fault: error,
                requests: () => requests,
                models
              }
            })
          )
        )
      }),
      ({ server }) =>
        Effect.promise(
          () =>
            new Promise<void>((resolve) => {
              server.closeAllConnections()
              server.close(() => resolve())
            })
        )
    ),
    ({ endpoint }) => endpoint
  )

/** Vectors whose cosines are the recorded scores. `resourceOf` returns the resource of a document's text. */
export const recordedVectors = (set: Dataset, resourceOf: (text: string) => string | undefined) => {
  const queries = [...set.dense.keys()]
  const textToQuery = new Map(set.queries.map(({ id, query }) => [query, id]))
  const scores = new Map<string, Array<number>>()
  for (const [at, query] of queries.entries()) {
    for (const [resource, score] of set.dense.get(query)!) {
      const row = scores.get(resource) ?? Array.from(queries, () => 0)
      row[at] = score
      scores.set(resource, row)
    }
  }
  // A document in many rankings would be longer than 1, so all are scaled by the same factor, which changes no order.
  const longest = Math.max(1, ...[...scores.values()].map((row) => Math.hypot(...row)))
  const dimension = Math.max(8, queries.length + 1)
  const padded = (numbers: ReadonlyArray<number>) => [
    ...numbers,
    ...Array.from({ length: dimension - numbers.length }, () => 0)
  ]
  return {
    dimension,
    embed: (text: string): ReadonlyArray<number> => {
      const query = textToQuery.get(text)
      if (query !== undefined) return padded(queries.map((one) => (one === query ? 1 : 0)))
      const row = (scores.get(resourceOf(text) ?? "") ?? queries.map(() => 0)).map((score) => score / longest)
      const rest = Math.sqrt(Math.max(0, 1 - row.reduce((sum, one) => sum + one * one, 0)))
      return [
        ...row,
        ...Array.from({ length: dimension - queries.length }, (_, at) =>
          at === dimension - queries.length - 1 ? rest : 0
        )
      ]
    }
  }
}
