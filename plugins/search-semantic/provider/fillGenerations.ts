// Manages the generations: begins the configured one, queues every resource for it, activates it when nothing is left
// to embed, and drops retired ones. The old generation answers until the new one is complete.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { type Reconciler, reconciler } from "../../../kernel/actor/Actor.ts"
import { inTransaction } from "../../../kernel/database/Database.ts"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Catalog, changedResources } from "../../catalog/contract.ts"
import { ActiveGeneration } from "../ActiveGeneration.ts"
import { ConfiguredEmbedding } from "./ConfiguredEmbedding.ts"
import { EmbeddingJobs } from "./EmbeddingJobs.ts"
import { embedQueued } from "./embedQueued.ts"
import { type Generation, Generations, embeddingColumnOf } from "../Generations.ts"
import { tableOf, VectorIndex } from "../index/VectorIndex.ts"

const scanBatch = 1_000

const queueEverything = Effect.fnUntraced(function* (generation: Generation) {
  const catalog = yield* Catalog
  const generations = yield* Generations
  const queue = yield* EmbeddingJobs
  let { scanned, scanComplete } = generation
  while (!scanComplete) {
    const documents = yield* catalog.scan({ after: scanned, limit: scanBatch })
    scanned = documents.at(-1)?.id ?? scanned
    scanComplete = documents.length < scanBatch
    const ids = documents.map(({ id }) => id)
    yield* inTransaction(
      Effect.andThen(queue.enqueue(generation.id, ids), generations.scannedTo(generation.id, scanned, scanComplete))
    )
  }
})

const activate = Effect.fnUntraced(function* (generation: Generation) {
  const index = yield* VectorIndex
  const active = yield* ActiveGeneration
  yield* index.finish(embeddingColumnOf(generation))
  const isActive = yield* (yield* Generations).activate(generation.id)
  yield* active.changed
  if (!isActive) return
  const { dimension, method, model, revision } = generation
  yield* Effect.logInfo("search_ready").pipe(
    Effect.annotateLogs({ event: "search_ready", branch: "semantic", model, revision, dimension, method })
  )
})

/** Queues the missing resources of a generation that is being built, and activates it when none are missing. */
const build = Effect.fnUntraced(function* (generation: Generation, wakeWorker: Effect.Effect<void>) {
  const sql = yield* SqlClient.SqlClient
  const generations = yield* Generations
  yield* (yield* VectorIndex).prepare(embeddingColumnOf(generation))
  yield* queueEverything(generation)
  yield* wakeWorker
  const { dead, due } = yield* (yield* EmbeddingJobs).counts(generation.id)
  if (due > 0) return
  const [stored] =
    dead === 0
      ? [{ some: true }]
      : yield* sql<{
          some: boolean
        }>`select exists (select 1 from ${sql(tableOf(embeddingColumnOf(generation)))}) as some`
  if (stored?.some !== true) return yield* generations.giveUp(generation.id, "no resource could be embedded")
  yield* activate(generation)
})

const dropRetired = Effect.gen(function* () {
  const generations = yield* Generations
  const index = yield* VectorIndex
  for (const ended of yield* generations.droppable) {
    yield* index.drop(embeddingColumnOf(ended))
    yield* generations.dropped(ended.id)
  }
})

export const startFilling = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const facts = yield* Facts
  const generations = yield* Generations
  const queue = yield* EmbeddingJobs
  const index = yield* VectorIndex
  const { fingerprint, meaning, method } = yield* ConfiguredEmbedding

  let begun = false
  let worker: Reconciler | undefined
  const wakeWorker = Effect.suspend(() => worker?.wake ?? Effect.void)

  const seeToGenerations = Effect.gen(function* () {
    // Once for the life of the process: during a rolling change of settings the replica that booted last decides, and
    // the others help it instead of beginning theirs again.
    if (!begun) {
      const own = yield* generations.begin(meaning, fingerprint, method)
      yield* generations.abandonOthers(own.id)
      begun = true
    }
    for (const generation of yield* generations.live) {
      if (generation.status === "building") yield* build(generation, wakeWorker)
      // Runs on every replica, also on those that do not build, so that the first search does not have to load a
      // generation.
      yield* index.warm(embeddingColumnOf(generation))
    }
    yield* dropRetired
  })

  yield* reconciler({ id: "search-semantic-generations", every: "2 seconds", turn: seeToGenerations })
  worker = yield* reconciler({ id: "search-semantic-embedding", every: "1 second", turn: embedQueued })

  yield* facts.consume({
    consumer: "search-semantic",
    batchMax: 500,
    handle: Effect.fnUntraced(function* (batch) {
      const ids = changedResources(batch)
      if (ids.length === 0) return
      for (const { id } of yield* generations.live) yield* queue.enqueue(id, ids)
      yield* sql.afterCommit(wakeWorker)
    })
  })
})
