// What a resource's use and age add to its rank, and what its origin's other hits take from it; and that what is merely
// claimed comes behind what somebody stands for and is as relevant. All are shares with a
// bound from the settings: popularity grows with the logarithm of distinct payers of settled payments, so one buyer
// counts once however often it pays; freshness fades over a month without being seen; each further hit of one origin
// loses a little. Pure.
import { byScore, type Fused } from "./fuse.ts"
import type { SearchValues } from "./searchSection.ts"

/** Distinct payers at which popularity is full. */
const payersFull = 1_000
const daysUntilFaded = 30
const millisPerDay = 86_400_000
/** Hits whose signals are read; those behind keep their order. */
export const consideredMax = 60

export interface Signals {
  readonly id: bigint
  readonly origin: string | null
  readonly payers: bigint
  readonly lastSeenAt: Date
  /** Its recipient, its origin or a settled payment stands for it. */
  readonly stands: boolean
  /** The least that it costs in the asset that stands for the dollar, in whole ones; null for what offers none. */
  readonly price: number | null
}

export interface Weighed extends Fused {
  readonly signals?: { readonly popularity: number; readonly freshness: number; readonly originHits: number }
}

export type SignalWeights = Pick<
  SearchValues,
  "popularity_weight" | "freshness_weight" | "origin_decay" | "unproven_share"
> & {
  /** The query wishes for what is cheap. */
  readonly prefersCheap: boolean
}

/** A score gains at most this share by costing little, where that is wished for; half of it at a cent. */
const cheapShare = 0.05
const centDollars = 0.01

/** Pure: the considered hits anew, best first, and the rest behind them. */
export const weigh = (
  hits: ReadonlyArray<Fused>,
  known: Pick<ReadonlyMap<bigint, Signals>, "get">,
  weights: SignalWeights,
  now: number
): ReadonlyArray<Weighed> => {
  const considered = hits
    .slice(0, consideredMax)
    .map(({ id, score: given, standings }) => {
      const signals = known.get(id)
      if (signals === undefined) return { id, score: given, standings, origin: null, popularity: 0, freshness: 0 }
      // To be seen costs whoever only has payments verified nothing: it counts for what somebody stands for.
      const cheapness = signals.price === null ? 0 : centDollars / (centDollars + signals.price)
      const wished = weights.prefersCheap ? 1 + cheapShare * cheapness : 1
      if (!signals.stands) {
        const score = given * weights.unproven_share * wished
        return { id, score, standings, origin: signals.origin, popularity: 0, freshness: 0 }
      }
      const popularity = Math.min(1, Math.log1p(Number(signals.payers)) / Math.log1p(payersFull))
      const freshness = Math.min(
        1,
        Math.max(0, 1 - (now - signals.lastSeenAt.getTime()) / (daysUntilFaded * millisPerDay))
      )
      const score = given * wished * (1 + weights.popularity_weight * popularity + weights.freshness_weight * freshness)
      return { id, score, standings, origin: signals.origin, popularity, freshness }
    })
    .sort(byScore)
  const seen = new Map<string, number>()
  const spread = considered.map(({ freshness, id, origin, popularity, score, standings }): Weighed => {
    const originHits = origin === null ? 0 : (seen.get(origin) ?? 0)
    if (origin !== null) seen.set(origin, originHits + 1)
    return {
      id,
      score: score * weights.origin_decay ** originHits,
      standings,
      signals: { popularity, freshness, originHits }
    }
  })
  return [...spread.sort(byScore), ...hits.slice(consideredMax)]
}
