// Pseudo-relevance feedback (RM3): expands a query by the discriminative terms of its best documents, to find documents
// on the same topic in other words and to rank documents that merely mention a term lower. The query's own terms keep
// the greater share. Expansions are cached until the statistics are refreshed; they come from publicly visible
// documents, independent of one search's filters. On failure the query runs without feedback.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { withSpanIfSampled } from "../../kernel/effect/withSpanIfSampled.ts"
import { LruCache } from "../../kernel/cache/LruCache.ts"
import type { IndexState } from "./LexicalStore.ts"
import type { Term } from "./planCandidates.ts"
import type { ReadQuery } from "./QueryReader.ts"
import { quoted } from "./queryTerms.ts"
import { lengthShare, rankDocuments, saturation } from "./rankDocuments.ts"
import { countsOf } from "./Vocabulary.ts"

/** Feedback documents, expansion terms, and the expansion's share of the query weight. */
const documentsMax = 10
const wordsMax = 10
const share = 0.4
/** A term worth less than this share of the best expansion term is noise. */
const discriminativeMin = 0.3
/** A term in more than this share of the documents is not discriminative. */
const commonShare = 0.25
/** Capacity of the cache, in queries. */
const keptMax = 5_000

type Condition = (id: string) => Statement.Fragment

interface Expanded {
  readonly lexeme: string
  readonly documents: number
  readonly naming: number
  readonly worth: number
}

/** Discriminative terms of the documents by idf and frequency, weighted by the documents' scores. */
const discriminativeWords = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  hits: ReadonlyArray<{ readonly id: bigint; readonly score: number }>,
  state: IndexState,
  mayTeach: Condition | undefined
) {
  const feedbackHits = JSON.stringify(hits.map(({ id, score }) => ({ id: String(id), score })))
  const average = Math.max(1, Number(state.averageLexemes))
  // Each lexeme once before its counts are read, in float8: as numeric, and a row for each occurrence, it took half as
  // long again.
  return yield* sql<Expanded>`select w.lexeme, t.documents, t.naming,
      w.mass * ln(1 + (${state.documents}::float8 - t.documents + 0.5) / (t.documents + 0.5)) as worth
    from (
      select lexeme, sum(score * frequency / (frequency + norm)) as mass from (
        select r.score, u.lexeme, ${saturation}::float8 * (${1 - lengthShare}::float8
          + ${lengthShare}::float8 * length(d.document) / ${average}::float8) as norm,
          (select sum(case weight when 'A' then 1::float8 when 'B' then 0.5 when 'C' then 0.75 else 0.125 end)
            from unnest(u.weights) weight) as frequency
        from jsonb_to_recordset(${feedbackHits}::jsonb) as r (id bigint, score float8)
        join search_lexical_documents d on d.language = ${state.language} and d.id = r.id
          and ${mayTeach === undefined ? sql`true` : mayTeach("d.id")}, unnest(d.document) u offset 0
      ) occurrences where lexeme !~ '^[0-9]' group by lexeme
    ) w cross join lateral ${countsOf(sql, state.language, "w.lexeme")} t
    where t.documents > 1 and t.documents <= ${commonShare}::float8 * ${state.documents}::float8
    order by worth desc, w.lexeme limit ${wordsMax}`
})

/** Down-weights an original term against the expansion terms. */
const lessOf = (term: Term): Term => ({
  ...term,
  weight: (1 - share) * term.weight,
  ...(term.alike === undefined ? {} : { alike: { ...term.alike, weight: (1 - share) * term.alike.weight } })
})

/** The expanded query: the shares of the scores change, the mass of a full match does not. */
const widened = (query: ReadQuery, expanded: ReadonlyArray<Expanded>): ReadQuery => {
  const all = expanded.reduce((sum, { worth }) => sum + worth, 0)
  const known = query.terms.reduce((sum, { weight }) => sum + weight, 0)
  if (all === 0) return query
  return {
    ...query,
    terms: query.terms.map((term) => lessOf(term)),
    related: [
      ...query.related,
      ...expanded.map(({ documents, lexeme, naming, worth }): Term => ({
        tsquery: quoted(lexeme),
        documents,
        naming,
        weight: (share * known * worth) / all
      }))
    ]
  }
}

export class Feedback extends Context.Service<
  Feedback,
  {
    /**
     * `visible`: the condition of public visibility; `mayTeach`: which of the best documents expand a query, default
     * all. Free copies would add their writer's words to the query.
     */
    readonly widen: (
      text: string,
      query: ReadQuery,
      state: IndexState,
      visible: Condition,
      mayTeach?: Condition
    ) => Effect.Effect<ReadQuery>
  }
>()("tollkeeper/search-lexical/Feedback") {
  static readonly layer = Layer.effect(
    Feedback,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      let asOf = ""
      const kept = new LruCache<string, ReadonlyArray<Expanded>>({ name: "feedback", capacity: keptMax })

      const lease = Effect.fnUntraced(function* (
        query: ReadQuery,
        state: IndexState,
        condition: Condition,
        mayTeach: Condition | undefined
      ): Effect.fn.Return<ReadonlyArray<Expanded>, SqlError.SqlError> {
        const best = yield* rankDocuments(sql, state, query, { condition, limit: documentsMax })
        if (best.length === 0) return []
        const words = yield* discriminativeWords(sql, best, state, mayTeach)
        return words.filter(({ worth }) => worth >= discriminativeMin * words[0]!.worth)
      })

      const widen = Effect.fnUntraced(function* (
        text: string,
        query: ReadQuery,
        state: IndexState,
        visible: Condition,
        mayTeach?: Condition
      ) {
        const now = `${state.language} ${state.refreshedAt.getTime()}`
        if (now !== asOf) kept.clear()
        asOf = now
        const known = kept.get(text)
        const expanded =
          known ??
          (yield* Effect.catch(lease(query, state, visible, mayTeach), (error) =>
            Effect.as(Effect.logWarning("a search goes without feedback", error), undefined)
          ))
        if (expanded === undefined) return query
        if (known === undefined) kept.set(text, expanded)
        return widened(query, expanded)
      }, withSpanIfSampled("Feedback.widen"))

      return Feedback.of({ widen })
    })
  )
}
