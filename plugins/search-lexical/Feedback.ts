// Pseudo-relevance feedback (RM3): expands a query by the discriminative terms of its best documents, to find documents
// on the same topic in other words and to rank documents that merely mention a term lower. The query's own terms keep
// the greater share. Expansions are cached until the statistics are refreshed; they come from publicly visible
// documents, independent of one search's filters. On failure the query runs without feedback.
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { withSpanIfSampled } from "../../kernel/effect/withSpanIfSampled.ts"
import { LruCache } from "../../kernel/cache/LruCache.ts"
import type { Hit } from "../catalog/contract.ts"
import type { IndexState } from "./LexicalStore.ts"
import type { Term } from "./queryTerms.ts"
import type { ReadQuery } from "./QueryReader.ts"
import { averageOf, type Passing, rankDocuments } from "./rankDocuments.ts"
import { MemoryIndex } from "./postings/MemoryIndex.ts"
import type { Postings } from "./postings/Postings.ts"
import { frequencyUnit, normOf } from "./postings/scoreDocuments.ts"

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

interface Expanded {
  readonly lexeme: string
  readonly worth: number
}

/** Discriminative terms of the documents by idf and frequency, weighted by the documents' scores. */
const discriminativeWords = (
  postings: Postings,
  hits: ReadonlyArray<Pick<Hit, "id" | "score">>,
  state: IndexState
): ReadonlyArray<Expanded> => {
  const masses = new Map<number, number>()
  for (const { id, score } of hits) {
    const frequencies = postings.frequenciesOf(id)
    const norm = normOf(frequencies.length, averageOf(state))
    for (const [lexeme, eighths] of frequencies) {
      const frequency = eighths * frequencyUnit
      masses.set(lexeme, (masses.get(lexeme) ?? 0) + (score * frequency) / (frequency + norm))
    }
  }
  return [...masses]
    .flatMap(([number, mass]): ReadonlyArray<Expanded> => {
      const [documents, lexeme] = [postings.countOf(number), postings.textOf(number)]
      if (/^[0-9]/.test(lexeme) || documents <= 1 || documents > commonShare * state.documents) return []
      return [{ lexeme, worth: mass * Math.log(1 + (state.documents - documents + 0.5) / (documents + 0.5)) }]
    })
    .toSorted((a, b) => b.worth - a.worth || (a.lexeme < b.lexeme ? -1 : 1))
    .slice(0, wordsMax)
}

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
      ...expanded.map(({ lexeme, worth }): Term => ({ lexemes: [lexeme], weight: (share * known * worth) / all }))
    ]
  }
}

export class Feedback extends Context.Service<
  Feedback,
  {
    /**
     * `visible`: the given resources that are public; `mayTeach`: which of the best documents expand a query, default
     * all. Free copies would add their writer's words to the query. Until the index is in memory a query stays as it
     * is.
     */
    readonly widen: (
      text: string,
      query: ReadQuery,
      state: IndexState,
      visible: Passing,
      mayTeach?: Passing
    ) => Effect.Effect<ReadQuery>
  }
>()("tollkeeper/search-lexical/Feedback") {
  static readonly layer = Layer.effect(
    Feedback,
    Effect.gen(function* () {
      const index = yield* MemoryIndex
      let asOf = ""
      const kept = new LruCache<string, ReadonlyArray<Expanded>>({ name: "feedback", capacity: keptMax })

      const lease = Effect.fnUntraced(function* (
        query: ReadQuery,
        state: IndexState,
        visible: Passing,
        mayTeach: Passing | undefined
      ): Effect.fn.Return<ReadonlyArray<Expanded> | undefined, SqlError.SqlError> {
        const postings = yield* index.whole(state)
        if (postings === undefined) return undefined
        const best = yield* rankDocuments(index, state, query, { passing: visible, limit: documentsMax })
        const teaching = new Set(mayTeach === undefined ? [] : yield* mayTeach(best.map(({ id }) => id)))
        const taught = mayTeach === undefined ? best : best.filter(({ id }) => teaching.has(id))
        const words = discriminativeWords(postings, taught, state)
        return words.filter(({ worth }) => worth >= discriminativeMin * words[0]!.worth)
      })

      const widen = Effect.fnUntraced(function* (
        text: string,
        query: ReadQuery,
        state: IndexState,
        visible: Passing,
        mayTeach?: Passing
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
