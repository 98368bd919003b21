// Reciprocal-rank fusion: a hit is worth weight / (k + rank) in each branch that found it, rank from 1. Ranks and not
// scores are fused, because the scores of two branches have nothing in common. Of equals the one that was listed
// first comes first: being new is no merit. Pure.
import type { Hit, SearchBranch } from "../contract.ts"

export interface Ranked {
  readonly mode: SearchBranch["mode"]
  readonly weight: number
  /** Best first. */
  readonly hits: ReadonlyArray<Hit>
}

export interface FuseOptions {
  readonly k: number
  /** Hits below this share of their branch's best hit, in every branch that found them, are left out. */
  readonly relevanceMin: number
  /** A branch whose best hit is less relevant has found nothing. */
  readonly bestMin: number
}

/** Where a hit stands in one branch, rank from 1. */
export interface BranchRank {
  readonly rank: number
  readonly score: number
  readonly relevance: number
}

export interface Fused {
  readonly id: bigint
  readonly score: number
  readonly standings: Readonly<Partial<Record<SearchBranch["mode"], BranchRank>>>
}

/** Higher first; of equals the one that was listed first. */
export const byScore = (
  a: { readonly id: bigint; readonly score: number },
  b: { readonly id: bigint; readonly score: number }
): number => b.score - a.score || (a.id < b.id ? -1 : 1)

/** The relevance that a hit of a branch must have. */
const cutOf = (
  hits: ReadonlyArray<Hit>,
  { bestMin, relevanceMin }: Pick<FuseOptions, "bestMin" | "relevanceMin">
): number => {
  const best = Math.max(0, ...hits.map(({ relevance }) => relevance))
  return best < bestMin ? Infinity : relevanceMin * best
}

/** Best first. */
export const fuse = (branches: ReadonlyArray<Ranked>, { k, ...minima }: FuseOptions): ReadonlyArray<Fused> => {
  const cuts = new Map(branches.map(({ hits, mode }) => [mode, cutOf(hits, minima)]))
  const fused = new Map<bigint, { score: number; standings: Partial<Record<SearchBranch["mode"], BranchRank>> }>()
  for (const { hits, mode, weight } of branches) {
    let rank = 0
    hits.forEach(({ id, relevance, score }, index) => {
      // Equals share a rank: what tells them apart is not the order in which a branch happens to give them.
      if (index === 0 || hits[index - 1]!.score !== score) rank = index + 1
      const entry = fused.get(id) ?? { score: 0, standings: {} }
      entry.score += weight / (k + rank)
      entry.standings[mode] = { rank, score, relevance }
      fused.set(id, entry)
    })
  }
  const isRelevant = ({ standings }: Pick<Fused, "standings">): boolean =>
    branches.some(({ mode }) => (standings[mode]?.relevance ?? -1) >= cuts.get(mode)!)
  return [...fused]
    .filter(([, entry]) => isRelevant(entry))
    .map(([id, entry]) => ({ id, ...entry }))
    .sort(byScore)
}
