// Full-text search of the catalog as a plugin: an index of its own, kept in step by the catalog's facts, and a branch
// of search registered with the catalog. Switched off, search falls back to what is on.
import { Effect, Exit, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { databaseContract } from "../../kernel/database/Database.ts"
import { Facts, factsContract } from "../../kernel/Facts.ts"
import { Health, healthContract } from "../../kernel/Health.ts"
import { define } from "../../kernel/Plugin.ts"
import { supervisorContract } from "../../kernel/Supervisor.ts"
import { Catalog, catalogContract, type Filters, Search, SearchSettings } from "../catalog/contract.ts"
import { startIndexing } from "./buildIndex.ts"
import { Feedback } from "./Feedback.ts"
import { LexicalStore } from "./LexicalStore.ts"
import { QueryReader } from "./QueryReader.ts"
import { rankDocuments, rareMax } from "./rankDocuments.ts"

const registered = Layer.effectDiscard(
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const store = yield* LexicalStore
    const reader = yield* QueryReader
    const feedback = yield* Feedback
    const catalog = yield* Catalog
    const search = yield* Search
    const health = yield* Health
    const { lexical } = yield* SearchSettings

    const report = Effect.match(store.state, {
      onFailure: () => ({ state: "degraded" as const, detail: "the lexical index does not answer" }),
      onSuccess: ({ complete, scanned }) =>
        complete
          ? { state: "ready" as const }
          : { state: "degraded" as const, detail: `the lexical index is being built, ${scanned} so far` }
    })

    /**
     * All that pass filters, where there are any and few pass; one statement, which ends at the first too many. They
     * come in one row: two thousand rows take this process longer than ranking takes the database.
     */
    const passing = Effect.fnUntraced(function* (filters: Filters, snapshot: bigint) {
      if (Object.keys(filters).length === 0) return undefined
      const [row] = yield* sql<{ count: number; ids: string | null }>`select count(*)::int as count,
          string_agg(id::text, ',') as ids from (select r.id from catalog_resources r
            where ${catalog.condition(filters, { snapshot })} limit ${sql.literal(String(rareMax + 1))}) found`
        .unprepared
      return row!.count > rareMax ? undefined : (row!.ids?.split(",").map(BigInt) ?? [])
    })

    // Which index answers, and its averages, move slowly: one question a second.
    const answering = yield* Effect.cachedWithTTL(store.answering, (exit) => (Exit.isSuccess(exit) ? "1 second" : 0))

    yield* startIndexing
    yield* search.register({
      mode: "lexical",
      weight: lexical.weight,
      candidates: lexical.candidate_count,
      timeoutMillis: lexical.timeout_ms,
      search: ({ filters, limit, query, snapshot }) =>
        Effect.gen(function* () {
          const state = yield* answering
          const visible = (id: string) => catalog.condition({}, { id })
          const read = yield* feedback.widen(query, yield* reader.read(query, state), state, visible)
          return yield* rankDocuments(sql, state, read, {
            condition: (id) => catalog.condition(filters, { id, snapshot }),
            limit,
            passing: yield* passing(filters, snapshot)
          })
        }).pipe(Effect.mapError((error) => ({ _tag: "BranchFailed" as const, message: error.message }))),
      status: Effect.gen(function* () {
        const { state, ...detail } = yield* report
        const { language } = yield* store.answering
        const [row] = yield* sql<{
          count: number
        }>`select count(*)::int as count from search_lexical_documents where language = ${language}`
        return { health: state, ...detail, indexed: row?.count ?? 0, generations: [] }
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
        Layer.provide(Layer.unwrap(Effect.map(SearchSettings, ({ lexical }) => LexicalStore.layer(lexical.language))))
      )
    )
  )
})
