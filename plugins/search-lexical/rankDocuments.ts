// The ranking of a query: the index in memory gives the best documents, and the catalog decides which of them pass the
// filters. If too few pass, more of the best are tried.
import { Effect } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"
import { withSpanIfSampled } from "../../kernel/effect/withSpanIfSampled.ts"
import type { Hit } from "../catalog/contract.ts"
import { fullEvidence } from "./evidence.ts"
import type { IndexState } from "./LexicalStore.ts"
import type { MemoryIndex } from "./postings/MemoryIndex.ts"
import { bestDocuments, type Scored } from "./postings/scoreDocuments.ts"
import type { ReadQuery } from "./QueryReader.ts"

/** Minimum number of documents that are tried first, and the factor of each further try. */
const firstMin = 150
const wider = 5
/** With fewer hits another try is worth its time. */
const fewHits = 20

type Ids = ReadonlyArray<bigint>

/** The given resources that pass a search's filters. */
export type Passing = (ids: Ids) => Effect.Effect<Ids, SqlError.SqlError>

/** The resources that a condition holds for; the condition is on the resource with this expression as its id. */
export const passingBy =
  (sql: SqlClient.SqlClient, condition: (id: string) => Statement.Fragment): Passing =>
  (ids) =>
    ids.length === 0
      ? Effect.succeed([])
      : // One row: as many rows as hits would cost this process more than finding the best does.
        Effect.map(
          sql<{ ids: string | null }>`select string_agg(v.id::text, ',') as ids
            from unnest(${`{${ids.join(",")}}`}::int8[]) v (id) where ${condition("v.id")}`,
          ([row]) => row?.ids?.split(",").map(BigInt) ?? []
        )

interface RankOptions {
  readonly passing: Passing
  readonly limit: number
  /** All resources that pass the filters, if they are few. */
  readonly among?: Ids | undefined
}

export const averageOf = ({ averageLexemes }: Pick<IndexState, "averageLexemes">): number =>
  Math.max(1, Number(averageLexemes))

const toHits = (
  ranked: ReadonlyArray<Scored>,
  { covered, mass, supported, terms }: ReadQuery,
  state: Pick<IndexState, "documents" | "origins">
): ReadonlyArray<Hit> => {
  const words = mass / fullEvidence(state)
  const all = terms.reduce((sum, { weight }) => sum + weight, 0)
  return ranked.map(({ held, id, score: worth }) => {
    const score = worth / mass
    return {
      id,
      score,
      relevance: score,
      evidence: score * words,
      held: held / Math.max(all, Number.EPSILON),
      covered,
      supported
    }
  })
}

/** Ranked hits, best first. */
export const rankDocuments = Effect.fnUntraced(function* (
  index: MemoryIndex["Service"],
  state: IndexState,
  query: ReadQuery,
  { among, limit, passing }: RankOptions
): Effect.fn.Return<ReadonlyArray<Hit>, SqlError.SqlError> {
  if (query.terms.length === 0 || among?.length === 0) return []
  const postings = yield* index.candidates(state, query, among)
  const average = averageOf(state)
  if (among !== undefined) {
    const ids = new Set(among)
    return toHits(bestDocuments(postings, query, { average, max: limit, isAmong: (id) => ids.has(id) }), query, state)
  }
  for (let max = Math.max(firstMin, 2 * limit); ; max *= wider) {
    const best = bestDocuments(postings, query, { average, max })
    const passed = new Set(yield* passing(best.map(({ id }) => id)))
    const found = best.filter(({ id }) => passed.has(id))
    if (found.length >= Math.min(limit, fewHits) || best.length < max)
      return toHits(found.slice(0, limit), query, state)
  }
}, withSpanIfSampled("rankDocuments"))

/** Marks the hits that hold a rare word of the query itself, for answers without a confident ranking. */
export const withEvidence = Effect.fnUntraced(function* (
  index: MemoryIndex["Service"],
  state: IndexState,
  { discriminative }: ReadQuery,
  hits: ReadonlyArray<Hit>
): Effect.fn.Return<ReadonlyArray<Hit>, SqlError.SqlError> {
  if (discriminative === undefined || hits.length === 0) return hits
  const query = { terms: [{ lexemes: discriminative, weight: 1 }], related: [] }
  const ids = hits.map(({ id }) => id)
  const postings = yield* index.candidates(state, query, ids)
  const numbers = postings.numbersOf(discriminative)
  return hits.map((hit) => (postings.holdsAny(hit.id, numbers) ? { ...hit, isEvident: true } : hit))
})
