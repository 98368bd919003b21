// How well a query is answered without filters, cached for a minute, so that a search repeated with a filter does not
// measure it again. It is a property of the query and the whole catalog, and moves as slowly as that does.
import { Effect } from "effect"
import { monotonicMillis } from "../../../../kernel/time/monotonicMillis.ts"
import { LruCache } from "../../../../kernel/cache/LruCache.ts"
import { bestsOf, isAnyFitting, type Ranked } from "./fuse.ts"

/** The relevance of each branch's best hit, and whether anything fits. */
export interface Fit {
  readonly bests: ReturnType<typeof bestsOf>
  readonly isFitting: boolean
}

const keptMillis = 60_000
const keptMax = 5_000

/** `words`: the query's number of terms. */
export const fitOf = (branches: ReadonlyArray<Ranked>, bestMin: number, words?: number): Fit => {
  const bests = bestsOf(branches)
  return { bests, isFitting: isAnyFitting(branches, bests, bestMin, words) }
}

/** The fit of a query by the branches that answered it. */
const keyOf = (query: string, branches: ReadonlyArray<Pick<Ranked, "mode">>): string =>
  `${branches.map(({ mode }) => mode).join(" ")}\n${query}`

export const fitCache = () => {
  const kept = new LruCache<string, { readonly fit: Fit; readonly at: number }>({ name: "fits", capacity: keptMax })
  return {
    note: (query: string, branches: ReadonlyArray<Ranked>, fit: Fit) =>
      Effect.map(monotonicMillis, (at) => kept.set(keyOf(query, branches), { fit, at })),
    known: (query: string, branches: ReadonlyArray<Ranked>): Effect.Effect<Fit | undefined> =>
      Effect.map(monotonicMillis, (now) => kept.get(keyOf(query, branches), ({ at }) => now - at < keptMillis)?.fit)
  }
}
