// Adjusts a resource's rank by its use and age, and by the origin's other hits. Evidence goes first at about equal
// relevance. A mere claim precedes a hit with evidence (its origin, its recipient's key or a settled payment) only if
// it is more relevant by more than `search.evidence_margin`, and after the first few claims only if it is several times
// as relevant; it never precedes a hit with evidence that answers. A hit with only young evidence, few recent payments,
// relates to older or established hits as a claim does. All are shares with a bound from the settings, and only
// established resources get them: popularity grows with the logarithm of distinct payers of settled payments, so one
// buyer counts once however often it pays; freshness fades over a month without being seen; each further hit of one
// origin loses a little. Pure.
import { byScore, type Fused } from "./fuse.ts"
import type { Intent } from "../readIntent.ts"
import type { SearchValues } from "../searchSection.ts"

/** Number of distinct payers for full popularity. */
const payersFull = 1_000
const daysUntilFaded = 30
const millisPerDay = 86_400_000
/** Hits with signals; later ones keep their order. */
export const consideredMax = 60

export interface Signals {
  readonly id: bigint
  readonly type?: string
  readonly origin: string | null
  /** Distinct payers, each weighted by the amount that it risked (`ResourceSignals.ts`). */
  readonly payers: bigint | number
  readonly lastSeenAt: Date
  /** It has evidence: its recipient's key, its origin or a settled payment. */
  readonly hasEvidence: boolean
  /** Start of the evidence, if all of it is young; absent for established resources. */
  readonly youngSince?: Date | null
  /** When its words began: of equals the oldest words come first. */
  readonly wordsAt?: Date
  /** Its lowest price in the asset that represents the dollar, in whole ones; null without an offer in that asset. */
  readonly price: number | null
}

export interface Weighed extends Fused {
  readonly signals?: { readonly popularity: number; readonly freshness: number; readonly originHits: number }
}

/** Shares of a score, measured by `npm run relevance`. */
export const signalShares = {
  /** A score gains at most this share from distinct payers; one payer counts once. */
  popularity: 0.05,
  /** A score gains at most this share from being seen lately. */
  freshness: 0.02,
  /** Each further hit of one origin keeps this share of its score. */
  originDecay: 0.98,
  /**
   * A resource without evidence (a verified payment claimed it, and neither its recipient's key, its origin nor a
   * settled payment confirms it) keeps this share of its score: of equals it comes last.
   */
  unproven: 0.9
}

interface SignalWeights extends Readonly<typeof signalShares>, Pick<SearchValues, "evidence_margin"> {
  /** What the query's words prefer of about equal hits. */
  readonly prefers: Intent["prefers"]
}

/** Maximum share that a low price adds to a score, if the query asks for one; a cent adds half of it. */
const cheapShare = 0.05
const centDollars = 0.01
/** Share that a hit of a preferred kind adds to its score. */
const kindShare = 0.03

/** A hit's relevance by all branches together; 0 without any branch. */
export const relevanceOf = ({ ranks }: Partial<Pick<Weighed, "ranks">>): number =>
  Object.values(ranks ?? {}).reduce((sum, { relevance }) => sum + relevance, 0)

const isYoung = ({ youngSince }: Pick<Signals, "youngSince">): boolean => youngSince instanceof Date

/** Each hit's relevance by all branches together. */
const relevances = (hits: ReadonlyArray<Weighed>): ReadonlyMap<bigint, number> =>
  new Map(hits.map((hit) => [hit.id, relevanceOf(hit)]))

/**
 * A hit with this relevance by all branches together answers the query; a description with the query's words is enough
 * for it. Text that repeats a query is several times as relevant and costs nothing, so it never precedes such a hit
 * with evidence.
 */
const answeringMin = 0.35

/** Claims that the margin may rank before evidence: under a flood the rest of a first page has evidence. */
const claimsMax = 8
/** Further claims rank before evidence with less than this share of their relevance. */
const floodShare = 0.25

/** A hit that holds less than this share of what another holds of the query's terms answers something else. */
const comparableShare = 0.8
/** Young hits that may precede older ones because those lack terms of the query. */
const youngMax = 8

/** The share of the query's own terms that a hit holds. Repeating a term does not raise it, as it does relevance. */
const heldOf = ({ ranks }: Partial<Pick<Weighed, "ranks">>): number =>
  Math.max(0, ...Object.values(ranks ?? {}).map(({ held = 0 }) => held))

/**
 * Orders evidence: a young hit never precedes an older or established one of about the same relevance that holds as
 * many of the query's terms. It goes after the last of those, by the margin, the oldest of the young first.
 */
const seniorsFirst = (
  hits: ReadonlyArray<Weighed>,
  youngSince: (id: bigint) => Date | undefined,
  shareOf: (id: bigint) => number,
  margin: number
): ReadonlyArray<Weighed> => {
  const ordered = hits.filter(({ id }) => youngSince(id) === undefined)
  const young = hits.filter(({ id }) => youngSince(id) !== undefined)
  let preceding = 0
  for (const hit of young.toSorted((a, b) => youngSince(a.id)!.getTime() - youngSince(b.id)!.getTime())) {
    const share = shareOf(hit.id)
    const least = Math.min(answeringMin, (1 - margin) * share)
    const answers = ({ id }: Weighed): boolean => share > 0 && shareOf(id) >= least
    const isComparable = (one: Weighed): boolean => heldOf(one) >= comparableShare * heldOf(hit)
    const last = ordered.findLastIndex(answers)
    const lastComparable = ordered.findLastIndex((one) => answers(one) && isComparable(one))
    if (lastComparable < last) preceding += 1
    let at = 1 + (preceding > youngMax ? last : lastComparable)
    while (at < ordered.length && ordered[at]!.score >= hit.score) at++
    ordered.splice(at, 0, hit)
  }
  return ordered
}

