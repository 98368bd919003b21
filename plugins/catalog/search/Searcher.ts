// `/discovery/search`: a ranking is made once and paged through. The first page ranks a window; its cursor carries the
// ranking, so that later pages neither repeat nor skip while the catalog is written, on any replica. An exhausted list
// that may continue is ranked once more over the largest window, without the hits already shown (S115, S121–S128).
// Observers run after each answer, outside of the request.
import { Context, Effect, Exit, Layer, Option } from "effect"
import { Hex } from "effect/encoding"
import type { HttpServerRequest } from "effect/http"
import { SqlClient, type SqlError } from "effect/sql"
import { generatedSecret } from "../../../kernel/database/generatedSecret.ts"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { Authentication } from "../../../kernel/http/Authentication.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { memoize } from "../../../kernel/cache/memoize.ts"
import { withSpanIfSampled } from "../../../kernel/effect/withSpanIfSampled.ts"
import { withinPage } from "../discovery/batchBodies.ts"
import { Catalog, type Filters, isFiltered, Search } from "../contract.ts"
import { PricedAssets } from "../ownership/PricedAssets.ts"
import { fingerprintOf } from "../discovery/filters.ts"
import { rankingCache, type Listing, listingOf } from "./rank/rankingCache.ts"
import { firstWindow, Ranker, type Ranking, windowMax } from "./rank/Ranker.ts"
import { decodePosition, encodePosition, type RankingPosition } from "./rank/rankingCursor.ts"
import { type Intent, readIntent } from "./readIntent.ts"
import { matchPage, type PageMatches } from "./matchPage.ts"
import type { ReadSearch } from "./readSearch.ts"
import { Observers } from "./SearchRegistry.ts"

/** How long searches share one read of the highest id. */
const snapshotFor = "200 millis"
/** Cached session names, by caller. */
const sourcesKept = 1_000

export type SearchAnswer =
  | { readonly _tag: "Disabled" }
  | { readonly _tag: "InvalidCursor" }
  | { readonly _tag: "Unauthorized" }
  /** This caller has exceeded its rate limit. */
  | {
      readonly _tag: "Page"
      readonly resources: ReadonlyArray<string>
      readonly partial: boolean
      /** No hit counts as an answer: the shown hits are the nearest. */
      readonly nearestOnly: boolean
      readonly cursor: string | null
      /** The interpretation of the query's words about the price. */
      readonly intent: Intent | undefined
      readonly matches: PageMatches | undefined
      /** How each resource was ranked, when that was asked for. */
      readonly explained: ReadonlyArray<unknown> | undefined
    }

interface FoundListings {
  readonly ids: ReadonlyArray<bigint>
  readonly filters: Filters
  /** The ranking holds all results. */
  readonly isComplete: boolean
}

/**
 * A list that pages are cut from. A fresh list comes with its ranking, and with its hits if the caller asked for an
 * explanation.
 */
interface Listed {
  readonly position: RankingPosition
  readonly ranking: (Listing & Partial<Pick<Ranking, "hits">>) | undefined
}

const explain = (ids: ReadonlyArray<bigint>, shown: number, { ranking }: Listed) => {
  const byId = new Map(ranking?.hits?.map((hit) => [hit.id, hit]))
  return ids.map((id, at) => {
    const hit = byId.get(id)
    return {
      position: shown + at + 1,
      ...(hit === undefined
        ? {}
        : { score: hit.score, branches: hit.ranks, signals: hit.signals ?? null, reranking: ranking?.reranking })
    }
  })
}

const explained = (ranked: Effect.Effect<Ranking, SqlError.SqlError>) =>
  Effect.map(ranked, (ranking) => ({ ...listingOf(ranking), hits: ranking.hits }))

