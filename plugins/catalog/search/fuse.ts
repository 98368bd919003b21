// Reciprocal-rank fusion: a hit is worth weight / (k + rank) in each branch that found it, rank from 1. Ranks and not scores are
// fused, because the scores of two branches have nothing in common. Pure.
import type { Hit } from "../contract.ts"

export interface Ranked {
  readonly mode: "lexical" | "semantic"
  readonly weight: number
  readonly hits: ReadonlyArray<Hit>
}

/** Where a hit stands in one branch. */
export interface Place {
  /** From 1. */
  readonly rank: number
  readonly score: number
  readonly relevance: number
}

export interface Fused {
  readonly id: bigint
  readonly score: number
  readonly places: Readonly<Partial<Record<"lexical" | "semantic", Place>>>
}

/** Fused hits, best first; those that no branch finds relevant enough are left out. Ties go to the newer resource. */
export const fuse = (branches: ReadonlyArray<Ranked>, options: { readonly k: number; readonly relevanceMin: number }): ReadonlyArray<Fused> => {
  const fused = new Map<bigint, { score: number; places: Partial<Record<"lexical" | "semantic", Place>> }>()
  for (const { hits, mode, weight } of branches) {
    hits.forEach(({ id, relevance, score }, at) => {
      const entry = fused.get(id) ?? { score: 0, places: {} }
      entry.score += weight / (options.k + at + 1)
      entry.places[mode] = { rank: at + 1, score, relevance }
      fused.set(id, entry)
    })
  }
  return [...fused]
    .filter(([, { places }]) => Object.values(places).some(({ relevance }) => relevance >= options.relevanceMin))
    .map(([id, entry]) => ({ id, ...entry }))
    .toSorted((a, b) => b.score - a.score || (a.id < b.id ? 1 : -1))
}
