// Document frequencies of lexemes, and the length of documents: counted again when a fifth of the documents has
// changed, after five minutes with any change, and immediately while there are few. A ranking does not need the exact
// numbers. One replica counts; a concurrent one finds nothing due. The other languages of listings are counted too, by
// the marks of their lexemes (`languages.ts`).
import { Effect } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { inTransaction } from "../../kernel/database/Database.ts"
import { Lane } from "../../kernel/database/Connections.ts"
import { languageMark } from "./languages.ts"

const refreshAfterSeconds = 300
/** Up to this many documents counting takes milliseconds. */
const countedAlways = 2_000
/**
 * Maximum languages for reading queries, in addition to the index's own, most listings first: all that are detected.
 */
const spokenMax = 6

/** By the database's clock, the same for all replicas. A refresh in its future means that it was set back. */
const isDue = Effect.fnUntraced(function* (language: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ due: boolean }>`select changed > 0 and (changed * 5 >= documents
      or documents < ${countedAlways} or refreshed_at > clock_timestamp()
      or refreshed_at < clock_timestamp() - ${refreshAfterSeconds} * interval '1 second') as due
    from search_lexical_state where language = ${language}`
  return row?.due ?? false
})

/** Conditions on the resource with this expression as its id: it has evidence, and evidence that dust cannot make. */
export interface EvidenceConditions {
  readonly any: (id: string) => Statement.Fragment
  readonly established: (id: string) => Statement.Fragment
}

/**
 * One listing of each origin, drawn by its id: a listing of an origin drawn by lot holds a word as often. If any
 * listing has evidence, only established listings are counted, even if there are none: free names and dust payments
 * must not make a word common. Fewer than some twenty origins cannot make a word common either: `evidence.ts` adds 200
 * origins without it.
 */
const drawnOf = Effect.fnUntraced(function* (language: string, evidence: EvidenceConditions | undefined) {
  const sql = yield* SqlClient.SqlClient
  const all = sql`select distinct on (coalesce(origin, id)) document from search_lexical_documents d
    where language = ${language}`
  const order = sql`order by coalesce(origin, id), hashint8(id)`
  if (evidence === undefined) return { drawn: sql`${all} ${order}`, isProven: false }
  const proven = yield* sql`select 1 from search_lexical_documents d where language = ${language}
    and ${evidence.any("d.id")} limit 1`
  const isProven = proven.length > 0
  return { drawn: isProven ? sql`${all} and ${evidence.established("d.id")} ${order}` : sql`${all} ${order}`, isProven }
})

const countLexemes = Effect.fnUntraced(function* (language: string, drawn: Statement.Fragment) {
  const sql = yield* SqlClient.SqlClient
  const documents = `select document from search_lexical_documents where language = '${language}'`
  yield* sql`with counted as materialized (
      select word collate "C" as lexeme, ndoc as documents from ts_stat(${documents})
    ), drawn as materialized (
      select lexeme collate "C" as lexeme, count(*)::int as origins from (${drawn}) one,
        lateral unnest(tsvector_to_array(document)) lexeme group by 1
    ), gone as (
      delete from search_lexical_terms t where language = ${language} and not exists (select 1 from counted c
        where c.lexeme = t.lexeme)
    )
    insert into search_lexical_terms as old (language, lexeme, documents, origins, grams)
    select ${language}, lexeme, documents, coalesce(origins, 0),
      array(select distinct substr('  ' || word || ' ', at, 3) from generate_series(1, length(word) + 1) at)
    from counted left join drawn using (lexeme), split_part(lexeme, ${languageMark}, 1) word
    where length(lexeme) <= 80
    on conflict (language, lexeme) do update set documents = excluded.documents, origins = excluded.origins
    where (old.documents, old.origins) <> (excluded.documents, excluded.origins)`
})

const count = Effect.fnUntraced(function* (language: string, evidence: EvidenceConditions | undefined) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`select 1 from search_lexical_state where language = ${language} for update`
  if (!(yield* isDue(language))) return false
  // Counting reads every document once: it may take long, and searches continue during it.
  yield* sql`set local statement_timeout = '10min'`.unprepared
  const { drawn, isProven } = yield* drawnOf(language, evidence)
  yield* countLexemes(language, drawn)
  yield* sql`update search_lexical_state set changed = 0, refreshed_at = clock_timestamp(), documents = d.count,
      origins = (select count(*)::int from (${drawn}) one), proven = ${isProven},
      average_lexemes = d.average, spoken = (select coalesce(string_agg(tag, ',' order by most desc, tag), '') from (
        select split_part(lexeme, ${languageMark}, 2) as tag, max(documents) as most from search_lexical_terms
        where language = ${language} and position(${languageMark} in lexeme) > 0
        group by 1 order by most desc, tag limit ${spokenMax}) m)
    from (select count(*)::int as count, coalesce(avg(length(document)), 1)::float8 as average
      from search_lexical_documents where language = ${language}) d
    where language = ${language}`
  return true
})

/** Refreshes the statistics of a language when they are due; true if it did. The name is one of PostgreSQL's. */
export const refreshStatistics = Effect.fn("LexicalStore.refresh")(function* (
  language: string,
  evidence?: EvidenceConditions
) {
  if (!(yield* isDue(language))) return false
  return yield* Effect.provideService(inTransaction(count(language, evidence)), Lane, "maintenance")
})
