// A batch of embeddings with resources that were replaced during the computation: a database that lost its last commits
// reuses ids and fences.
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { Catalog, type ResourceDocument, SearchSettings } from "../../../plugins/catalog/contract.ts"
import { Generations } from "../../../plugins/search-semantic/Generations.ts"
import { VectorIndex } from "../../../plugins/search-semantic/index/VectorIndex.ts"
import { CircuitBreaker } from "../../../plugins/search-semantic/provider/CircuitBreaker.ts"
import { Embedder } from "../../../plugins/search-semantic/provider/Embedder.ts"
import { embedQueued } from "../../../plugins/search-semantic/provider/embedQueued.ts"
import { EmbeddingJobs } from "../../../plugins/search-semantic/provider/EmbeddingJobs.ts"
import { layerTest } from "../../support/layerTest.ts"

const jobs = [1n, 2n, 3n].map((id) => ({ generation: 1n, id, attempts: 0, fence: 1n }))
const documentOf = (id: bigint, versionHash: string) =>
  ({
    id,
    versionHash,
    type: "http",
    resource: `https://shop.example/${versionHash}`,
    toolName: "",
    origin: Option.none(),
    description: "",
    serviceName: "",
    tags: [],
    operations: [],
    options: []
  }) as unknown as ResourceDocument

it.effect("stores no vector of a text that its resource no longer has", () =>
  Effect.gen(function* () {
    const finished: Array<bigint> = []
    const written: Array<bigint> = []
    let leased = false
    let reads = 0
    const services = Layer.mergeAll(
      // The third does not exist from the start: its job ends without a vector.
      layerTest(Catalog, {
        documents: () =>
          Effect.sync(() => {
            reads += 1
            return [documentOf(1n, reads === 1 ? "lost" : "another"), documentOf(2n, "same")]
          })
      }),
      layerTest(EmbeddingJobs, {
        lease: () => Effect.sync(() => (leased ? [] : ((leased = true), jobs))),
        finish: (own) =>
          Effect.sync(() => {
            finished.push(...own.map(({ id }) => id))
            return new Set(finished)
          })
      }),
      layerTest(Generations, {
        live: Effect.succeed([
          { id: 1n, url: "", model: "", dimension: 1, documentPrefix: "", method: "scan" } as never
        ]),
        storing: () => Effect.void
      }),
      layerTest(VectorIndex, {
        write: (_place, vectors) => Effect.sync(() => void written.push(...vectors.map(({ id }) => id)))
      }),
      layerTest(CircuitBreaker, { isOpen: Effect.succeed(false), run: (effect) => effect }),
      layerTest(Embedder, {
        embed: ({ texts }) => Effect.succeed(texts.map(() => Float32Array.of(1)))
      }),
      layerTest(SearchSettings, { semantic: { timeout_ms: 1, batch_size: 8, attempts: 1 } } as never),
      layerTest(SqlClient.SqlClient, { withTransaction: (effect: never) => effect } as never)
    )
    yield* Effect.provide(embedQueued, services)
    expect([finished, written]).toEqual([[2n, 3n], [2n]])
  })
)
