// Reciprocal-rank fusion: a hit is worth weight / (k + rank) in each branch that found it, rank from 1. Ranks and not scores are
// fused, because the scores of two branches have nothing in common. Ties go to the newer listing. Pure.
import type { Hit } from "../contract.ts"

export interface Ranked {
  readonly weight: number
  /** Best first. */
  readonly hits: ReadonlyArray<Hit>
}

export interface FuseOptions {
  readonly k: number
  /** Hits below this relevance in every branch are left out. */
  readonly relevanceMin: number
}

/** Ids, best first. */
export const fuse = (branches: ReadonlyArray<Ranked>, { k, relevanceMin }: FuseOptions): ReadonlyArray<bigint> => {
  const fused = new Map<bigint, { score: number; relevance: number }>()
  for (const { hits, weight } of branches) {
    hits.forEach(({ id, relevance }, index) => {
      const entry = fused.get(id) ?? { score: 0, relevance: 0 }
      fused.set(id, { score: entry.score + weight / (k + index + 1), relevance: Math.max(entry.relevance, relevance) })
    })
  }
  return [...fused]
    .filter(([, { relevance }]) => relevance >= relevanceMin)
    .sort(([a, x], [b, y]) => y.score - x.score || (a < b ? 1 : -1))
    .map(([id]) => id)
}
