// The ranking: Σ over the query's terms of rarity · saturation of the weighted term frequency. PostgreSQL's ts_rank_cd of a single
// term is the sum of the weights of its occurrences, that is BM25F's weighted frequency; what ts_rank_cd lacks, the rarity of a
// term, a bound on repetition and the length of the document, is put around it (S169). Scores are divided by what a document with
// every word in its name could reach, so that a relevance of 0 to 1 means the same for every query.
import { Effect } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"
import type { Hit } from "../catalog/contract.ts"
import type { IndexState } from "./LexicalStore.ts"
import { type CandidatePlan, everything, planCandidates } from "./planCandidates.ts"
import type { ReadQuery } from "./readQuery.ts"

/** Weights of the fields D, C, B, A in PostgreSQL's order. Halved, since 1 is the highest it takes. */
export const fieldWeights = "{0.125,0.75,0.5,1}"
/** Saturation: the weighted frequency at which half of a term's worth is reached, halved like the weights. */
const saturation = 0.6
/** How much a document longer than the average is expected to repeat itself: 0 not at all, 1 in proportion. */
const lengthShare = 0.4

/** Documents looked at in the first attempt, by plan and at most. */
const budgetMin = 200
const overrun = 4
/** So few hits make a second attempt worth its time: over everything that matches and passes the filters, as far as this. */
const fewHits = 40
const secondLookMax = 4_000

/** The statement, for the search and for the test that reads its plan. */
export const rankStatement = (
  sql: SqlClient.SqlClient,
  state: IndexState,
  query: ReadQuery,
  options: { readonly plan: CandidatePlan; readonly second: boolean; readonly condition: (id: string) => Statement.Fragment; readonly limit: number }
): Statement.Statement<Hit> => {
  // Computed once a document, in float8: as numeric it took ten times as long as the ranking itself.
  const norm = sql.literal(
    `${saturation}::float8 * (${1 - lengthShare}::float8 + ${lengthShare}::float8 * length(document) / greatest(1, ${Number(state.averageLexemes)}::float8))`
  )
  const worth = query.terms.map(({ tsquery, weight }) =>
    sql`${weight}::float8 * (1 - d.norm / (ts_rank_cd(${sql.literal(`'${fieldWeights}'`)}, d.document, ${tsquery}::tsquery) + d.norm))`
  )
  const chosen = options.plan.conditions.map(({ tsquery, where }) =>
    where === "document" ? sql`document @@ ${tsquery}::tsquery` : sql`ts_filter(document, '{a,c}') @@ ${tsquery}::tsquery`
  )
  // The first look ranks and then filters only as far as hits are wanted; the second filters first, to rank what is left.
  const first = options.plan.complete && !options.second
  const passing = options.second ? sql`and ${options.condition("s.id")}` : sql.literal("")
  const bound = first ? sql.literal("offset 0") : sql`limit ${options.second ? Math.max(secondLookMax, 2 * options.limit) : overrun * Math.max(budgetMin, 2 * options.limit)}`
  return sql<Hit>`with ranked as materialized (
      select d.id, (${sql.join(" + ", false)(worth)})::float8 as score
      from (select id, document, ${norm} as norm from search_lexical_documents s where language = ${state.language} and ${sql.or(chosen)} ${passing} ${bound}) d
      order by score desc, d.id desc)
    select ranked.id, ranked.score / ${query.mass}::float8 as score, ranked.score / ${query.mass}::float8 as relevance
    from ranked where ${options.second ? sql.literal("true") : options.condition("ranked.id")} limit ${options.limit}`
}

/** Ranked hits, best first. Looks at everything that matches when the first look, or its filters, left too few. */
export const rankDocuments = Effect.fn("rankDocuments")(function*(
  sql: SqlClient.SqlClient,
  state: IndexState,
  query: ReadQuery,
  options: { readonly condition: (id: string) => Statement.Fragment; readonly limit: number }
): Effect.fn.Return<ReadonlyArray<Hit>, SqlError.SqlError> {
  if (query.terms.length === 0) return []
  const first = planCandidates(query.terms, state.documents, Math.max(budgetMin, 2 * options.limit))
  let hits = yield* rankStatement(sql, state, query, { ...options, plan: first, second: false })
  if (!first.complete && hits.length < Math.min(options.limit, fewHits)) {
    hits = yield* rankStatement(sql, state, query, { ...options, plan: everything(query.terms), second: true })
  }
  return hits.toSorted((a, b) => b.score - a.score || (a.id < b.id ? 1 : -1))
})
