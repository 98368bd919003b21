// Bounds the places of one seller on a first page, of a search as of browsing, by origin and by recipient, and, in a
// search, those of near-duplicate texts of any seller: listing one thing a hundred times, under as many names, does not
// crowd out others. Among near-duplicates, more evidence wins, then the oldest words, whichever row is older: a copy
// never replaces its original, and equally relevant copies follow it. Claims are also compared by the text that the
// query matched, so that padding does not make a text distinct. The free listings of one payer get three places at
// most. Hits beyond the bound go after the first page in their order, or after the others if those do not fill it:
// every hit stays in the list, on later pages. Pure.
import { relevanceOf, type Weighed } from "./signals.ts"
import { groupAlike, matchedSketches } from "./textSketch.ts"

/** Places of a first page. */
export const pageSize = 20
const ofOneSellerMax = 3
const ofOneTextMax = 3
/** Texts that others are compared with; a text similar to none of these counts as original. */
const textsMax = 60

export interface Seller {
  readonly origin: string | null
  readonly payTos: ReadonlyArray<string>
  /** The payer whose free payment listed it; irrelevant for resources with evidence. */
  readonly listedBy?: string | null
  /** It has evidence: its recipient's key, its origin or a settled payment. */
  readonly hasEvidence?: boolean
  /** Start of the evidence, if all of it is young. */
  readonly youngSince?: Date | null
  /** The last probe could not reach its origin, and nothing was sold since. */
  readonly isGone?: boolean
  readonly wordsAt?: Date
  /** The words of a mere claim (`hashedWords`). */
  readonly claimed?: string
  /** The sketch of its text (`sketchOf`); empty if the text is too short, absent if it does not matter. */
  readonly sketch?: string
}

export interface Spread<H> {
  readonly hits: ReadonlyArray<H>
  /** Some seller had too many, and the others did not fill the page. */
  readonly isCrowded: boolean
}

const namesOf = ({ listedBy, origin, payTos, hasEvidence }: Seller): ReadonlyArray<string> => [
  ...(origin === null ? [] : [`origin ${origin}`]),
  ...payTos,
  ...(hasEvidence === true || listedBy === undefined || listedBy === null ? [] : [`payer ${listedBy}`])
]

/** Established first, then the longest evidence, then mere claims; none for a seller that is gone. */
const seniorityOf = (seller: Seller | undefined): number => {
  if (seller?.hasEvidence !== true || seller.isGone === true) return -Infinity
  return seller.youngSince instanceof Date ? -seller.youngSince.getTime() : Infinity
}

type SellerOf = (id: bigint) => Seller | undefined

/**
 * More evidence first, then the oldest words, then the first listed. A seller that rewords its listing does not become
 * the copy of a listing that was paid little for the same words.
 */
const byOriginality =
  (sellerOf: SellerOf) =>
  (a: bigint, b: bigint): number => {
    const [one, two] = [sellerOf(a), sellerOf(b)]
    const [isOneGone, isTwoGone] = [one?.isGone === true, two?.isGone === true]
    if (isOneGone !== isTwoGone) return isOneGone ? 1 : -1
    const [first, second] = [seniorityOf(one), seniorityOf(two)]
    if (first !== second) return first > second ? -1 : 1
    return (one?.wordsAt?.getTime() ?? 0) - (two?.wordsAt?.getTime() ?? 0) || (a < b ? -1 : 1)
  }

/** Groups near-duplicates by all their words, and claims also by the text that the query matched. */
const groupsAmong = (
  hits: ReadonlyArray<{ readonly id: bigint }>,
  sellerOf: SellerOf,
  query: string
): ReadonlyArray<ReadonlyArray<bigint>> => {
  const sellers = hits.map(({ id }) => sellerOf(id))
  const idsOf = (groups: ReadonlyArray<ReadonlyArray<number>>) =>
    groups.filter(({ length }) => length > 1).map((places) => places.map((place) => hits[place]!.id))
  const whole = groupAlike(
    sellers.map((seller) => seller?.sketch ?? ""),
    textsMax
  )
  const matched = groupAlike(
    matchedSketches(
      sellers.map((seller) => seller?.claimed),
      query
    ),
    textsMax
  )
  return [...idsOf(whole), ...idsOf(matched)]
}