/**
 * Merges mere claims into the hits with evidence; both keep their order. A claim goes first only if none of the
 * remaining hits with evidence answers, and it is more relevant than all of them by more than the margin; after the
 * first `claimsMax` claims the margin is that of `floodShare`.
 */
const evidenceFirst = (
  hits: ReadonlyArray<Weighed>,
  hasEvidence: (id: bigint) => boolean,
  margin: number,
  youngSince: (id: bigint) => Date | undefined = () => undefined
): ReadonlyArray<Weighed> => {
  const shares = relevances(hits)
  // A flood of claims does not change the order of the hits with evidence.
  const backed = hits
    .filter(({ id }) => hasEvidence(id))
    .sort((a, b) => (b.scoreAmongEvidence ?? 0) - (a.scoreAmongEvidence ?? 0))
  const proven = seniorsFirst(backed, youngSince, (id) => shares.get(id)!, margin)
  const claimed = hits.filter(({ id }) => !hasEvidence(id))
  if (proven.length === 0) return hits
  // The greatest relevance from each proven hit on.
  const rest = proven.map(({ id }) => shares.get(id)!)
  for (let at = rest.length - 2; at >= 0; at--) rest[at] = Math.max(rest[at]!, rest[at + 1]!)
  const merged: Array<Weighed> = []
  let next = 0
  for (const [before, hit] of claimed.entries()) {
    const share = shares.get(hit.id)!
    const isFlood = before >= claimsMax
    const least = Math.min(answeringMin, (isFlood ? Math.min(floodShare, 1 - margin) : 1 - margin) * share)
    while (share > 0 && next < proven.length && rest[next]! >= least) merged.push(proven[next++]!)
    // A claim that is far more relevant and has the lower score all the same stays behind.
    while (next < proven.length && proven[next]!.score >= hit.score) merged.push(proven[next++]!)
    merged.push(hit)
  }
  return [...merged, ...proven.slice(next)]
}

const multiplied = (hit: Fused, factor: number): Fused => ({
  ...hit,
  score: hit.score * factor,
  ...(hit.scoreAmongEvidence === undefined ? {} : { scoreAmongEvidence: hit.scoreAmongEvidence * factor })
})

/** Pure: the first `count` hits reordered, best first, and the rest behind them. */
export const weigh = (
  hits: ReadonlyArray<Fused>,
  known: Pick<ReadonlyMap<bigint, Signals>, "get">,
  weights: SignalWeights,
  now: number,
  count = consideredMax
): ReadonlyArray<Weighed> => {
  const considered = hits
    .slice(0, count)
    .map((hit) => {
      const signals = known.get(hit.id)
      if (signals === undefined) return { ...hit, origin: null, popularity: 0, freshness: 0 }
      // Being seen costs nothing for a payer of merely verified payments, so it counts only with evidence.
      const cheapness = signals.price === null ? 0 : centDollars / (centDollars + signals.price)
      const wished =
        (weights.prefers.includes("cheap") ? 1 + cheapShare * cheapness : 1) *
        (weights.prefers.includes("tool") && signals.type === "mcp" ? 1 + kindShare : 1) *
        (weights.prefers.includes("dollar") && signals.price !== null ? 1 + kindShare : 1)
      if (!signals.hasEvidence || isYoung(signals)) {
        const share = signals.hasEvidence ? 1 : weights.unproven
        return { ...multiplied(hit, share * wished), origin: signals.origin, popularity: 0, freshness: 0 }
      }
      const popularity = Math.min(1, Math.log1p(Number(signals.payers)) / Math.log1p(payersFull))
      const freshness = Math.min(
        1,
        Math.max(0, 1 - (now - signals.lastSeenAt.getTime()) / (daysUntilFaded * millisPerDay))
      )
      const used = 1 + weights.popularity * popularity + weights.freshness * freshness
      return { ...multiplied(hit, wished * used), origin: signals.origin, popularity, freshness }
    })
    .sort(byScore)
  const ageOf = (id: bigint): number => known.get(id)?.wordsAt?.getTime() ?? 0
  // Equal scores: the oldest words first.
  const byAge = (a: Fused, b: Fused): number => b.score - a.score || ageOf(a.id) - ageOf(b.id) || byScore(a, b)
  const hasEvidence = (id: bigint): boolean => known.get(id)?.hasEvidence === true
  const youngSince = (id: bigint) => known.get(id)?.youngSince ?? undefined
  const [seen, proven] = [new Map<string, number>(), new Map<string, number>()]
  const spread = considered.map(({ freshness, origin, popularity, ...hit }): Weighed => {
    // Any claim can name a seller's origin, so it must not take anything from hits with evidence.
    const isProven = hasEvidence(hit.id)
    const originHits = origin === null ? 0 : ((isProven ? proven : seen).get(origin) ?? 0)
    if (origin !== null)
      for (const counts of isProven ? [seen, proven] : [seen]) counts.set(origin, (counts.get(origin) ?? 0) + 1)
    return {
      ...multiplied(hit, weights.originDecay ** originHits),
      signals: { popularity, freshness, originHits }
    }
  })
  const ordered = spread.sort(byAge)
  return [...evidenceFirst(ordered, hasEvidence, weights.evidence_margin, youngSince), ...hits.slice(count)]
}
