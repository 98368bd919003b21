// The ranking: Σ over the query's terms of rarity · saturation of the weighted term frequency. PostgreSQL's ts_rank_cd
// of a single term is the sum of the weights of its occurrences, that is BM25F's weighted frequency. The query adds the
// parts that ts_rank_cd lacks: the rarity of a term, a bound on repetition and the length of the document (S169).
// Scores are divided by the highest score possible, of a document with every word in its name, so that a relevance of 0
// to 1 means the same for every query.
import { Effect } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"
import { withSpanIfSampled } from "../../kernel/effect/withSpanIfSampled.ts"
import { LruCache } from "../../kernel/cache/LruCache.ts"
import type { Hit } from "../catalog/contract.ts"
import type { IndexState } from "./LexicalStore.ts"
import {
  similarTerms,
  alsoRelated,
  type CandidatePlan,
  type Condition,
  scanAll,
  planCandidates,
  type Term
} from "./planCandidates.ts"
import { fullEvidence } from "./evidence.ts"
import type { ReadQuery } from "./QueryReader.ts"

/** Weights of the fields D, C, B, A in PostgreSQL's order. Halved, since 1 is the highest it takes. */
const fieldWeights = "{0.125,0.75,0.5,1}"
/** Saturation: the weighted frequency that gives half of a term's worth, halved like the weights. */
export const saturation = 0.6
/** How much a document longer than the average is expected to repeat itself: 0 not, 1 in proportion. */
export const lengthShare = 0.4

/** Minimum candidates of the first pass, and its maximum as a multiple of its plan. */
const budgetMin = 150
const overrun = 4
/** With fewer hits another pass is worth its time. */
const fewHits = 20
/** The second pass's budget, as a multiple of the first's. */
const wider = 5
/** Maximum documents of the last pass, over all that match and pass the filters. */
const lastReadMax = 2_000

/** Numbers of placeholders for terms in a statement. */
const placesOf = [0, 2, 4, 8, 16]

/** One pass: its documents, and the point where the filters apply. */
export interface RankLookup {
  readonly plan: CandidatePlan
  /**
   * `choosing`: together with the words, in the database's preferred order; `between`: to the documents that the words
   * selected, before ranking; `after`: to the ranked documents.
   */
  readonly filters: "choosing" | "between" | "after"
  readonly documentsMax: number
  /** Restricts ranking to these documents, which pass the filters. */
  readonly among?: ReadonlyArray<bigint>
}

/**
 * The parts of a ranking statement that do not depend on its values; equal for equal texts. They are few, so that
 * statements stay prepared: on a new connection, planning takes longer than the ranking.
 */
interface Shape {
  /** Number of the condition's parameters, which precede the ranking's. */
  readonly before: number
  /** Placeholders of terms with similar terms, and of terms without. */
  readonly asked: number
  readonly related: number
  readonly isAnywhere: boolean
  readonly isNaming: boolean
  readonly isAmong: boolean
  readonly isBetween: boolean
  /** Matches are frequent enough to read documents in the order of their ids, until there are enough. */
  readonly isCommon: boolean
}

/**
 * The text up to a condition within the ranking, from there to a condition on the ranked documents, and from there to
 * the end.
 */
type RankTexts = readonly [string, string, string]

/** The number of placeholders for this many terms; unused ones hold null, which matches nothing. */
const placesFor = (terms: number): number => placesOf.find((places) => places >= terms) ?? terms

const writeTexts = (shape: Shape): RankTexts => {
  const { asked, before, isAmong, isAnywhere, isBetween, isCommon, isNaming, related } = shape
  let count = before
  const next = () => `$${(count += 1)}`
  // In the order of the values of `rankStatement`.
  const [language, average] = [next(), next()]
  // A containment test costs a tenth of the frequency of similar words, and most are absent.
  const worthOf = ([tsquery, weight] = [`${next()}::tsquery`, `${next()}::float8`]) =>
    `case when d.document @@ ${tsquery} then ${weight} * (1 - d.norm / (ts_rank_cd(
      '${fieldWeights}', d.document, ${tsquery}) + d.norm)) else 0 end`
  const pairs = Array.from({ length: asked }, () =>
    [0, 1].map((): [string, string] => [`${next()}::tsquery`, `${next()}::float8`])
  )
  // However often a document repeats a term, it holds the term once.
  const held = pairs.map(
    (pair) =>
      `(case ${pair.map(([tsquery, weight]) => `when d.document @@ ${tsquery} then ${weight}`).join(" ")} else 0 end)`
  )
  const worth = [
    ...pairs.map((pair) => `greatest(${pair.map((one) => worthOf(one)).join(", ")})`),
    ...Array.from({ length: related }, () => worthOf()),
    `(case when d.document @@ ${next()}::tsquery then ${next()}::float8 else 0 end)`
  ]
  const chosen = [
    ...(isAnywhere ? [`document @@ ${next()}::tsquery`] : []),
    ...(isNaming ? [`ts_filter(document, '{a,c}') @@ ${next()}::tsquery`] : [])
  ]
  const [documentsMax, mass, limit, among] = [next(), next(), next(), next()]
  const words = `(${chosen.join(" or ")})`
  // If the planner overestimates the matches, it reads the whole table by ids: sixty times as long as the index of
  // words takes. No index has the order of a sum.
  const bounded = `order by ${isCommon ? "id" : "id + 0"} limit ${documentsMax}`
  // Read by id before the words are tested: the index of words would read every document with a common one.
  const within = isAmong ? `id = any(${among}::int8[]) offset 0` : `${words} ${bounded}`
  const source =
    isAmong || isBetween
      ? `(select language, id, document from search_lexical_documents where language = ${language} and ${within})`
      : "search_lexical_documents"
  // Computed once a document, in float8: as numeric it took ten times as long as the ranking itself.
  const norm = `${saturation}::float8 * (${1 - lengthShare}::float8 + ${lengthShare}::float8 *
    length(document) / ${average}::float8)`
  return [
    `with ranked as materialized (
      select d.id, (${worth.join(" + ")})::float8 as score, (${held.join(" + ") || "0"})::float8 as held
      from (select id, document, ${norm} as norm from ${source} s where language = ${language}
        and ${isBetween ? "true" : words}`,
    ` ${bounded}) d)
    select ranked.id, ranked.score / ${mass}::float8 as score, ranked.held from ranked where `,
    ` order by ranked.score desc, ranked.id limit ${limit}`
  ]
}

