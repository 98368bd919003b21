// One listing as a branch of search finds it, with what the fusion weighs it by. `contract.ts` hands the type on.

export interface Hit {
  readonly id: bigint
  /** Higher is better; comparable within one answer only. */
  readonly score: number
  /** 0 to 1, comparable between answers of one branch; what is too low by the settings is left out (`fuse.ts`). */
  readonly relevance: number
  /** What it holds of the query's words, in words of a single listing and not divided by what was asked. */
  readonly evidence?: number
  /** It holds a rare word of the query itself: an answer where nothing is relevant enough. */
  readonly isEvident?: boolean
  /**
   * Standard deviations by which it is nearer to the query than chance makes the nearest of all listings; of branches
   * that measure it.
   */
  readonly prominence?: number
  /** Returned for its prominence alone: it is no answer of its branch. */
  readonly isAside?: boolean
}
