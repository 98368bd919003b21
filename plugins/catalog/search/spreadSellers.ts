// At most so many places of one seller on a first page, of a search as of browsing, by its origin and by whom
// it has paid, and, of a search, of texts that say nearly the same, whoever's they are: whoever lists one
// thing a hundred times, under as many names, crowds nobody out. Of such texts those stay that were listed
// first: a copy never takes the place of what it was copied from. What is too many goes behind the first page
// in its order, or behind the others where they do not fill it: none is lost, and later pages hold the rest.
// Pure.
import { groupAlike } from "./textSketch.ts"

/** Places of a first page. */
export const pageSize = 20
const ofOneSellerMax = 3
const ofOneTextMax = 3
/** Texts that others are held against; what is like none of these is taken for a text of its own. */
const textsMax = 60

export interface Seller {
  readonly origin: string | null
  readonly payTos: ReadonlyArray<string>
  /** What its listing says (`sketchOf`); empty where that is too little, and left out where it does not matter. */
  readonly sketch?: string
}

export interface Spread<H> {
  readonly hits: ReadonlyArray<H>
  /** Some seller had too many, and the others did not fill the page. */
  readonly isCrowded: boolean
}

const namesOf = ({ origin, payTos }: Seller): ReadonlyArray<string> =>
  origin === null ? payTos : [`origin ${origin}`, ...payTos]

/** Of texts that say nearly the same, all but the first listed. */
const copiesAmong = (
  hits: ReadonlyArray<{ readonly id: bigint }>,
  sellerOf: (id: bigint) => Seller | undefined
): ReadonlySet<bigint> => {
  const copies = new Set<bigint>()
  // Who fits on the first page crowds nobody out of it.
  if (hits.length <= pageSize) return copies
  const sketches = hits.map(({ id }) => sellerOf(id)?.sketch ?? "")
  for (const places of groupAlike(sketches, textsMax)) {
    if (places.length <= ofOneTextMax) continue
    const ids = places.map((place) => hits[place]!.id).sort((a, b) => (a < b ? -1 : 1))
    for (const id of ids.slice(ofOneTextMax)) copies.add(id)
  }
  return copies
}

export const spreadSellers = <H extends { readonly id: bigint }>(
  hits: ReadonlyArray<H>,
  sellerOf: (id: bigint) => Seller | undefined
): Spread<H> => {
  const copies = copiesAmong(hits, sellerOf)
  const seen = new Map<string, number>()
  const first: Array<H> = []
  const behind: Array<H> = []
  for (const hit of hits) {
    if (first.length >= pageSize) {
      behind.push(hit)
      continue
    }
    const seller = sellerOf(hit.id)
    const names = seller === undefined ? [] : namesOf(seller)
    const isTooMany = copies.has(hit.id) || names.some((name) => (seen.get(name) ?? 0) >= ofOneSellerMax)
    if (isTooMany) behind.push(hit)
    else {
      first.push(hit)
      for (const name of names) seen.set(name, (seen.get(name) ?? 0) + 1)
    }
  }
  return { hits: [...first, ...behind], isCrowded: first.length < pageSize && behind.length > 0 }
}
