// One listing as a branch of search finds it, with the measures that fusion weighs, and the words of texts that a query
// matches. `contract.ts` re-exports the types.
import type { Effect } from "effect"

export interface Hit {
  readonly id: bigint
  /** Higher is better; comparable within one answer only. */
  readonly score: number
  /** 0 to 1, comparable between answers of one branch; a hit below the settings' threshold is left out (`fuse.ts`). */
  readonly relevance: number
  /** How much of the query's terms it holds, in units of a term of a single listing, not divided by the query's. */
  readonly evidence?: number
  /** The share of the query's own terms that it holds, by weight; a term that it repeats counts once. */
  readonly held?: number
  /** The share of the query, by weight, that any listings hold; the same for each hit of an answer. */
  readonly covered?: number
  /** The same with words that listings hold similar words for. */
  readonly supported?: number
  /** It holds a rare term of the query itself, so it is an answer even if no hit is relevant enough. */
  readonly isEvident?: boolean
  /**
   * How far it exceeds the expected similarity of a chance nearest listing, in standard deviations; only from branches
   * that measure it.
   */
  readonly prominence?: number
  /** Returned only for its prominence; it is not an answer of its branch. */
  readonly isAside?: boolean
}

/**
 * A branch whose best hit is less relevant is not confident. By words, a document with every word of the query in its
 * name has about 0.6.
 */
export const confidentRelevance = 0.15

/** Start and end of a matched word in a text, in UTF-16 units. */
export type Span = readonly [start: number, end: number]

export interface Matched {
  /** By text; in order, without overlaps. */
  readonly spans: ReadonlyArray<ReadonlyArray<Span>>
  /** Mistyped words of the query, and the words of the texts that were searched for instead. */
  readonly corrected: ReadonlyArray<{ readonly word: string; readonly instead: string }>
}

/** Finds the words of texts that a query matches as the branch does: in other forms, by synonyms, mistyped. */
export type Matcher = (
  query: string,
  texts: ReadonlyArray<string>
) => Effect.Effect<Matched, { readonly message: string }>
