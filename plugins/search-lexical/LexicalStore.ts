// The lexical index in PostgreSQL: documents as weighted tsvectors, and statistics of their lexemes. Writes are
// idempotent and an older version never replaces a newer one, so that the first build and the changes that arrive
// meanwhile may cross. They go to the index of every language there is, because while the language changes any replica
// may be the one that hears of a change. Statistics are refreshed when a fifth of the documents has changed, after five
// minutes with any change at all, and at once while there are few.
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { inTransaction } from "../../kernel/database/Database.ts"
import { Lane } from "../../kernel/database/Lane.ts"
import type { ResourceDocument } from "../catalog/contract.ts"
import { documentText } from "./documentText.ts"

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

export interface IndexState {
  readonly language: string
  /** The last resource id of the first build. */
  readonly scanned: bigint
  readonly complete: boolean
  /** As of the last refresh. */
  readonly documents: number
  readonly averageLexemes: number
  readonly changed: number
  /** When the statistics were last refreshed. */
  readonly refreshedAt: Date
}

const refreshAfterMillis = 300_000
/** Up to so many documents counting takes milliseconds. */
const countedAlways = 2_000

/** PostgreSQL's names of text search configurations, so that one may stand in a statement as it is. */
const isConfiguration = (language: string): boolean => /^[a-z_]{1,63}$/.test(language)

export class LexicalStore extends Context.Service<
  LexicalStore,
  {
    /** The language of the settings. */
    readonly language: string
    /** The language whose index answers: the settings' own once it is complete, before that the one that was. */
    readonly answering: Sql<IndexState>
    /** The state of the language of the settings; complete where another replica has moved on to another language. */
    readonly state: Sql<IndexState>
    /** Into the index of every language there is. */
    readonly write: (documents: ReadonlyArray<ResourceDocument>) => Sql<void>
    /** Records how far the first build has come. */
    readonly scannedTo: (id: bigint, complete: boolean) => Sql<void>
    /** Refreshes the statistics when they are due; says whether it did. */
    readonly refresh: Sql<boolean>
    /** Removes languages that were begun before the own one, once that is complete. */
    readonly retire: Sql<void>
  }
