// Reciprocal-rank fusion: a hit is worth weight / (k + rank) in each branch that found it, rank from 1. Ranks and not
// scores are fused, because the scores of two branches have nothing in common. Ties go to the newer listing. Pure.
import type { Hit, SearchBranch } from "../contract.ts"

export interface Ranked {
  readonly mode: SearchBranch["mode"]
  readonly weight: number
  /** Best first. */
  readonly hits: ReadonlyArray<Hit>
}

export interface FuseOptions {
  readonly k: number
  /** Hits below this relevance in every branch are left out. */
  readonly relevanceMin: number
}

/** Where a hit stands in one branch, rank from 1. */
export interface Standing {
  readonly rank: number
  readonly score: number
  readonly relevance: number
}

export interface Fused {
  readonly id: bigint
  readonly score: number
  readonly standings: Readonly<Partial<Record<SearchBranch["mode"], Standing>>>
}

/** Higher first; of equals the newer listing first. */
export const byScore = (
  a: { readonly id: bigint; readonly score: number },
  b: { readonly id: bigint; readonly score: number }
): number => b.score - a.score || (a.id < b.id ? 1 : -1)

/** Best first. */
export const fuse = (branches: ReadonlyArray<Ranked>, { k, relevanceMin }: FuseOptions): ReadonlyArray<Fused> => {
  const fused = new Map<bigint, { score: number; standings: Partial<Record<SearchBranch["mode"], Standing>> }>()
  for (const { hits, mode, weight } of branches) {
    hits.forEach(({ id, relevance, score }, index) => {
      const entry = fused.get(id) ?? { score: 0, standings: {} }
      entry.score += weight / (k + index + 1)
      entry.standings[mode] = { rank: index + 1, score, relevance }
      fused.set(id, entry)
    })
  }
  return [...fused]
    .filter(([, { standings }]) => Object.values(standings).some(({ relevance }) => relevance >= relevanceMin))
    .map(([id, entry]) => ({ id, ...entry }))
    .sort(byScore)
}
