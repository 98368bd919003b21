// Processes the queue of embeddings in batches, on several replicas concurrently by leases. It degrades gracefully: an
// unavailable provider costs time, and a resource that cannot be embedded is suspended after its attempts.
import { Effect } from "effect"
import { type Job, EmbeddingJobs } from "./EmbeddingJobs.ts"
import { inTransaction } from "../../../kernel/database/Database.ts"
import { Catalog, type ResourceDocument, SearchSettings } from "../../catalog/contract.ts"
import { CircuitBreaker } from "./CircuitBreaker.ts"
import { Embedder, type EmbeddingFailed } from "./Embedder.ts"
import { embeddingText } from "../embeddingText.ts"
import { type Generation, Generations, embeddingColumnOf } from "../Generations.ts"
import { VectorIndex } from "../index/VectorIndex.ts"

/** Batches of one turn: a turn is bounded work. */
const batchesMax = 200
const leaseMillis = 120_000
/** A batch is allowed more time than a search's one text. */
const timeoutMillisMin = 30_000

const vectorsOf = Effect.fnUntraced(function* (generation: Generation, texts: ReadonlyArray<string>) {
  if (texts.length === 0) return []
  const embedder = yield* Embedder
  const breaker = yield* CircuitBreaker
  const { semantic } = yield* SearchSettings
  const { dimension, model, url } = generation
  const timeoutMillis = Math.max(timeoutMillisMin, semantic.timeout_ms)
  return yield* breaker.run(embedder.embed({ url, model, dimension, texts, timeoutMillis }))
})

const versionsOf = (documents: ReadonlyArray<ResourceDocument>): ReadonlyMap<bigint, string> =>
  new Map(documents.map(({ id, versionHash }) => [id, versionHash]))

const embedBatch = Effect.fnUntraced(function* (generation: Generation, jobs: ReadonlyArray<Job>) {
  const catalog = yield* Catalog
  const queue = yield* EmbeddingJobs
  const generations = yield* Generations
  const index = yield* VectorIndex
  const read = catalog.documents(jobs.map(({ id }) => id))
  const documents = yield* read
  const texts = documents.map((document) => generation.documentPrefix + embeddingText(document))
  const vectors = yield* vectorsOf(generation, texts)
  const known = versionsOf(documents)
  yield* inTransaction(
    Effect.gen(function* () {
      // A database that lost its last commits reuses ids and fences, for other resources.
      const now = versionsOf(yield* read)
      const own = yield* queue.finish(jobs.filter(({ id }) => now.get(id) === known.get(id)))
      yield* index.write(
        embeddingColumnOf(generation),
        documents.map(({ id }, at) => ({ id, vector: vectors[at]! })).filter(({ id }) => own.has(id))
      )
      // Last: replicas that store others wait for this row.
      yield* generations.storing(generation.id)
    })
  )
})

const giveBack = Effect.fnUntraced(function* (jobs: ReadonlyArray<Job>, error: EmbeddingFailed) {
  const queue = yield* EmbeddingJobs
  const { semantic } = yield* SearchSettings
  yield* Effect.logWarning("resources could not be embedded").pipe(
    Effect.annotateLogs({ count: jobs.length, reason: error.message })
  )
  // A failed batch does not show which text caused it: next, each is tried separately.
  yield* queue.fail(jobs, error.message, { counts: error.perhapsTheTexts, attemptsMax: semantic.attempts })
})

export const embedQueued = Effect.gen(function* () {
  const breaker = yield* CircuitBreaker
  const queue = yield* EmbeddingJobs
  const generations = yield* Generations
  const { semantic } = yield* SearchSettings
  for (let batch = 0; batch < batchesMax; batch++) {
    if (yield* breaker.isOpen) return
    const jobs = yield* queue.lease(semantic.batch_size, leaseMillis)
    if (jobs.length === 0) return
    const live = yield* generations.live
    for (const [id, own] of Map.groupBy(jobs, ({ generation }) => generation)) {
      const generation = live.find((one) => one.id === id)
      if (generation === undefined) continue
      yield* Effect.catchTag(embedBatch(generation, own), "EmbeddingFailed", (error) => giveBack(own, error))
    }
  }
})