/**
 * The near-duplicates beyond the first few. Those with evidence keep the order of the hits, because sellers with the
 * same sentence may differ by exactly the query's word; then come the most original claims.
 */
const copiesAmong = (
  hits: ReadonlyArray<{ readonly id: bigint }>,
  groups: ReadonlyArray<ReadonlyArray<bigint>>,
  sellerOf: SellerOf
): ReadonlySet<bigint> => {
  const places = new Map(hits.map(({ id }, place) => [id, place]))
  const hasEvidence = (id: bigint): boolean => sellerOf(id)?.hasEvidence === true
  const inOrder = (a: bigint, b: bigint): number =>
    hasEvidence(a) && hasEvidence(b) ? places.get(a)! - places.get(b)! : byOriginality(sellerOf)(a, b)
  return new Set(groups.flatMap((ids) => ids.toSorted(inOrder).slice(ofOneTextMax)))
}

/** A smaller difference of scores, or of relevance, is not significant. */
const equalShare = 0.05

interface Scored {
  readonly id: bigint
  readonly score?: number
  readonly scoreAmongEvidence?: number
  readonly ranks?: Weighed["ranks"]
}

const isAtLeast = (one: number, best: number): boolean => one >= (1 - equalShare) * best

/**
 * By score and by relevance. Behind a flood all ranks are about equal: there two hits with evidence are compared by
 * their ranks among such, and sellers that use one sentence differ by the word that was asked for, which relevance
 * shows.
 */
const isAboutAsRelevant = (hit: Scored, best: Scored): boolean =>
  isAtLeast(relevanceOf(hit), relevanceOf(best)) &&
  isAtLeast(relevanceOf(best), relevanceOf(hit)) &&
  (hit.scoreAmongEvidence === undefined || best.scoreAmongEvidence === undefined
    ? isAtLeast(hit.score ?? 0, best.score ?? 0)
    : isAtLeast(hit.scoreAmongEvidence, best.scoreAmongEvidence))

/**
 * Near-duplicates that are about as relevant, in the order of originality: they change places among themselves. A hit
 * that is more relevant than its copy by its other words keeps its place.
 */
const originalsFirst = <H extends Scored>(
  hits: ReadonlyArray<H>,
  groups: ReadonlyArray<ReadonlyArray<bigint>>,
  sellerOf: SellerOf
): ReadonlyArray<H> => {
  const ordered = [...hits]
  for (const ids of groups) {
    const places = ordered.flatMap(({ id }, place) => (ids.includes(id) ? [place] : []))
    const best = ordered[places[0]!]!
    if (best.score === undefined) continue
    const equal = places.filter((place) => isAboutAsRelevant(ordered[place]!, best))
    const sorted = equal.map((place) => ordered[place]!).sort((a, b) => byOriginality(sellerOf)(a.id, b.id))
    equal.forEach((place, at) => (ordered[place] = sorted[at]!))
  }
  return ordered
}

/** `query`: the search query; empty for browsing. */
export const spreadSellers = <H extends Scored>(given: ReadonlyArray<H>, sellerOf: SellerOf, query = ""): Spread<H> => {
  const groups = groupsAmong(given, sellerOf, query)
  const hits = originalsFirst(given, groups, sellerOf)
  // A list that fits on the first page crowds out nothing.
  const copies = hits.length <= pageSize ? new Set<bigint>() : copiesAmong(hits, groups, sellerOf)
  const placed = new Map<string, Array<number>>()
  const first: Array<H> = []
  const behind: Array<H> = []
  for (const hit of hits) {
    if (first.length >= pageSize) {
      behind.push(hit)
      continue
    }
    const seller = sellerOf(hit.id)
    const names = seller === undefined ? [] : namesOf(seller)
    // Anyone can name a seller's origin and recipient, so this must not take a place from a hit with more evidence.
    const rank = seniorityOf(seller)
    const taken = (name: string) => (placed.get(name) ?? []).filter((other) => other >= rank).length
    if (copies.has(hit.id) || names.some((name) => taken(name) >= ofOneSellerMax)) behind.push(hit)
    else {
      first.push(hit)
      for (const name of names) placed.set(name, [...(placed.get(name) ?? []), rank])
    }
  }
  return { hits: [...first, ...behind], isCrowded: first.length < pageSize && behind.length > 0 }
}