/** The list that a page is cut from: the cursor's, a fresh one, or the cursor's made longer. */
const listFor = Effect.fnUntraced(function* (
  rankings: { readonly made: Ranker["Service"]["rank"]; readonly kept: Effect.Success<typeof rankingCache> },
  read: ReadSearch & Pick<Intent, "prefers">,
  snapshot: bigint,
  from: RankingPosition | undefined
): Effect.fn.Return<Listed, SqlError.SqlError> {
  const end = (from?.shown ?? read.offset) + read.limit
  if (from !== undefined && (from.ids.length >= end || !from.more)) return { position: from, ranking: undefined }
  const window = from !== undefined ? windowMax : Math.min(windowMax, end <= firstWindow ? firstWindow : 2 * end)
  const { filters, isModeAsked, mode, prefers, query } = read
  const request = { query, mode, isModeAsked, filters, snapshot, window, prefers }
  const ranking = read.explain ? yield* explained(rankings.made(request)) : yield* rankings.kept(request)
  const known = new Set(from?.ids)
  const fresh = ranking.ids.filter((id) => !known.has(id))
  const position: RankingPosition = {
    shown: from?.shown ?? read.offset,
    ids: [...(from?.ids ?? []), ...fresh].slice(0, windowMax),
    more: window < windowMax && ranking.more,
    isAnswered: from?.isAnswered ?? ranking.isAnswered,
    isPartial:
      from?.isPartial === true ||
      ranking.missing.length + ranking.unprovided.length > 0 ||
      ranking.reranking === "failed"
  }
  return { position, ranking }
})

/** The given resources that pass the filters now, in their order. */
type Passing = (ids: ReadonlyArray<bigint>, filters: Filters) => Effect.Effect<ReadonlyArray<bigint>, SqlError.SqlError>

const makePassing =
  (catalog: Catalog["Service"], sql: SqlClient.SqlClient): Passing =>
  (ids, filters) =>
    ids.length === 0
      ? Effect.succeed([])
      : Effect.map(
          sql<{ id: bigint }>`select v.id from unnest(${`{${ids.join(",")}}`}::int8[]) with ordinality v (id, place)
            where ${catalog.condition(filters, { id: "v.id" })} order by v.place`.unprepared,
          (rows) => rows.map(({ id }) => id)
        )

/** The page of a list. Its cursor carries the list; a resource that passed the filters then may fail them now. */
const pageOf = Effect.fnUntraced(function* (
  { catalog, passing }: { readonly catalog: Catalog["Service"]; readonly passing: Passing },
  read: ReadSearch,
  listed: Listed,
  sealed: { readonly snapshot: bigint; readonly fingerprint: string }
) {
  const { position } = listed
  const { ids, isAnswered, isPartial, more, shown } = position
  const cut = ids.slice(shown, shown + read.limit)
  const isLater = read.cursor !== undefined && isFiltered(read.filters)
  const asked = yield* catalog.bodies(isLater ? yield* passing(cut, read.filters) : cut)
  const bodies = withinPage(asked)
  const beyond = asked[bodies.length]
  const next = shown + (beyond === undefined ? read.limit : cut.indexOf(beyond.id))
  const cursor =
    next < ids.length || (more && next <= ids.length)
      ? yield* catalog.seal({ ...sealed, position: encodePosition({ ...position, shown: next }) })
      : null
  const shownIds = bodies.map(({ id }) => id)
  const page: Extract<SearchAnswer, { readonly _tag: "Page" }> = {
    _tag: "Page",
    resources: bodies.map(({ json }) => json),
    partial: isPartial,
    nearestOnly: !isAnswered && shownIds.length > 0,
    cursor,
    intent: undefined,
    matches: undefined,
    explained: read.explain ? explain(shownIds, shown, listed) : undefined
  }
  return { page, shownIds }
})

/** A caller's or an operator's key; if callers need none, this machine itself. */
const mayExplain = (callers: Authentication["Service"], request: HttpServerRequest.HttpServerRequest): boolean =>
  callers.isOperator(request) ||
  Option.exists(callers.authenticate(request), ({ keyed }) => keyed || callers.isLocal(request))

export class Searcher extends Context.Service<
  Searcher,
  {
    readonly search: (
      read: ReadSearch,
      request: HttpServerRequest.HttpServerRequest
    ) => Effect.Effect<SearchAnswer, SqlError.SqlError>
    /** All results of a query that answer it, best first, and their filters. Observers do not see it. */
    readonly found: (read: ReadSearch) => Effect.Effect<FoundListings, SqlError.SqlError>
  }
