// Full-text search of the catalog as a plugin: a separate index, kept in step by the catalog's facts, and a branch of
// search registered with the catalog. If it is switched off, search falls back to the other branches.
import { Effect, Exit, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { databaseContract } from "../../kernel/database/Database.ts"
import { Facts, factsContract } from "../../kernel/facts/Facts.ts"
import { Health, healthContract } from "../../kernel/health/Health.ts"
import { define } from "../../kernel/plugin/Plugin.ts"
import { supervisorContract } from "../../kernel/actor/Supervisor.ts"
import {
  Catalog,
  catalogContract,
  confidentRelevance,
  isFiltered,
  Search,
  type SearchRequest,
  SearchSettings
} from "../catalog/contract.ts"
import { startIndexing } from "./buildIndex.ts"
import { Feedback } from "./Feedback.ts"
import { type IndexState, LexicalStore } from "./LexicalStore.ts"
import { QueryReader } from "./QueryReader.ts"
import { makeMatcher } from "./matchWords.ts"
import { Vocabulary } from "./Vocabulary.ts"
import { MemoryIndex } from "./postings/MemoryIndex.ts"
import { type Passing, passingBy, rankDocuments, withEvidence } from "./rankDocuments.ts"

const countDocuments = (sql: SqlClient.SqlClient, language: string) =>
  Effect.map(
    sql<{ count: number }>`select count(*)::int as count from search_lexical_documents where language = ${language}`,
    ([row]) => row?.count ?? 0
  )

const notLoaded = "the lexical index is not in memory: PostgreSQL ranks, without query expansion"

/** The health of the index, by its stored state and whether this process has its copy. */
export const healthOf = (
  { complete, language, scanned }: Pick<IndexState, "complete" | "language" | "scanned">,
  { isLoaded }: Pick<MemoryIndex["Service"], "isLoaded">
) => {
  if (!complete) return { state: "degraded" as const, detail: `the lexical index is being built, ${scanned} so far` }
  return { state: "ready" as const, ...(isLoaded(language) ? {} : { detail: notLoaded }) }
}

/** Searches before its end are answered by PostgreSQL; each one starts a load that failed again. */
const loadInBackground = Effect.fnUntraced(function* (answering: LexicalStore["Service"]["answering"]) {
  const index = yield* MemoryIndex
  yield* Effect.forkScoped(
    Effect.catchCause(Effect.flatMap(answering, index.load), (cause) =>
      Effect.logWarning("search_index_not_loaded", cause)
    )
  )
})

const registered = Layer.effectDiscard(
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const store = yield* LexicalStore
    const reader = yield* QueryReader
    const feedback = yield* Feedback
    const index = yield* MemoryIndex
    const catalog = yield* Catalog
    const search = yield* Search
    const health = yield* Health
    const { lexical } = yield* SearchSettings

    const report = Effect.match(store.state, {
      onFailure: () => ({ state: "degraded" as const, detail: "the lexical index does not answer" }),
      onSuccess: (stored) => healthOf(stored, index)
    })

    // Which index answers, and its averages, move slowly: one question a second.
    const answering = yield* Effect.cachedWithTTL(store.answering, (exit) => (Exit.isSuccess(exit) ? "1 second" : 0))

    const established = passingBy(sql, (id) => catalog.condition({ evidence: "established" }, { id }))
    const searchWords = Effect.fnUntraced(
      function* ({ few, filters, limit, query, snapshot }: SearchRequest) {
        const state = yield* answering
        const words = yield* reader.read(query, state)
        const visible: Passing = (ids) => catalog.visible(ids, snapshot)
        const widened = feedback.widen(query, words, state, visible, state.proven ? established : undefined)
        // Read the filtered resources concurrently: both reads take the database about as long.
        const [among, read] = yield* Effect.all([few, widened], { concurrency: isFiltered(filters) ? 2 : 1 })
        if (among?.length === 0) return []
        const passing = isFiltered(filters)
          ? passingBy(sql, (id) => catalog.condition(filters, { id, snapshot }))
          : visible
        const hits = yield* rankDocuments(index, state, read, { passing, limit, among })
        const isSure = (hits[0]?.relevance ?? 0) >= confidentRelevance
        return isSure ? hits : yield* withEvidence(index, state, read, hits)
      },
      Effect.mapError(({ message }) => ({ _tag: "BranchFailed" as const, message }))
    )

    const matchWords = makeMatcher(yield* Vocabulary)
    yield* startIndexing
    yield* loadInBackground(answering)
    yield* search.register({
      mode: "lexical",
      weight: lexical.weight,
      candidates: lexical.candidate_count,
      timeoutMillis: lexical.timeout_ms,
      search: searchWords,
      match: Effect.fnUntraced(function* (query, texts) {
        const state = yield* answering
        return yield* matchWords(yield* reader.read(query, state), texts, state)
      }),
      edition: Effect.map(
        answering,
        ({ changed, language, refreshedAt }) => `${language} ${refreshedAt.getTime()} ${changed}`
      ),
      status: Effect.gen(function* () {
        const { state, ...detail } = yield* report
        const { language } = yield* store.answering
        return { health: state, ...detail, indexed: yield* countDocuments(sql, language), generations: [] }
      })
    })
    yield* health.registerSearch("lexical", report)
  })
)

export const plugin = define({
  id: "search-lexical",
  summary: "Full-text search of the catalog.",
  boot: "optional",
  needs: [supervisorContract, healthContract, databaseContract, factsContract, catalogContract],
  migrations: "folder",
  layer: Layer.effectDiscard(Facts).pipe(
    Layer.merge(
      registered.pipe(
        Layer.provide(Layer.merge(QueryReader.layer, Feedback.layer)),
        Layer.provide(MemoryIndex.layer),
        Layer.provide(
          Layer.unwrap(
            Effect.gen(function* () {
              const { lexical } = yield* SearchSettings
              const catalog = yield* Catalog
              return LexicalStore.layer(lexical.language, {
                any: (id) => catalog.condition({ evidence: "any" }, { id }),
                established: (id) => catalog.condition({ evidence: "established" }, { id })
              })
            })
          )
        )
      )
    )
  )
})
