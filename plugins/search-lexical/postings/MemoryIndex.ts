// The copy of the lexical index that a process keeps in memory. PostgreSQL is the source of truth: the copy is loaded
// in the background and follows the table by snapshots, so a row of any transaction is read once, whichever replica
// wrote it. A promoted standby or a restored database numbers its transactions differently, so it is loaded from the
// beginning. Until the copy is loaded, or if it does not fit, a query's best candidates are read from PostgreSQL into
// another copy and scored by the same code. A read belongs to the plugin and not to the search that started it.
import { Context, Deferred, Effect, Layer, type Scope } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import type { IndexState } from "../LexicalStore.ts"
import { type CountedLexemes, Postings } from "./Postings.ts"
import type { ScoredQuery } from "./scoreDocuments.ts"
import type { StoredDocument } from "./Segment.ts"

const pageMax = 500
/** Lexemes of one read of the statistics. */
const countedMax = 5_000
/** A search sees changes that are this old: a new resource is listed as late (`Searcher.ts`). */
const freshMillisDefault = 200
/** A search waits this long for changes; then it uses the copy without them. So long the first searches wait for it. */
const patienceMillis = 300
/** Maximum memory of a copy, by its own estimate. */
const bytesMax = 600 * 2 ** 20
/** Candidates that a query reads from PostgreSQL without a copy. */
const candidatesMax = 1_000

interface Copy {
  readonly language: string
  /** Identity of the database that the snapshot is of. */
  readonly server: string
  readonly postings: Postings
  /** The snapshot at the last read, and its time by `monotonicMillis`. */
  snapshot: string | undefined
  observedAt: number
  /** Time of the refresh that the copy's statistics are of. */
  countedAt: number
}

/** The index that a search reads: its language, and the time of the last refresh that it has seen. */
type Edition = Pick<IndexState, "language" | "refreshedAt">

const newCopy = (language: string, server: string): Copy => ({
  language,
  server,
  postings: new Postings(),
  snapshot: undefined,
  observedAt: 0,
  countedAt: -1
})

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

const put = Effect.fnUntraced(function* (postings: Postings, rows: ReadonlyArray<StoredDocument>) {
  const steps = postings.put(rows)
  while (steps.next().done !== true) yield* Effect.yieldNow
})

/** The database's snapshot, its identity and the last refresh of the statistics at this moment. */
const readPoint = (sql: SqlClient.SqlClient, language: string) =>
  Effect.map(
    sql<{ snapshot: string; server: string; refreshedAt: Date | null }>`select
      pg_current_snapshot()::text as snapshot, kernel_server_identity() as server,
      (select refreshed_at from search_lexical_state where language = ${language}) as "refreshedAt"`,
    ([row]) => row!
  )

/** Reads the statistics of all lexemes, if they were refreshed since the last read. */
const readStatistics = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, copy: Copy, refreshedAt: Date | null) {
  const countedAt = refreshedAt?.getTime() ?? 0
  if (copy.countedAt === countedAt) return
  const pages: Array<CountedLexemes> = []
  do {
    const after = pages.at(-1)?.lexemes.at(-1) ?? ""
    const [page] = yield* sql<CountedLexemes>`select coalesce(json_agg(lexeme), '[]') as lexemes,
        json_agg(documents) as documents, json_agg(origins) as origins
      from (select lexeme, documents, origins from search_lexical_terms
        where language = ${copy.language} and lexeme > ${after} order by lexeme limit ${countedMax}) counted`
    pages.push(page!)
  } while (pages.at(-1)!.lexemes.length === countedMax)
  copy.postings.setStatistics(pages)
  copy.countedAt = countedAt
})

/** Reads the rows that the copy's snapshot does not see. Returns whether the copy still fits. */
const follow = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, copy: Copy, snapshot: string) {
  const now = yield* monotonicMillis
  let from = { xid: copy.snapshot?.split(":")[0] ?? "0", id: -1n }
  while (copy.postings.bytes <= bytesMax) {
    const since = copy.snapshot ?? "1:1:"
    const rows = yield* sql<StoredDocument & { readonly xid: string }>`select id, document::text as document,
        xid::text as xid from search_lexical_documents d
      where language = ${copy.language} and xid >= ${from.xid}::xid8 and (xid > ${from.xid}::xid8 or id > ${from.id})
        and (${copy.snapshot ?? ""} = '' or (not pg_visible_in_snapshot(xid, ${since}::pg_snapshot)
          and xid < pg_snapshot_xmax(pg_current_snapshot())))
      order by d.xid, id limit ${pageMax}`
    yield* put(copy.postings, rows)
    if (rows.length < pageMax) {
      copy.snapshot = snapshot
      copy.observedAt = now
      return true
    }
    from = rows.at(-1)!
  }
  return false
})

const warnOversized = (language: string) =>
  Effect.logWarning("search_index_too_large").pipe(
    Effect.annotateLogs({ event: "search_index_too_large", language, bytesMax })
  )

const quoted = (lexeme: string): string => `'${lexeme.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`

/** Any of a query's lexemes, as a tsquery. */
const anyLexeme = ({ related, terms }: ScoredQuery): string =>
  [...terms, ...related]
    .flatMap(({ alike, lexemes }) => [...lexemes, ...(alike?.lexemes ?? [])])
    .map(quoted)
    .join(" | ")

