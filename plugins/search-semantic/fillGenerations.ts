// The two reconcilers of embeddings. One sees to the generations: begins the one the settings want, queues every
// resource for it, makes it active when nothing is left to embed, and drops what was retired. The other works off the
// queue in batches, several replicas at once by leases. The queue fails softly: a provider that is away costs time, a
// resource that cannot be embedded is set aside after its attempts, and the old generation answers until the new one is
// complete.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { type Reconciler, reconciler } from "../../kernel/Actor.ts"
import { inTransaction } from "../../kernel/database/Database.ts"
import { Facts } from "../../kernel/Facts.ts"
import { Catalog, changedResources } from "../catalog/contract.ts"
import type { Embedder } from "./Embedder.ts"
import { embeddingText } from "./embeddingText.ts"
import { type Generation, Generations, type Job, type Meaning } from "./Generations.ts"
import type { Breaker } from "./queryVectors.ts"
import { tableOf, type VectorIndex } from "./VectorIndex.ts"

export interface FillOptions {
  readonly meaning: Meaning
  readonly fingerprint: string
  readonly index: VectorIndex
  readonly embedder: Embedder["Service"]
  readonly breaker: Breaker
  readonly batchSize: number
  readonly attemptsMax: number
  readonly timeoutMillis: number
  /** Called when another generation has become active. */
  readonly onActive: Effect.Effect<void>
}

const scanBatch = 1_000
/** Batches of one turn: a turn is bounded work. */
const batchesMax = 200

const placeOf = ({ dimension, id }: Generation) => ({ generation: id, dimension })

export const startFilling = Effect.fnUntraced(function* (options: FillOptions) {
  const sql = yield* SqlClient.SqlClient
  const catalog = yield* Catalog
  const facts = yield* Facts
  const generations = yield* Generations
  const { breaker, embedder, index } = options

  const embedBatch = Effect.fnUntraced(function* (generation: Generation, jobs: ReadonlyArray<Job>) {
    const documents = yield* catalog.documents(jobs.map(({ id }) => id))
    const texts = documents.map((document) => generation.documentPrefix + embeddingText(document))
    const vectors =
      texts.length === 0
        ? []
        : yield* breaker.run(
            embedder.embed({
              url: generation.url,
              model: generation.model,
              dimension: generation.dimension,
              texts,
              timeoutMillis: Math.max(30_000, options.timeoutMillis)
            })
          )
    yield* inTransaction(
      Effect.gen(function* () {
        const own = yield* generations.finish(jobs)
        yield* index.write(
          placeOf(generation),
          documents.map(({ id }, at) => ({ id, vector: vectors[at]! })).filter(({ id }) => own.has(id))
        )
      })
    )
  })

  const workOff = Effect.gen(function* () {
    for (let batch = 0; batch < batchesMax; batch++) {
      if (yield* breaker.isOpen) return
      const jobs = yield* generations.lease(options.batchSize, 120_000)
      if (jobs.length === 0) return
      const live = yield* generations.live
      for (const [id, own] of Map.groupBy(jobs, ({ generation }) => generation)) {
        const generation = live.find((one) => one.id === id)
        if (generation === undefined) continue
        yield* embedBatch(generation, own).pipe(
          Effect.catchTag("EmbeddingFailed", (error) =>
            Effect.andThen(
              Effect.logWarning("resources could not be embedded").pipe(
                Effect.annotateLogs({ count: own.length, reason: error.message })
              ),
              // Tried together, nobody knows whose fault it is: each is tried alone next.
              generations.fail(own, error.message, { counts: error.perhapsTheTexts, attemptsMax: options.attemptsMax })
            )
          )
        )
      }
    }
  })

  const queueEverything = Effect.fnUntraced(function* (generation: Generation) {
    let { scanned, scanComplete } = generation
    while (!scanComplete) {
      const documents = yield* catalog.scan({ after: scanned, limit: scanBatch })
      scanned = documents.at(-1)?.id ?? scanned
      scanComplete = documents.length < scanBatch
      yield* inTransaction(
        Effect.andThen(
          generations.enqueue(
            generation.id,
            documents.map(({ id }) => id)
          ),
          generations.scannedTo(generation.id, scanned, scanComplete)
        )
      )
    }
  })

  let begun = false
  let worker: Reconciler | undefined
  const wakeWorker = Effect.suspend(() => worker?.wake ?? Effect.void)

  /** Queues what is missing of one that is being built, and lets it answer when nothing is. */
  const build = Effect.fnUntraced(function* (generation: Generation) {
    yield* index.prepare(placeOf(generation))
    yield* queueEverything(generation)
    yield* wakeWorker
    const { dead, due } = yield* generations.counts(generation.id)
    if (due > 0) return
    const [stored] =
      dead === 0
        ? [{ some: true }]
        : yield* sql<{ some: boolean }>`select exists (select 1 from ${sql(tableOf(placeOf(generation)))}) as some`
    if (stored?.some !== true) return yield* generations.giveUp(generation.id, "no resource could be embedded")
    yield* index.finish(placeOf(generation))
    const isActive = yield* generations.activate(generation.id)
    yield* options.onActive
    if (!isActive) return
    const { dimension, model, revision } = generation
    yield* Effect.logInfo("search_ready").pipe(
      Effect.annotateLogs({
        event: "search_ready",
        branch: "semantic",
        model,
        revision,
        dimension,
        method: index.method
      })
    )
  })

  const seeToGenerations = Effect.gen(function* () {
    // Once for the life of the process: during a rolling change of settings the replica that booted last decides, and
    // the others help it instead of beginning theirs again.
    if (!begun) {
      const wanted = yield* generations.begin(options.meaning, options.fingerprint, index.method)
      yield* generations.abandonOthers(wanted.id)
      begun = true
    }
    for (const generation of yield* generations.live) {
      if (generation.method !== index.method) continue
      if (generation.status === "building") yield* build(generation)
      // On every replica, whoever builds it: none is to load a generation only when the first search wants it.
      yield* index.warm(placeOf(generation))
    }
    for (const ended of yield* generations.droppable) {
      yield* index.drop(placeOf(ended))
      yield* generations.dropped(ended.id)
    }
  })

  const overseer = yield* reconciler({ id: "search-semantic-generations", every: "2 seconds", turn: seeToGenerations })
  worker = yield* reconciler({
    id: "search-semantic-embedding",
    every: "1 second",
    turn: Effect.andThen(workOff, Effect.void)
  })

  yield* facts.consume({
    consumer: "search-semantic",
    batchMax: 500,
    handle: Effect.fnUntraced(function* (batch) {
      const ids = changedResources(batch)
      if (ids.length === 0) return
      for (const { id } of yield* generations.live) yield* generations.enqueue(id, ids)
      yield* sql.afterCommit(wakeWorker)
    })
  })
  return { wake: Effect.andThen(overseer.wake, wakeWorker) }
})