/** A term's place in a statement, or one left over. */
const matched = (term: Pick<Term, "tsquery" | "weight"> | undefined): ReadonlyArray<string | null> =>
  term === undefined ? [null, "0"] : [term.tsquery, String(term.weight)]

/** Texts kept, some kilobytes each; the least recently used is evicted first. */
const textsMax = 100

const textsOf = (() => {
  const kept = new LruCache<string, RankTexts>({ name: "ranking-statements", capacity: textsMax })
  return (shape: Shape): RankTexts => {
    const key = Object.values(shape).join(" ")
    const known = kept.get(key)
    if (known !== undefined) return known
    const texts = writeTexts(shape)
    kept.set(key, texts)
    return texts
  }
})()

type Ranked = Pick<Hit, "id" | "score"> & Required<Pick<Hit, "held">>

interface RankOptions {
  readonly condition: (id: string) => Statement.Fragment
  readonly limit: number
}

/**
 * The statement, for the search and for the test that reads its plan. Its text is written once for each shape of it:
 * as a template of fifty fragments it took this process as long to put together as to send.
 */
export const rankStatement = (
  sql: SqlClient.SqlClient,
  state: IndexState,
  query: ReadQuery,
  options: RankOptions & { readonly read: RankLookup }
): Statement.Statement<Ranked> => {
  const { among, documentsMax, filters, plan } = options.read
  const { mass, phrase, related, terms } = query
  // One scan of each index, and few shapes of the statement: planning is cheap and few statements stay prepared.
  const anyIn = (where: Condition["where"]) =>
    plan.conditions
      .filter((one) => one.where === where)
      .map(({ tsquery }) => `(${tsquery})`)
      .join(" | ")
  const [anywhere, naming] = [anyIn("document"), anyIn("naming")]
  const isWithin = filters !== "after"
  const [condition, given] =
    among === undefined ? sql`${options.condition(isWithin ? "s.id" : "ranked.id")}`.compile() : ["true", []]
  const [asked, expanded] = [placesFor(terms.length), placesFor(related.length)]
  const [first, second, third] = textsOf({
    before: given.length,
    asked,
    related: expanded,
    isAnywhere: anywhere !== "",
    isNaming: naming !== "",
    isAmong: among !== undefined,
    isBetween: among === undefined && filters === "between",
    // All that match, or as much of the table as holds enough matches.
    isCommon: among === undefined && plan.documents ** 2 > documentsMax * state.documents
  })
  // As texts, since a number would be one type or another by its value, and the statement another one by its types.
  const values: Array<unknown> = [...given, state.language, String(Math.max(1, Number(state.averageLexemes)))]
  for (let at = 0; at < asked; at++) {
    const term = terms[at]
    values.push(...matched(term), ...matched(term?.alike))
  }
  for (let at = 0; at < expanded; at++) values.push(...matched(related[at]))
  values.push(...matched(phrase))
  if (anywhere !== "") values.push(anywhere)
  if (naming !== "") values.push(naming)
  values.push(String(documentsMax), String(mass), String(options.limit))
  if (among !== undefined) values.push(`{${among.join(",")}}`)
  const text = isWithin ? `${first} and ${condition}${second}true${third}` : `${first}${second}${condition}${third}`
  return sql.unsafe<Ranked>(text, values)
}

const toHits = (
  ranked: ReadonlyArray<Ranked>,
  { covered, mass, supported, terms }: ReadQuery,
  state: Pick<IndexState, "documents" | "origins">
): ReadonlyArray<Hit> => {
  const words = mass / fullEvidence(state)
  const all = terms.reduce((sum, { weight }) => sum + weight, 0)
  return ranked.map(({ held, id, score }) => ({
    id,
    score,
    relevance: score,
    evidence: score * words,
    held: held / Math.max(all, Number.EPSILON),
    covered,
    supported
  }))
}

