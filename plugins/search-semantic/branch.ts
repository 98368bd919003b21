// The search branch of an operator's embedding model: the query's vector, the nearest of the generation that answers,
// and the status of both for operators and readiness.
import { Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import type { SearchReport } from "../../kernel/health/Health.ts"
import { Catalog, isFiltered, type SearchRequest, SearchSettings } from "../catalog/contract.ts"
import { ActiveGeneration } from "./ActiveGeneration.ts"
import { CircuitBreaker } from "./provider/CircuitBreaker.ts"
import { EmbeddingJobs } from "./provider/EmbeddingJobs.ts"
import { type Generation, Generations, embeddingColumnOf } from "./Generations.ts"
import { QueryVectors } from "./provider/QueryVectors.ts"
import { tableOf, VectorIndex } from "./index/VectorIndex.ts"

const branchFailed = (message: string) => ({ _tag: "BranchFailed" as const, message })

const makeQueryVector = Effect.gen(function* () {
  const { semantic } = yield* SearchSettings
  const vectors = yield* QueryVectors
  return ({ dimension, id, model, queryPrefix, url }: Generation, { isAlone, query }: SearchRequest) =>
    vectors.vector(
      `${id} ${query}`,
      {
        // The settings may name a new endpoint for the same model; for another model, use the generation's own
        // endpoint.
        url: model === semantic.model ? semantic.url : url,
        model,
        dimension,
        texts: [queryPrefix + query],
        timeoutMillis: semantic.timeout_ms
      },
      !isAlone
    )
})

export const makeVectorSearch = Effect.gen(function* () {
  const catalog = yield* Catalog
  const { answering } = yield* ActiveGeneration
  const index = yield* VectorIndex
  const queryVector = yield* makeQueryVector
  return Effect.fnUntraced(
    function* (request: SearchRequest) {
      const { few, filters, limit, snapshot } = request
      const generation = yield* answering
      if (Option.isNone(generation))
        return yield* Effect.fail(branchFailed("no generation of embeddings is complete yet"))
      const vector = yield* queryVector(generation.value, request)
      return yield* index.nearest(embeddingColumnOf(generation.value), {
        vector,
        limit,
        few,
        filtered: isFiltered(filters),
        visible: (ids) => catalog.visible(ids, snapshot),
        condition: (id) => catalog.condition(filters, { ...(id === undefined ? {} : { id }), snapshot })
      })
    },
    Effect.mapError((error) => (error._tag === "BranchFailed" ? error : branchFailed(error.message)))
  )
})

/** Edition of the generation that answers; undefined before there is one. */
export const makeEdition = Effect.gen(function* () {
  const { answering } = yield* ActiveGeneration
  const index = yield* VectorIndex
  return Effect.gen(function* () {
    const generation = yield* answering
    if (Option.isNone(generation)) return undefined
    const { id, stored } = generation.value
    return `${id} ${yield* index.edition(embeddingColumnOf(generation.value), stored)}`
  })
})

/** For readiness: bounded, never failing. `vectorSupport`: pgvector is installed. */
export const reportOf = Effect.fnUntraced(function* (vectorSupport: boolean) {
  const { current } = yield* ActiveGeneration
  const breaker = yield* CircuitBreaker
  return yield* Effect.match(current, {
    onFailure: (): SearchReport => ({ state: "degraded", vectorSupport, detail: "the vectors cannot be read" }),
    onSuccess: (generation): SearchReport => {
      const trouble =
        breaker.trouble() ?? (Option.isNone(generation) ? "the first generation is being built" : undefined)
      return {
        state: trouble === undefined ? "ready" : "degraded",
        vectorSupport,
        ...(Option.isNone(generation) ? {} : { generation: `${generation.value.model}@${generation.value.revision}` }),
        ...(trouble === undefined ? {} : { detail: trouble })
      }
    }
  })
})

/** For operators. */
export const statusOf = Effect.fnUntraced(function* (supported: boolean) {
  const sql = yield* SqlClient.SqlClient
  const generations = yield* Generations
  const breaker = yield* CircuitBreaker
  const { detail, state, vectorSupport = false } = yield* reportOf(supported)
  const active = yield* generations.active
  const [row] = Option.isNone(active)
    ? [{ count: 0 }]
    : yield* sql<{
        count: number
      }>`select count(*)::int as count from ${sql(tableOf({ generation: active.value.id }))}`
  const { dead, due } = yield* (yield* EmbeddingJobs).backlog
  const status = due === 0 ? ("idle" as const) : (yield* breaker.isOpen) ? ("waiting" as const) : ("working" as const)
  return {
    health: state,
    ...(detail === undefined ? {} : { detail: detail.slice(0, 200) }),
    vectorSupport,
    indexed: row?.count ?? 0,
    worker: { status, queue_depth: due, dead_letters: dead },
    generations: yield* generations.history
  }
})
