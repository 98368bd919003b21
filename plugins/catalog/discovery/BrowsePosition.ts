// The start of a page of browsing, as its cursor carries it: how many of the first resources were shown, and the last
// row after them. The cursor holds the time of the first page, which fixes the evidence of the snapshot, and the ids of
// the first ones, so that a resource that rises between pages is neither repeated nor lost. Pure.

export interface BrowsePosition {
  /** The next rows are those with evidence; otherwise the merely claimed ones. */
  readonly hasEvidence: boolean
  /** Rows behind the first ones: ids below this one are not yet shown. */
  readonly below: bigint
  readonly shown: number
  readonly total: number
  /** Evidence up to this time counts. Milliseconds. */
  readonly asOf: number
  /** The first ones in their order, which are not among the rows behind. */
  readonly first: ReadonlyArray<bigint>
}

export const positionAfter = (
  at: BrowsePosition,
  count: number,
  last: { readonly id: bigint; readonly hasEvidence: boolean } | undefined
): BrowsePosition => ({
  ...at,
  shown: at.shown + count,
  ...(last === undefined ? {} : { hasEvidence: last.hasEvidence, below: last.id })
})

export const encodeBrowsePosition = ({ asOf, below, first, shown, hasEvidence, total }: BrowsePosition): string =>
  [hasEvidence ? 1 : 0, below, shown, total, asOf, first.join(".")].join(":")

export const decodeBrowsePosition = (text: string): BrowsePosition => {
  const [hasEvidence = "", below = "0", shown = "0", total = "0", asOf = "0", first = ""] = text.split(":")
  return {
    hasEvidence: hasEvidence === "1",
    below: BigInt(below),
    shown: Number(shown),
    total: Number(total),
    asOf: Number(asOf),
    first: first === "" ? [] : first.split(".").map(BigInt)
  }
}
