// Similar terms, which one branch of search may provide to another. `contract.ts` re-exports the types.
import type { Effect } from "effect"

/** A term that means about the same as another. */
export interface SimilarTerm {
  readonly word: string
  /** 0 to 1. */
  readonly likeness: number
  /** The share of this word in any text, where that is known. */
  readonly frequency?: number
}

/**
 * The terms with at least this similarity to the word, nearest first: the term itself if its spelling is known. None if
 * the term is unknown.
 */
export type SimilarTerms = (word: string, likenessMin: number) => Effect.Effect<ReadonlyArray<SimilarTerm>>