>()("tollkeeper/search-lexical/LexicalStore") {
  static readonly layer = (language: string): Layer.Layer<LexicalStore, SqlError.SqlError, SqlClient.SqlClient> =>
    Layer.effect(
      LexicalStore,
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        if (!isConfiguration(language))
          return yield* Effect.die(new Error("search.lexical.language is not the name of a text search configuration"))
        // By the clock of the database, which all replicas share and which may stand still between two statements.
        yield* sql`insert into search_lexical_state (language, begun_at)
          select ${language}, greatest(clock_timestamp(), max(begun_at) + interval '1 microsecond')
            from search_lexical_state where language <> ${language}
          on conflict (language) do update set begun_at = excluded.begun_at`
        const columns = sql.literal(
          `language, scanned, complete, documents, average_lexemes as "averageLexemes", changed, refreshed_at as ` +
            `"refreshedAt"`
        )
        const retired: IndexState = {
          language,
          scanned: 0n,
          complete: true,
          documents: 0,
          averageLexemes: 1,
          changed: 0,
          refreshedAt: new Date(0)
        }
        const state = Effect.map(
          sql<IndexState>`select ${columns} from search_lexical_state where language = ${language}`,
          ([row]) => row ?? retired
        )

        const write = Effect.fn("LexicalStore.write")(function* (documents: ReadonlyArray<ResourceDocument>) {
          if (documents.length === 0) return
          const rows = documents.map((document) => ({
            id: String(document.id),
            version: document.version,
            ...documentText(document)
          }))
          yield* sql`with written as (
              insert into search_lexical_documents as old (language, id, version, document)
              select s.language, id, version, setweight(to_tsvector(s.language::regconfig, a), 'A') ||
                setweight(to_tsvector(s.language::regconfig, b), 'B')
                || setweight(to_tsvector(s.language::regconfig, c), 'C') || setweight(to_tsvector(s.language::regconfig,
                  d), 'D')
              from search_lexical_state s, jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as r (id bigint, version
                integer, a text, b text, c text, d text)
              order by s.language, id
              on conflict (language, id) do update set version = excluded.version, document = excluded.document
              where old.version < excluded.version or (old.version = excluded.version
                and old.document <> excluded.document)
              returning language
            )
            update search_lexical_state s set changed = changed + w.count
            from (select language, count(*)::int as count from written group by language order by language) w
              where s.language = w.language`
        })

        const isDue = Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const [due] = yield* sql<{
            due: boolean
          }>`select changed > 0 and (changed * 5 >= documents or documents < ${countedAlways}
            or refreshed_at < ${new Date(now - refreshAfterMillis)}) as due
            from search_lexical_state where language = ${language}`
          return due?.due ?? false
        })

        const refresh = Effect.fn("LexicalStore.refresh")(function* () {
          if (!(yield* isDue)) return false
          const counting = Effect.gen(function* () {
            const now = yield* Clock.currentTimeMillis
            // One replica counts; another that comes meanwhile finds nothing due.
            yield* sql`select 1 from search_lexical_state where language = ${language} for update`
            if (!(yield* isDue)) return false
            // Counting reads every document once: allowed to take its time, beside searches that go on.
            yield* sql`set local statement_timeout = '10min'`.unprepared
            yield* sql`with counted as materialized (
                select word collate "C" as lexeme, ndoc as documents
                  from ts_stat(${`select document from search_lexical_documents where language = '${language}'`})
              ), named as materialized (
                select word collate "C" as lexeme, ndoc as naming
                  from ts_stat(${`select document from search_lexical_documents where language = '${language}'`}, 'ac')
              ), gone as (
                delete from search_lexical_terms t where language = ${language} and not exists (select 1 from counted c
                  where c.lexeme = t.lexeme)
              )
              insert into search_lexical_terms as old (language, lexeme, documents, naming, grams)
              select ${language}, lexeme, documents, coalesce(naming, 0), array(select distinct substr('  ' || lexeme ||
                ' ', at, 3) from generate_series(1, length(lexeme) + 1) at)
              from counted left join named using (lexeme) where length(lexeme) <= 80
              on conflict (language, lexeme) do update set documents = excluded.documents, naming = excluded.naming
              where (old.documents, old.naming) <> (excluded.documents, excluded.naming)`
            yield* sql`update search_lexical_state set changed = 0, refreshed_at = ${new Date(now)}, documents =
              d.count, average_lexemes = d.average
              from (select count(*)::int as count, coalesce(avg(length(document)), 1)::float8 as average
                from search_lexical_documents where language = ${language}) d
              where language = ${language}`
            return true
          })
          return yield* inTransaction(counting).pipe(
            Effect.provideService(SqlClient.SqlClient, sql),
            Effect.provideService(Lane, "maintenance")
          )
        })

        return LexicalStore.of({
          language,
          answering: Effect.map(
            sql<IndexState>`select ${columns} from search_lexical_state order by (language = ${language}
              and complete) desc, complete desc, (language = ${language}) desc limit 1`,
            ([row]) => row!
          ),
          state,
          write,
          scannedTo: (id, complete) =>
            Effect.asVoid(
              sql`update search_lexical_state set scanned = ${id}::int8, complete = ${complete}
                where language = ${language}`
            ),
          refresh: refresh(),
          retire: Effect.gen(function* () {
            const earlier = sql`select o.language from search_lexical_state o join search_lexical_state s
              on s.language = ${language} and s.complete and o.begun_at < s.begun_at`
            for (const table of ["documents", "terms", "state"]) {
              yield* sql`delete from ${sql(`search_lexical_${table}`)} where language in (${earlier})`
            }
          })
        })
      })
    )
}
