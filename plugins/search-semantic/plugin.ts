// Search by meaning as a plugin: vectors of every resource by a configured embedding model, in generations that change
// over whole, and a branch of search registered with the catalog. Without a provider it is present and off. A provider
// that is slow, wrong or away degrades this branch and nothing else.
import { Clock, Effect, Layer, Option } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient } from "effect/sql"
import { Settings, settingsContract } from "../../kernel/config/Settings.ts"
import { databaseContract } from "../../kernel/database/Database.ts"
import { Facts, factsContract } from "../../kernel/Facts.ts"
import { Health, healthContract, type SearchReport } from "../../kernel/Health.ts"
import { canonicalJson } from "../../kernel/payment/canonicalJson.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { define } from "../../kernel/Plugin.ts"
import { supervisorContract } from "../../kernel/Supervisor.ts"
import { Catalog, catalogContract, Search, SearchSettings } from "../catalog/contract.ts"
import { Embedder } from "./Embedder.ts"
import { startFilling } from "./fillGenerations.ts"
import { type Generation, Generations, type Meaning } from "./Generations.ts"
import { makeHnswIndex, pgvectorVersion } from "./hnswIndex.ts"
import { makeBreaker, makeQueryVectors } from "./queryVectors.ts"
import { makeScanIndex } from "./scanIndex.ts"
import { tableOf } from "./VectorIndex.ts"

/** How long a process may take another's word for which generation is active. */
const activeForMillis = 1_000

const branchFailed = (message: string) => ({ _tag: "BranchFailed" as const, message })

const registered = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const catalog = yield* Catalog
  const search = yield* Search
  const health = yield* Health
  const crypto = yield* Crypto
  const embedder = yield* Embedder
  const generations = yield* Generations
  const { semantic } = yield* SearchSettings

  const scope = yield* Effect.scope
  const version = yield* pgvectorVersion(sql)
  const index = version === undefined ? makeScanIndex(sql, scope) : makeHnswIndex(sql)
  const breaker = makeBreaker({ failures: semantic.breaker_failures, millis: semantic.breaker_ms })
  const queryVector = makeQueryVectors({ embedder, breaker, entriesMax: semantic.cache_entries, scope })
  const meaning: Meaning = {
    provider: semantic.provider,
    url: semantic.url,
    model: semantic.model,
    revision: semantic.revision,
    dimension: semantic.dimension,
    pooling: semantic.pooling,
    queryPrefix: semantic.query_prefix,
    documentPrefix: semantic.document_prefix
  }
  // Where the model runs does not change what its vectors mean.
  const { url: _, ...telling } = meaning
  const fingerprint = Hex.encode(
    crypto.sha256(new TextEncoder().encode(canonicalJson({ ...telling, method: index.method })))
  )

  let known: { readonly generation: Option.Option<Generation>; readonly at: number } | undefined
  const active = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    if (known !== undefined && now - known.at < activeForMillis) return known.generation
    const generation = yield* generations.active
    known = { generation, at: now }
    return generation
  })

  let warmed: bigint | undefined
  /** The generation that answers, whole in this process: a copy from before it was complete is not believed. */
  const answering = Effect.gen(function* () {
    const generation = yield* active
    if (Option.isSome(generation) && generation.value.id !== warmed) {
      yield* index.warm({ generation: generation.value.id, dimension: generation.value.dimension })
      warmed = generation.value.id
    }
    return generation
  })

  yield* startFilling({
    meaning,
    fingerprint,
    index,
    embedder,
    breaker,
    batchSize: semantic.batch_size,
    attemptsMax: semantic.attempts,
    timeoutMillis: semantic.timeout_ms,
    onActive: Effect.sync(() => {
      known = undefined
    })
  })

  const report: Effect.Effect<SearchReport> = Effect.match(active, {
    onFailure: () => ({
      state: "degraded" as const,
      vectorSupport: version !== undefined,
      detail: "the vectors cannot be read"
    }),
    onSuccess: (generation) => {
      const trouble =
        breaker.trouble() ?? (Option.isNone(generation) ? "the first generation is being built" : undefined)
      return {
        state: trouble === undefined ? ("ready" as const) : ("degraded" as const),
        vectorSupport: version !== undefined,
        ...(Option.isNone(generation) ? {} : { generation: `${generation.value.model}@${generation.value.revision}` }),
        ...(trouble === undefined ? {} : { detail: trouble })
      }
    }
  })

  yield* search.register({
    mode: "semantic",
    weight: semantic.weight,
    candidates: semantic.candidate_count,
    timeoutMillis: semantic.timeout_ms,
    search: ({ filters, limit, query, snapshot }) =>
      Effect.gen(function* () {
        const generation = yield* answering
        if (Option.isNone(generation))
          return yield* Effect.fail(branchFailed("no generation of embeddings is complete yet"))
        const { dimension, id, model, queryPrefix } = generation.value
        // The settings may name a new endpoint for the same model; the active generation's own is the one that has its
        // model.
        const url = model === semantic.model ? semantic.url : generation.value.url
        const vector = yield* queryVector(`${id} ${query}`, {
          url,
          model,
          dimension,
          texts: [queryPrefix + query],
          timeoutMillis: semantic.timeout_ms
        })
        return yield* index.nearest(
          { generation: id, dimension },
          {
            vector,
            limit,
            filtered: Object.keys(filters).length > 0,
            condition: (id) => catalog.condition(filters, { ...(id === undefined ? {} : { id }), snapshot })
          }
        )
      }).pipe(Effect.mapError((error) => (error._tag === "BranchFailed" ? error : branchFailed(error.message)))),
    status: Effect.gen(function* () {
      const { detail, state, vectorSupport = false } = yield* report
      const generation = yield* generations.active
      const [row] = Option.isNone(generation)
        ? [{ count: 0 }]
        : yield* sql<{
            count: number
          }>`select count(*)::int as count from ${sql(tableOf({ generation: generation.value.id, dimension: 0 }))}`
      const { dead, due } = yield* generations.backlog
      const status =
        due === 0 ? ("idle" as const) : (yield* breaker.isOpen) ? ("waiting" as const) : ("working" as const)
      return {
        health: state,
        ...(detail === undefined ? {} : { detail: detail.slice(0, 200) }),
        vectorSupport,
        indexed: row?.count ?? 0,
        worker: { status, queue_depth: due, dead_letters: dead },
        generations: yield* generations.history
      }
    })
  })

  yield* health.registerSearch("semantic", report)
})

const layer = Layer.unwrap(
  Effect.gen(function* () {
    const { semantic } = yield* SearchSettings
    if (semantic.provider === "none") return Layer.empty
    const key = semantic.api_key_env === undefined ? Option.none() : (yield* Settings).secret(semantic.api_key_env)
    return Layer.effectDiscard(registered).pipe(
      Layer.provide(
        Layer.merge(Generations.layer, Embedder.layer({ key, sendDimension: semantic.send_dimension === "yes" }))
      )
    )
  })
)

export const plugin = define({
  id: "search-semantic",
  summary: "Search of the catalog by meaning, with an embedding model of the operator's choice.",
  boot: "optional",
  needs: [settingsContract, supervisorContract, healthContract, databaseContract, factsContract, catalogContract],
  migrations: "folder",
  layer: Layer.merge(Layer.effectDiscard(Facts), layer)
})