/** Hits of a later pass, and hits that only an earlier pass found: the last pass reads only as many as it can rank. */
const withEarlier = (later: ReadonlyArray<Ranked>, earlier: ReadonlyArray<Ranked>, limit: number) => {
  const found = new Set(later.map(({ id }) => id))
  const missed = earlier.filter(({ id }) => !found.has(id))
  return missed.length === 0
    ? later
    : [...later, ...missed].sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1)).slice(0, limit)
}

const budgetOf = ({ limit }: Pick<RankOptions, "limit">): number => Math.max(budgetMin, 2 * limit)

/** Document frequencies scaled to a share of all documents. */
const scaledTo = <T extends Omit<Term, "weight">>(terms: ReadonlyArray<T>, share: number): ReadonlyArray<T> =>
  terms.map((term) => ({ ...term, documents: share * term.documents, naming: share * term.naming }))

/**
 * Among the resources that pass rare filters, first ranks those with the query's rarer words, as without filters but
 * without a bound on their number; then, if those are few, all with any of its words.
 */
const rankPassing = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  state: IndexState,
  query: ReadQuery,
  options: RankOptions & { readonly passing: ReadonlyArray<bigint> }
) {
  const { limit, passing } = options
  if (passing.length === 0) return []
  const readBy = (plan: CandidatePlan) => {
    const inspect: RankLookup = { plan, filters: "after", documentsMax: passing.length, among: passing }
    return rankStatement(sql, state, query, { ...options, read: inspect })
  }
  const others = [...similarTerms(query.terms), ...query.related]
  const share = Math.min(1, passing.length / Math.max(1, state.documents))
  const [terms, expanded] = [scaledTo(query.terms, share), scaledTo(others, share)]
  const budget = budgetOf(options)
  if (scanAll(terms).documents > budget || scanAll(expanded).documents > budget) {
    const hits = yield* readBy(alsoRelated(planCandidates(terms, passing.length, budget), expanded, budget))
    if (hits.length >= Math.min(limit, fewHits)) return toHits(hits, query, state)
  }
  // Related words are enough here too, as without filters.
  return toHits(yield* readBy(scanAll([...query.terms, ...others])), query, state)
})

/**
 * Ranked hits, best first. Resources that pass selective filters are ranked directly, however common the words are. If
 * the first pass, after its filters, holds too few, further passes follow: over more candidates, and finally over all
 * that match and pass, as far as time allows. Hits of an earlier pass are kept.
 */
export const rankDocuments = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  state: IndexState,
  query: ReadQuery,
  options: RankOptions & {
    /** All resources that pass the filters, if they are few. */
    readonly passing?: ReadonlyArray<bigint> | undefined
  }
): Effect.fn.Return<ReadonlyArray<Hit>, SqlError.SqlError> {
  if (query.terms.length === 0) return []
  const { passing } = options
  if (passing !== undefined) return yield* rankPassing(sql, state, query, { ...options, passing })
  const alike = similarTerms(query.terms)
  const budget = budgetOf(options)
  const enough = Math.min(options.limit, fewHits)
  const choose = (budget: number, filters: RankLookup["filters"]): RankLookup => {
    const chosen = planCandidates(query.terms, state.documents, budget)
    const plan = alsoRelated(chosen, [...alike, ...query.related], budget)
    // Counts are as of the last refresh: a complete result may have grown since.
    return { plan, filters, documentsMax: overrun * budget }
  }
  const inspect = (find: RankLookup) => rankStatement(sql, state, query, { ...options, read: find })
  const first = choose(budget, "after")
  let hits: ReadonlyArray<Ranked> = yield* inspect(first)
  let isComplete = first.plan.complete
  if (!isComplete && hits.length < enough && wider * hits.length >= enough) {
    const second = choose(wider * budget, "between")
    hits = withEarlier(yield* inspect(second), hits, options.limit)
    isComplete = second.plan.complete
  }
  if (!isComplete && hits.length < enough) {
    const last = yield* inspect({
      plan: scanAll([...query.terms, ...alike]),
      filters: "choosing",
      documentsMax: Math.max(lastReadMax, 2 * options.limit)
    })
    hits = withEarlier(last, hits, options.limit)
  }
  return toHits(hits, query, state)
}, withSpanIfSampled("rankDocuments"))

/** Marks the hits that hold a rare word of the query itself, for answers without a confident ranking. */
export const withEvidence = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { language }: IndexState,
  { discriminative }: ReadQuery,
  hits: ReadonlyArray<Hit>
): Effect.fn.Return<ReadonlyArray<Hit>, SqlError.SqlError> {
  if (discriminative === undefined || hits.length === 0) return hits
  const among = `{${hits.map(({ id }) => id).join(",")}}`
  const rows = yield* sql<Pick<Hit, "id">>`select id from search_lexical_documents where language = ${language}
    and id = any(${among}::int8[]) and document @@ ${discriminative}::tsquery`
  const evident = new Set(rows.map(({ id }) => id))
  return hits.map((hit) => (evident.has(hit.id) ? { ...hit, isEvident: true } : hit))
})
