// At most so many hits of one seller on a first page, by its origin and by whom it has paid: whoever lists one thing a
// hundred times crowds nobody out. What is too many goes behind the first page in its order, or behind the others where
// they do not fill it: no hit is lost, and later pages hold the rest. Pure.
import type { Weighed } from "./signals.ts"

/** Hits of a first page. */
export const pageSize = 20
const ofOneSellerMax = 3

export interface Seller {
  readonly origin: string | null
  readonly payTos: ReadonlyArray<string>
}

export interface Spread {
  readonly hits: ReadonlyArray<Weighed>
  /** Some seller had too many, and the others did not fill the page. */
  readonly isCrowded: boolean
}

export const spreadSellers = (hits: ReadonlyArray<Weighed>, sellerOf: (id: bigint) => Seller | undefined): Spread => {
  const seen = new Map<string, number>()
  const first: Array<Weighed> = []
  const behind: Array<Weighed> = []
  for (const hit of hits) {
    const seller = sellerOf(hit.id)
    const names = seller === undefined ? [] : [`origin ${seller.origin}`, ...seller.payTos]
    const isTooMany = names.some((name) => (seen.get(name) ?? 0) >= ofOneSellerMax)
    if (first.length >= pageSize || isTooMany) behind.push(hit)
    else {
      first.push(hit)
      for (const name of names) seen.set(name, (seen.get(name) ?? 0) + 1)
    }
  }
  return { hits: [...first, ...behind], isCrowded: first.length < pageSize && behind.length > 0 }
}
