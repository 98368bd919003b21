// Similar terms, which one branch of search may provide to another. `contract.ts` re-exports the types.
import type { Effect } from "effect"

/** A term that means about the same as another. */
export interface SimilarTerm {
  readonly word: string
  /** 0 to 1. */
  readonly likeness: number
}

/**
 * The terms at least this similar to one, the nearest first: the term itself where it is known as it is spelled. None
 * where the term is not known.
 */
export type SimilarTerms = (word: string, likenessMin: number) => Effect.Effect<ReadonlyArray<SimilarTerm>>