/** The statement that reads a query's candidates, for the search and for the test that reads its plan. */
export const candidatesStatement = (
  sql: SqlClient.SqlClient,
  language: string,
  query: ScoredQuery,
  among?: ReadonlyArray<bigint>
) => {
  const any = anyLexeme(query)
  return sql<StoredDocument>`select id, document::text as document from search_lexical_documents
    where language = ${language} and document @@ ${any}::tsquery
      and ${among === undefined ? sql`true` : sql`id = any(${`{${among.join(",")}}`}::int8[])`}
    order by ts_rank(document, ${any}::tsquery) desc, id limit ${candidatesMax}`
}

/** How long a search still waits for a load: a small index is loaded by then. */
const makePatience = (millis: number) => {
  let began: { readonly language: string; readonly at: number } | undefined
  return (language: string, now: number): number => {
    if (began?.language !== language) began = { language, at: now }
    return began.at + millis - now
  }
}

type Reading = Deferred.Deferred<void, SqlError.SqlError>

/** Runs one read at a time, in this scope. */
const makeReads = (scope: Scope.Scope, read: (language: string) => Sql<void>) => {
  let reading: Reading | undefined
  return {
    running: () => reading,
    /** Returns the read under way, or a new one. */
    start: (language: string) =>
      Effect.suspend(() => {
        if (reading !== undefined) return Effect.succeed(reading)
        const done: Reading = Deferred.makeUnsafe()
        reading = done
        const ending = Effect.onExit(read(language), (exit) => {
          reading = undefined
          return Deferred.done(done, exit)
        })
        return Effect.as(Effect.forkIn(ending, scope), done)
      })
  }
}

export class MemoryIndex extends Context.Service<
  MemoryIndex,
  {
    /** The whole index of a language; undefined until it is loaded, or if it does not fit. */
    readonly whole: (state: Edition) => Sql<Postings | undefined>
    /** The documents that a query may find: all, or its candidates among these. */
    readonly candidates: (state: Edition, query: ScoredQuery, among?: ReadonlyArray<bigint>) => Sql<Postings>
    readonly isLoaded: (language: string) => boolean
    /** Waits until the copy of a language is loaded, or until it does not fit. */
    readonly load: (state: Edition) => Sql<void>
  }
>()("tollkeeper/search-lexical/MemoryIndex") {
  /** `loadMillis`: how long the first searches wait for the load. */
  static readonly layerWith = (
    freshMillis: number,
    loadMillis = patienceMillis
  ): Layer.Layer<MemoryIndex, never, SqlClient.SqlClient> =>
    Layer.effect(
      MemoryIndex,
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const scope = yield* Effect.scope
        let copy: Copy | undefined
        let oversized: string | undefined
        const patienceLeft = makePatience(loadMillis)

        const read = Effect.fnUntraced(function* (language: string) {
          const { refreshedAt, server, snapshot } = yield* readPoint(sql, language)
          const known = copy?.language === language && copy.server === server ? copy : undefined
          const next = known ?? newCopy(language, server)
          const isFitting = yield* follow(sql, next, snapshot)
          if (isFitting) yield* readStatistics(sql, next, refreshedAt)
          copy = isFitting ? next : undefined
          // A copy that has followed many changes keeps lexemes that no document holds; a new one does not.
          if (isFitting || known !== undefined) return
          oversized = language
          yield* warnOversized(language)
        })

        const { running, start } = makeReads(scope, read)

        const load: MemoryIndex["Service"]["load"] = Effect.fnUntraced(function* ({ language }) {
          while (copy?.language !== language && oversized !== language) yield* Deferred.await(yield* start(language))
        })

        const whole: MemoryIndex["Service"]["whole"] = Effect.fnUntraced(function* ({ language, refreshedAt }) {
          if (oversized === language) return undefined
          const from = yield* monotonicMillis
          if (copy?.language !== language) {
            const loading = yield* start(language)
            const left = patienceLeft(language, from)
            if (left > 0) yield* Effect.timeoutOption(Deferred.await(loading), left)
          }
          const isBehind = () =>
            copy !== undefined && (copy.observedAt <= from - freshMillis || copy.countedAt < refreshedAt.getTime())
          const caughtUp = Effect.gen(function* () {
            // A read that is under way may have begun too early.
            const reading = running()
            if (reading !== undefined) yield* Deferred.await(reading)
            if (isBehind()) yield* Deferred.await(yield* start(language))
          })
          if (isBehind()) yield* Effect.timeoutOption(caughtUp, patienceMillis)
          return copy?.language === language ? copy.postings : undefined
        })

        const candidates: MemoryIndex["Service"]["candidates"] = Effect.fnUntraced(function* (state, query, among) {
          const all = yield* whole(state)
          if (all !== undefined) return all
          const few = new Postings()
          yield* put(few, yield* candidatesStatement(sql, state.language, query, among))
          return few
        })

        return MemoryIndex.of({ whole, candidates, load, isLoaded: (language) => copy?.language === language })
      })
    )

  static readonly layer = MemoryIndex.layerWith(freshMillisDefault)
}
