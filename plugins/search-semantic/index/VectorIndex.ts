// Where the vectors of a generation lie and how the nearest are found: one port, two ways. An HNSW index of pgvector
// answers (`hnswIndex.ts`), or the vectors are stored as bytes and each process scans a quantized copy in its memory
// (`scanIndex.ts`). Both return cosine similarities, filtered by a condition on the resource. A generation keeps the
// way in which it was begun (`indexByMethod.ts`).
import { Context, Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"
import type { Hit } from "../../catalog/contract.ts"

export type Method = "hnsw" | "scan"

export interface VectorPosition {
  readonly generation: bigint
  readonly dimension: number
  readonly method: Method
}

export interface StoredVector {
  readonly id: bigint
  /** Length 1. */
  readonly vector: Float32Array
}

export interface Nearest {
  readonly vector: Float32Array
  readonly limit: number
  /** Without what all vectors have in common, and each hit with its prominence; where they are scanned. */
  readonly distinguishing?: boolean
  /** A condition on the resource whose id is this SQL expression; without one, on `catalog_resources r`. */
  readonly condition: (id?: string) => Statement.Fragment
  /** The condition excludes more than what is not publicly visible. */
  readonly filtered: boolean
  /** All that passes such a condition, where that is little: it is ranked directly. */
  readonly few?: Effect.Effect<ReadonlyArray<bigint> | undefined>
  /** Those that pass, in their order, where the condition is no more than that; without it the condition is asked. */
  readonly visible?: (ids: ReadonlyArray<bigint>) => Effect.Effect<ReadonlyArray<bigint>, SqlError.SqlError>
}

export class VectorIndex extends Context.Service<
  VectorIndex,
  {
    readonly prepare: (place: VectorPosition) => Effect.Effect<void, SqlError.SqlError>
    /** Stores vectors in the caller's transaction; a resource's vector replaces the one before. */
    readonly write: (
      place: VectorPosition,
      vectors: ReadonlyArray<StoredVector>
    ) => Effect.Effect<void, SqlError.SqlError>
    /** Makes a filled generation fast to search; it answers from then on. */
    readonly finish: (place: VectorPosition) => Effect.Effect<void, SqlError.SqlError>
    /** Loads what this process needs to answer from a generation in its current state, complete or not. */
    readonly warm: (place: VectorPosition) => Effect.Effect<void, SqlError.SqlError>
    readonly nearest: (place: VectorPosition, nearest: Nearest) => Effect.Effect<ReadonlyArray<Hit>, SqlError.SqlError>
    /**
     * What answers now: another one when vectors have been written, within a second. `stored`: how often they were, by
     * the database.
     */
    readonly edition: (place: VectorPosition, stored: bigint) => Effect.Effect<string, SqlError.SqlError>
    readonly drop: (place: VectorPosition) => Effect.Effect<void, SqlError.SqlError>
  }
>()("tollkeeper/search-semantic/VectorIndex") {}

/** Pseudo-generation of the vectors by the plugin's own table of words. */
export const wordVectors = 0n

/** The table of a generation. */
export const tableOf = ({ generation }: Pick<VectorPosition, "generation">): string =>
  generation === wordVectors ? "search_semantic_word_vectors" : `search_semantic_vectors_${generation}`

export const toHit = (id: bigint, similarity: number): Hit => ({
  id,
  score: similarity,
  relevance: Math.max(0, Math.min(1, similarity))
})

/** With fewer hits another pass is worth its time. */
const fewHits = 20
/** Asked for beyond the number needed, for those that are hidden; under a filter, in those wanted. */
const spare = 20
const filteredShare = 3
/** Maximum number of nearest in the widest pass. */
const widest = 1_000
/** How many times wider that is than the first pass, roughly. */
const wider = 8

export interface VectorLookup {
  readonly hits: ReadonlyArray<Hit>
  /** There are no vectors beyond those that were read. */
  readonly isAll: boolean
}

/** Exactly ranked hits, and those only a pass found, limited in number. */
const withObserved = (exact: ReadonlyArray<Hit>, observed: ReadonlyArray<Hit>, limit: number): ReadonlyArray<Hit> => {
  const found = new Set(exact.map(({ id }) => id))
  const missed = observed.filter(({ id }) => !found.has(id))
  return missed.length === 0
    ? exact
    : [...exact, ...missed].sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1)).slice(0, limit)
}

/**
 * The nearest that pass the condition. Few that are known to pass are ranked by `exact` immediately. Otherwise a pass
 * takes a number of the nearest and drops what does not pass; when that leaves too few, a wider pass follows, since
 * hidden resources may crowd out the others; and under a filter that few pass, `exact` queries and ranks those. What a
 * pass found stays found.
 */
export const refineSearch = Effect.fnUntraced(function* <E, R>(
  { few = Effect.undefined, filtered, limit }: Pick<Nearest, "few" | "filtered" | "limit">,
  read: (asked: number) => Effect.Effect<VectorLookup, E, R>,
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
    // Twice as far as it takes where the filter leaves as many of those as of the first.
    const second = yield* read(filtered ? Math.min(widest, Math.ceil((2 * near * enough) / first.hits.length)) : widest)
    if (!filtered || second.isAll || second.hits.length >= enough) return second.hits
    observed = second.hits
  }
  return withObserved(yield* exact(), observed, limit)
})
