// Where the vectors of a generation are and how the nearest are found: one port with two implementations. An HNSW index
// of pgvector answers (`hnswIndex.ts`), or the vectors are stored as bytes and each process scans a quantized copy in
// its memory (`scanIndex.ts`). Both return cosine similarities, filtered by a condition on the resource. A generation
// keeps the method that it began with (`indexByMethod.ts`).
import { Context, Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"
import type { Hit } from "../../catalog/contract.ts"

export type Method = "hnsw" | "scan"

export interface VectorSet {
  readonly generation: bigint
  readonly dimension: number
  readonly method: Method
}

export interface StoredVector {
  readonly id: bigint
  /** Length 1. */
  readonly vector: Float32Array
}

export interface NearestQuery {
  readonly vector: Float32Array
  readonly limit: number
  /** Subtract the component that all vectors share, and report each hit's prominence; only for scans. */
  readonly distinguishing?: boolean
  /** A condition on the resource with this SQL expression as its id; by default on `catalog_resources r`. */
  readonly condition: (id?: string) => Statement.Fragment
  /** The condition excludes publicly visible resources too. */
  readonly filtered: boolean
  /** All resources that pass such a condition, if they are few: they are ranked directly. */
  readonly few?: Effect.Effect<ReadonlyArray<bigint> | undefined>
  /**
   * Returns the visible ids, in their order, if visibility is the whole condition; without this member the database
   * evaluates the condition.
   */
  readonly visible?: (ids: ReadonlyArray<bigint>) => Effect.Effect<ReadonlyArray<bigint>, SqlError.SqlError>
}

export class VectorIndex extends Context.Service<
  VectorIndex,
  {
    readonly prepare: (vectorSet: VectorSet) => Effect.Effect<void, SqlError.SqlError>
    /** Stores vectors in the caller's transaction; a resource's vector replaces the previous one. */
    readonly write: (
      vectorSet: VectorSet,
      vectors: ReadonlyArray<StoredVector>
    ) => Effect.Effect<void, SqlError.SqlError>
    /** Makes a filled generation fast to search; it answers from then on. */
    readonly finish: (vectorSet: VectorSet) => Effect.Effect<void, SqlError.SqlError>
    /** Loads the data that this process needs to answer from a generation in its current state, complete or not. */
    readonly warm: (vectorSet: VectorSet) => Effect.Effect<void, SqlError.SqlError>
    readonly nearest: (
      vectorSet: VectorSet,
      nearest: NearestQuery
    ) => Effect.Effect<ReadonlyArray<Hit>, SqlError.SqlError>
    /**
     * Edition of the answers: it changes within a second after vectors are written. `stored`: the database's count of
     * writes.
     */
    readonly edition: (vectorSet: VectorSet, stored: bigint) => Effect.Effect<string, SqlError.SqlError>
    readonly drop: (vectorSet: VectorSet) => Effect.Effect<void, SqlError.SqlError>
  }
>()("tollkeeper/search-semantic/VectorIndex") {}

/** Pseudo-generation of the vectors by the plugin's own table of words. */
export const wordVectors = 0n

export const tableOf = ({ generation }: Pick<VectorSet, "generation">): string =>
  generation === wordVectors ? "search_semantic_word_vectors" : `search_semantic_vectors_${generation}`

export const toHit = (id: bigint, similarity: number): Hit => ({
  id,
  score: similarity,
  relevance: Math.max(0, Math.min(1, similarity))
})

/** With fewer hits another pass is worth its time. */
const fewHits = 20
/** Extra nearest beyond the limit, because some are hidden; under a filter, a multiple of the limit instead. */
const spare = 20
const filteredShare = 3
/** Maximum number of nearest in the widest pass. */
const widest = 1_000
/** How many times wider that is than the first pass, roughly. */
const wider = 8

interface VectorLookup {
  readonly hits: ReadonlyArray<Hit>
  /** The read returned all vectors. */
  readonly isAll: boolean
}

/** Exactly ranked hits, and hits that only a pass found, limited in number. */
const withObserved = (exact: ReadonlyArray<Hit>, observed: ReadonlyArray<Hit>, limit: number): ReadonlyArray<Hit> => {
  const found = new Set(exact.map(({ id }) => id))
  const missed = observed.filter(({ id }) => !found.has(id))
  return missed.length === 0
    ? exact
    : [...exact, ...missed].sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1)).slice(0, limit)
}

/**
 * The nearest that pass the condition. If few are known to pass, `exact` ranks them immediately. Otherwise a pass takes
 * a number of the nearest and drops those that do not pass. If too few are left, a wider pass follows, since hidden
 * resources may crowd out the others; under a filter that few pass, `exact` queries and ranks those. Hits of an earlier
 * pass are kept.
 */
export const refineSearch = Effect.fnUntraced(function* <E, R>(
  { few = Effect.undefined, filtered, limit }: Pick<NearestQuery, "few" | "filtered" | "limit">,
  read: (count: number) => Effect.Effect<VectorLookup, E, R>,
  exact: (among?: ReadonlyArray<bigint>) => Effect.Effect<ReadonlyArray<Hit>, E, R>
): Effect.fn.Return<ReadonlyArray<Hit>, E, R> {
  const among = filtered ? yield* few : undefined
  if (among !== undefined) return yield* exact(among)
  const enough = Math.min(limit, fewHits)
  const near = Math.min(widest, filtered ? filteredShare * limit : limit + spare)
  const first = yield* read(near)
  if (first.isAll || first.hits.length >= enough) return first.hits
  let observed = first.hits
  if (!filtered || wider * first.hits.length >= enough) {
    // Twice the required depth, if the filter passes the same share of further vectors as of the first.
    const second = yield* read(filtered ? Math.min(widest, Math.ceil((2 * near * enough) / first.hits.length)) : widest)
    if (!filtered || second.isAll || second.hits.length >= enough) return second.hits
    observed = second.hits
  }
  return withObserved(yield* exact(), observed, limit)
})
