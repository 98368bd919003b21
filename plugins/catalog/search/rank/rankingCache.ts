// A cache of rankings that are asked for again: people and agents repeat the same few queries. An entry holds the ids
// of a ranking, for half a minute at most, and no longer than its sources stay the same: the catalog, by its journal,
// and the edition of each branch. Only the order is cached; each page reads its bodies again. An entry begins with the
// second request, so that one-time queries take no room and the flaws of a first search (similar terms not yet
// provided, a read that took too long) are not cached.
import { Effect, Option } from "effect"
import type { SqlError } from "effect/sql"
import { monotonicMillis } from "../../../../kernel/time/monotonicMillis.ts"
import { LruCache } from "../../../../kernel/cache/LruCache.ts"
import { Catalog, Search } from "../../contract.ts"
import { fingerprintOf } from "../../discovery/filters.ts"
import { branchesOf, Ranker, type Ranking, type RankRequest } from "./Ranker.ts"

const keptMillis = 30_000
/** Timeout of the editions: they only save time. */
const patience = "100 millis"
/** Some kilobytes each. */
const keptMax = 2_000

export interface Listing extends Omit<Ranking, "hits"> {
  /** Best first. */
  readonly ids: ReadonlyArray<bigint>
}

export const listingOf = ({ hits, ...ranking }: Ranking): Listing => ({ ...ranking, ids: hits.map(({ id }) => id) })

interface Kept {
  readonly edition: string
  /** When it was last made, by `monotonicMillis`. */
  readonly at: number
  /** Undefined after one request. */
  readonly listing: Listing | undefined
}

const keyOf = ({ filters, isModeAsked, mode, prefers, query, window }: RankRequest): string =>
  fingerprintOf(filters, [query, mode, isModeAsked, prefers, window])

/** The editions that a ranking is made from at this moment; None if unknown or slow to read. */
const makeEditionOf = Effect.gen(function* () {
  const catalog = yield* Catalog
  const search = yield* Search
  const editionOf = Effect.fnUntraced(function* (
    request: RankRequest
  ): Effect.fn.Return<Option.Option<string>, SqlError.SqlError> {
    const present = search.branches()
    const editions = [yield* catalog.edition, String(request.snapshot)]
    for (const mode of branchesOf(request.mode, present)) {
      const edition = yield* present.find((branch) => branch.mode === mode)?.edition ?? Effect.undefined
      if (edition === undefined) return Option.none()
      editions.push(`${mode} ${edition}`)
    }
    return Option.some(editions.join("\n"))
  })
  return (request: RankRequest) =>
    editionOf(request).pipe(
      Effect.timeoutOption(patience),
      Effect.map(Option.flatten),
      Effect.catch(() => Effect.succeedNone)
    )
})

/** The ranking of a request, made now or cached. */
export const rankingCache = Effect.gen(function* () {
  const { rank } = yield* Ranker
  const editionOf = yield* makeEditionOf
  const kept = new LruCache<string, Kept>({ name: "rankings", capacity: keptMax })
  return Effect.fnUntraced(function* (request: RankRequest): Effect.fn.Return<Listing, SqlError.SqlError> {
    const edition = yield* editionOf(request)
    if (Option.isNone(edition)) return listingOf(yield* rank(request))
    const key = keyOf(request)
    const at = yield* monotonicMillis
    const isCurrent = (one: Kept) => one.edition === edition.value && at - one.at < keptMillis
    const known = kept.get(key, (one) => isCurrent(one) && one.listing !== undefined)
    if (known?.listing !== undefined) return known.listing
    const before = kept.peek(key)
    const isAgain = before !== undefined && isCurrent(before)
    const listing = listingOf(yield* rank(request))
    const isWhole = listing.missing.length === 0 && listing.reranking !== "failed"
    kept.set(key, { edition: edition.value, at, listing: isAgain && isWhole ? listing : undefined })
    return listing
  })
})
