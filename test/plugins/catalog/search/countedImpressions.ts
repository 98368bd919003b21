// A plain recount of a conversion report's impressions: all of keyed callers; of an unkeyed session each list once, at
// most twenty.
export interface CountedBy {
  readonly at: number
  readonly session: string
  /** Equal for equal lists in one mode. */
  readonly list: string
}

const ofFreeSessionMax = 20

export const countedImpressions = <A>(all: ReadonlyArray<A>, by: (impression: A) => CountedBy): ReadonlyArray<A> => {
  const lists = new Map<string, Set<string>>()
  return all
    .toSorted((a, b) => by(a).at - by(b).at)
    .filter((one) => {
      const { list, session } = by(one)
      if (session.startsWith("key:")) return true
      const seen = lists.get(session) ?? new Set()
      lists.set(session, seen)
      if (seen.has(list) || seen.size >= ofFreeSessionMax) return false
      seen.add(list)
      return true
    })
}
