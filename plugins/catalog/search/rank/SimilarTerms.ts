// What one branch of search may lend another: which words mean about the same. `contract.ts` hands the types on.
import type { Effect } from "effect"

/** A word that means about the same as another. */
export interface SimilarTerm {
  readonly word: string
  /** 0 to 1. */
  readonly likeness: number
}

/**
 * The words at least so like one, the likest first: the word itself where it is known as it stands. None where the word
 * is not known.
 */
export type SimilarTerms = (word: string, likenessMin: number) => Effect.Effect<ReadonlyArray<SimilarTerm>>
