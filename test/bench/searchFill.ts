// The database of the search bench, filled once: a server with its folder in the system's temporary folder, named after
// everything that determines its content, so that another run starts immediately and a change of indexing fills a new
// one. It is filled as payments and their indexes would fill it, except that lexical indexes are created at the end.
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { Lane } from "../../kernel/database/Connections.ts"
import { ingest, type IngestedResource } from "../relevance/ingest.ts"
import type { Facilitator } from "../support/facilitator.ts"
import { startKeptPostgres, startPostgres, type TestPostgres } from "../support/postgres.ts"
import { Progress } from "./rig/Progress.ts"
import { makeWorld } from "./searchWorld.ts"

/** Number of queries of each kind. */
const QUERIES = 500
/** Number of measurements with new queries. */
const FRESH_PARTS = 7

const root = new URL("../../", import.meta.url)

/** Everything that determines the stored and indexed data. */
const ingredients = [
  "migrations/kernel",
  "migrations/catalog",
  "migrations/search-lexical",
  "migrations/search-semantic",
  "plugins/search-lexical/documentText.ts",
  "plugins/search-lexical/languages.ts",
  "plugins/search-lexical/refreshStatistics.ts",
  "plugins/search-lexical/words.ts",
  "plugins/search-lexical/writeDocuments.ts",
  "plugins/search-semantic/embeddingText.ts",
  "plugins/search-semantic/embedded/phrases.txt",
  "plugins/search-semantic/embedded/textVector.ts",
  "plugins/search-semantic/embedded/words.bin",
  "test/bench/searchFill.ts",
  "test/bench/searchWorld.ts",
  "test/relevance/ingest.ts"
]

const filesOf = (path: string): ReadonlyArray<string> =>
  statSync(new URL(path, root)).isDirectory()
    ? readdirSync(new URL(path, root))
        .toSorted()
        .map((name) => `${path}/${name}`)
    : [path]

const folderOf = (count: number): string => {
  const hash = createHash("sha256")
  for (const file of ingredients.flatMap(filesOf)) hash.update(file).update(readFileSync(new URL(file, root)))
  return join(tmpdir(), `tollkeeper-bench-search-${count}-${hash.digest("hex").slice(0, 12)}`)
}

export interface KeptServer extends TestPostgres {
  /** Marks it as completely filled. */
  readonly filled: () => void
}

/** The server from the environment, or the kept one; an incompletely filled one starts again. */
export const startKept = async (count: number): Promise<KeptServer> => {
  const given = process.env["TOLLKEEPER_TEST_DATABASE_URL"]
  if (given !== undefined && given !== "") return { ...(await startPostgres()), filled: () => {} }
  const folder = folderOf(count)
  const mark = join(folder, "filled")
  if (!existsSync(mark)) rmSync(folder, { recursive: true, force: true })
  const server = await startKeptPostgres(folder)
  return { ...server, description: `${server.description} in ${folder}`, filled: () => writeFileSync(mark, "") }
}

const seconds = (from: number) => ((performance.now() - from) / 1_000).toFixed(0)

interface IndexStatus {
  readonly lexical: number
  readonly changed: number
  readonly due: number
  readonly generation: bigint | null
}

const readIndexStatus = (sql: SqlClient.SqlClient) =>
  Effect.map(
    sql<IndexStatus>`select (select count(*) from search_lexical_documents)::int as lexical,
      (select changed from search_lexical_state limit 1) as changed, (select count(*)
        from search_semantic_jobs)::int as due,
      (select max(id) from search_semantic_generations where status = 'active') as generation`,
    ([row]) => row!
  )

const countOf = (sql: SqlClient.SqlClient, table: string) =>
  Effect.map(sql<{ count: number }>`select count(*)::int as count from ${sql(table)}`, ([row]) => row!.count)

/** Waits until all indexes hold everything. */
const untilIndexed = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, count: number, progress: Progress) {
  while (true) {
    const { changed, due, generation, lexical } = yield* readIndexStatus(sql)
    const vectors = generation === null ? 0 : yield* countOf(sql, `search_semantic_vectors_${generation}`)
    const words = yield* countOf(sql, "search_semantic_word_vectors")
    progress.step(`${lexical} by words, ${vectors} by vectors, ${words} by the table of words`)
    // The last refresh of the statistics may wait for minutes if little has changed; a few documents do not matter.
    const isCounted = lexical >= count && changed * 5 < count
    if (isCounted && words >= count && vectors >= count && due === 0) return
    yield* Effect.sleep("5 seconds")
  }
})

/** The most expensive indexes to maintain while rows come, on a server; created again after the last row. */
const lateIndexes = (sql: SqlClient.SqlClient) =>
  sql<{ name: string; definition: string }>`select indexname as name, indexdef as definition from pg_indexes
    where tablename = 'search_lexical_documents' and indexdef like '% USING gin %'`

const fill = Effect.fnUntraced(function* (
  { publishedBy, sql }: Facilitator,
  resources: ReadonlyArray<IngestedResource>,
  indexLate: boolean
) {
  const count = resources.length
  const progress = new Progress("fill", 12)
  const startedAt = performance.now()
  const late = indexLate ? yield* lateIndexes(sql) : []
  for (const { name } of late) yield* sql`drop index ${sql(name)}`.unprepared
  yield* publishedBy(ingest(sql, resources))
  progress.step(`${count} stored`)
  yield* untilIndexed(sql, count, progress)
  for (const { definition } of late) {
    progress.step("an index is made")
    yield* sql
      .withTransaction(
        Effect.gen(function* () {
          yield* sql`set local statement_timeout = 0`.unprepared
          yield* sql`set local maintenance_work_mem = '512MB'`.unprepared
          yield* sql.unsafe(definition).unprepared
        })
      )
      .pipe(Effect.provideService(Lane, "maintenance"))
  }
  progress.end()
  console.log(`  stored and indexed ${count} in ${seconds(startedAt)} s`)
})

/** Creates the world in the database of a facilitator with every branch, unless it is already filled. */
export const populate = Effect.fnUntraced(function* (facilitator: Facilitator, count: number, indexLate: boolean) {
  const { resources, world } = makeWorld(count, QUERIES, FRESH_PARTS)
  const known = yield* countOf(facilitator.sql, "catalog_resources")
  if (known === count) return world
  if (known > 0) return yield* Effect.die(new Error(`the database holds ${known} resources of another run`))
  yield* fill(facilitator, resources, indexLate)
  const tables = ["catalog_resources", "catalog_options", "catalog_activity", "search_lexical_documents"]
  for (const table of [...tables, "search_lexical_terms"])
    yield* facilitator.sql`vacuum analyze ${facilitator.sql(table)}`.unprepared
  return world
})
