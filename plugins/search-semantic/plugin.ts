// Search by meaning as a plugin, in two branches registered with the catalog. One is on by default: vectors by a table
// of words that the plugin brings along (`embedded/`). The other uses an operator's embedding model, in generations
// that are switched as a whole. Without a provider it is off, and a slow, wrong or unavailable provider degrades only
// this branch.
import { Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { Settings, settingsContract } from "../../kernel/config/Settings.ts"
import { Database, databaseContract } from "../../kernel/database/Database.ts"
import { Facts, factsContract } from "../../kernel/facts/Facts.ts"
import { Health, healthContract } from "../../kernel/health/Health.ts"
import { define } from "../../kernel/plugin/Plugin.ts"
import { supervisorContract } from "../../kernel/actor/Supervisor.ts"
import { catalogContract, Search, SearchSettings } from "../catalog/contract.ts"
import { ActiveGeneration } from "./ActiveGeneration.ts"
import { makeEdition, makeVectorSearch, reportOf, statusOf } from "./branch.ts"
import { CircuitBreaker } from "./provider/CircuitBreaker.ts"
import { ConfiguredEmbedding } from "./provider/ConfiguredEmbedding.ts"
import { embeddedBranch } from "./embedded/embeddedBranch.ts"
import { Embedder } from "./provider/Embedder.ts"
import { EmbeddingJobs } from "./provider/EmbeddingJobs.ts"
import { startFilling } from "./provider/fillGenerations.ts"
import { Generations } from "./Generations.ts"
import { pgvectorVersion } from "./index/hnswIndex.ts"
import { indexByMethod, newMethod } from "./index/indexByMethod.ts"
import { QueryVectors } from "./provider/QueryVectors.ts"
import { scanIndex } from "./index/scanIndex.ts"

type ReportServices = ActiveGeneration | CircuitBreaker | EmbeddingJobs | Generations | SqlClient.SqlClient

const register = Effect.fnUntraced(function* (vectorSupport: boolean) {
  const services = yield* Effect.context<ReportServices>()
  const search = yield* Search
  const health = yield* Health
  const { semantic } = yield* SearchSettings
  yield* startFilling
  yield* search.register({
    mode: "semantic",
    weight: semantic.weight,
    candidates: semantic.candidate_count,
    timeoutMillis: semantic.timeout_ms,
    search: yield* makeVectorSearch,
    edition: yield* makeEdition,
    status: Effect.provideContext(statusOf(vectorSupport), services)
  })
  yield* health.registerSearch("semantic", Effect.provideContext(reportOf(vectorSupport), services))
})

/** Query vectors cached in memory. */
const vectorsMax = 10_000

/** The endpoint behind its breaker. */
const endpoint = Effect.gen(function* () {
  const { semantic } = yield* SearchSettings
  const key = semantic.api_key_env === undefined ? Option.none() : (yield* Settings).secret(semantic.api_key_env)
  return QueryVectors.layer({ entriesMax: vectorsMax, patienceMillis: semantic.hybrid_wait_ms }).pipe(
    Layer.provideMerge(CircuitBreaker.layer({ failures: semantic.breaker_failures, millis: semantic.breaker_ms })),
    Layer.provideMerge(Embedder.layer({ key, sendDimension: semantic.send_dimension === "yes" }))
  )
})

const provided = Layer.unwrap(
  Effect.gen(function* () {
    const { kind } = yield* Database
    const { index } = (yield* SearchSettings).semantic
    const hasPgvector = (yield* pgvectorVersion(yield* SqlClient.SqlClient)) !== undefined
    if (index === "hnsw" && !hasPgvector) {
      yield* Effect.logWarning("the database has no pgvector: finding the nearest vectors by scanning").pipe(
        Effect.annotateLogs({ setting: "search.semantic.index" })
      )
    }
    const meaning = ConfiguredEmbedding.layer(newMethod(index, kind, hasPgvector))
    return Layer.effectDiscard(register(hasPgvector)).pipe(
      Layer.provide(Layer.unwrap(endpoint)),
      Layer.provide(ActiveGeneration.layer),
      Layer.provide(Layer.mergeAll(Generations.layer, EmbeddingJobs.layer, meaning)),
      Layer.provide(indexByMethod)
    )
  })
)

const layer = Layer.unwrap(
  Effect.map(SearchSettings, ({ embedded, semantic }) =>
    Layer.merge(
      embedded.provider === "none" ? Layer.empty : embeddedBranch.pipe(Layer.provide(scanIndex)),
      semantic.provider === "none" ? Layer.empty : provided
    )
  )
)

export const plugin = define({
  id: "search-semantic",
  summary:
    "Semantic search of the catalog: with built-in word vectors, and an embedding model of the operator's choice.",
  boot: "optional",
  needs: [settingsContract, supervisorContract, healthContract, databaseContract, factsContract, catalogContract],
  migrations: "folder",
  layer: Layer.merge(Layer.effectDiscard(Facts), layer)
})