>()("tollkeeper/catalog/Searcher") {
  static readonly layer = Layer.effect(
    Searcher,
    Effect.gen(function* () {
      const catalog = yield* Catalog
      const passing = makePassing(catalog, yield* SqlClient.SqlClient)
      const rankings = { made: (yield* Ranker).rank, kept: yield* rankingCache }
      const registry = yield* Search
      const observers = yield* Observers
      const callers = yield* Authentication
      const crypto = yield* Crypto
      const { assets } = yield* PricedAssets
      const markSecret = yield* generatedSecret("search session", "catalog_secrets")
      // Indexes take in a resource some time after it is listed: a moment more is nothing.
      const snapshots = yield* Effect.cachedWithTTL(catalog.snapshot, (exit) =>
        Exit.isSuccess(exit) ? snapshotFor : 0
      )
      const markOf = memoize({ name: "session-marks", capacity: sourcesKept }, (source) =>
        Hex.encode(crypto.hmacSha256(markSecret, new TextEncoder().encode(source))).slice(0, 16)
      )
      const sessionOf = (request: HttpServerRequest.HttpServerRequest): string =>
        markOf(
          Option.match(callers.authenticate(request), {
            onNone: () => callers.sourceOf(request),
            onSome: ({ source }) => source
          })
        )

      const search = Effect.fnUntraced(function* (
        read: ReadSearch,
        request: HttpServerRequest.HttpServerRequest
      ): Effect.fn.Return<SearchAnswer, SqlError.SqlError> {
        if (registry.branches().length === 0) return { _tag: "Disabled" } as const
        if (read.explain && !mayExplain(callers, request)) return { _tag: "Unauthorized" } as const
        const startedAt = yield* monotonicMillis
        const fingerprint = fingerprintOf(read.filters, [read.query, read.mode])
        const opened = read.cursor === undefined ? Option.none() : yield* catalog.open(read.cursor, fingerprint)
        const from = Option.flatMap(opened, ({ position }) => decodePosition(position))
        if (read.cursor !== undefined && Option.isNone(from)) return { _tag: "InvalidCursor" } as const
        const snapshot = Option.isSome(opened) ? opened.value.snapshot : yield* snapshots
        const intent = readIntent(read.query, read.filters, assets)
        const asked = { ...read, query: intent.query, filters: intent.filters, prefers: intent.prefers }
        const list = yield* listFor(rankings, asked, snapshot, Option.getOrUndefined(from))
        const { page, shownIds } = yield* pageOf({ catalog, passing }, { ...read, filters: intent.filters }, list, {
          snapshot,
          fingerprint
        })
        yield* observers.report({
          query: read.query,
          mode: read.mode,
          ids: shownIds,
          offset: list.position.shown,
          isAnswered: list.position.isAnswered,
          milliseconds: (yield* monotonicMillis) - startedAt,
          missing: list.ranking?.missing ?? [],
          reranking: list.ranking?.reranking ?? "off",
          session: sessionOf(request),
          isKeyed: Option.exists(callers.authenticate(request), ({ keyed }) => keyed)
        })
        const matches = read.matches ? yield* matchPage(registry.branches(), intent.query, page.resources) : undefined
        return { ...page, matches, intent: intent.words.length === 0 ? undefined : intent }
      }, withSpanIfSampled("Catalog.search"))

      const found = Effect.fnUntraced(function* (read: ReadSearch): Effect.fn.Return<FoundListings, SqlError.SqlError> {
        const { filters, prefers, query } = readIntent(read.query, read.filters, assets)
        const request = { ...read, query, filters, prefers, snapshot: yield* snapshots, window: windowMax }
        const { ids, isAnswered, more } = yield* rankings.kept(request)
        return { ids: isAnswered ? ids : [], filters, isComplete: !more }
      }, withSpanIfSampled("Catalog.found"))

      return Searcher.of({ search, found })
    })
  )
}
