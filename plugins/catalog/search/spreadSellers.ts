// At most so many places of one seller on a first page, of a search as of browsing, by its origin and by whom it has
// paid: whoever lists one thing a hundred times crowds nobody out. What is too many goes behind the first page in its
// order, or behind the others where they do not fill it: none is lost, and later pages hold the rest. Pure.

/** Places of a first page. */
export const pageSize = 20
const ofOneSellerMax = 3

export interface Seller {
  readonly origin: string | null
  readonly payTos: ReadonlyArray<string>
}

export interface Spread<H> {
  readonly hits: ReadonlyArray<H>
  /** Some seller had too many, and the others did not fill the page. */
  readonly isCrowded: boolean
}

const namesOf = ({ origin, payTos }: Seller): ReadonlyArray<string> =>
  origin === null ? payTos : [`origin ${origin}`, ...payTos]

export const spreadSellers = <H extends { readonly id: bigint }>(
  hits: ReadonlyArray<H>,
  sellerOf: (id: bigint) => Seller | undefined
): Spread<H> => {
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
    const isTooMany = names.some((name) => (seen.get(name) ?? 0) >= ofOneSellerMax)
    if (isTooMany) behind.push(hit)
    else {
      first.push(hit)
      for (const name of names) seen.set(name, (seen.get(name) ?? 0) + 1)
    }
  }
  return { hits: [...first, ...behind], isCrowded: first.length < pageSize && behind.length > 0 }
}
