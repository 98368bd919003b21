// `/discovery/search`: a ranking is made once and paged through. The first page ranks a window; its cursor carries the
// ranking, so that later pages neither repeat nor skip while the catalog is written, on any replica. A list that was
// used up and may go on is ranked once more over the largest window, without what was shown (S115, S121–S128).
// Observers hear of each answer beside it.
import { Clock, Effect, Exit, Option, type Scope } from "effect"
import { Hex } from "effect/encoding"
import type { HttpServerRequest } from "effect/http"
import type { SqlError } from "effect/sql"
import type { Callers } from "../../../kernel/http/Callers.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { Impression } from "../contract.ts"
import { fingerprintOf } from "../discovery/filters.ts"
import { makeRankResources, type Ranking, type RankParts } from "./rankResources.ts"
import { decodePosition, encodePosition, type RankingPosition } from "./rankingCursor.ts"
import type { ReadSearch } from "./readSearch.ts"
import type { makeSearchRegistry } from "./SearchRegistry.ts"

/** How long searches share one reading of the highest id. */
const snapshotFor = "200 millis"

export type SearchAnswer =
  | { readonly _tag: "Disabled" }
  | { readonly _tag: "InvalidCursor" }
  | { readonly _tag: "Unauthorized" }
  | {
      readonly _tag: "Page"
      readonly resources: ReadonlyArray<string>
      readonly partial: boolean
      readonly cursor: string | null
      /** How each resource came to its place, when that was asked for. */
      readonly explained: ReadonlyArray<unknown> | undefined
    }

export interface SearchParts extends Omit<RankParts, "registry"> {
  readonly crypto: Crypto["Service"]
  readonly callers: Callers["Service"]
  readonly registry: ReturnType<typeof makeSearchRegistry>
  readonly scope: Scope.Scope
}

export const makeSearch = ({
  callers,
  catalog,
  crypto,
  registry: { observers, registry },
  scope,
  settings,
  ...parts
}: SearchParts) => {
  const rank = makeRankResources({ ...parts, catalog, registry, settings })
  // Indexes hear of a resource some time after it is listed: a moment more is nothing.
  const snapshots = Effect.runSync(
    Effect.cachedWithTTL(catalog.snapshot, (exit) => (Exit.isSuccess(exit) ? snapshotFor : 0))
  )

  const sessionOf = (request: HttpServerRequest.HttpServerRequest): string =>
    Hex.encode(
      crypto.sha256(
        new TextEncoder().encode(
          Option.match(callers.identify(request), { onNone: () => "", onSome: ({ source }) => source })
        )
      )
    ).slice(0, 16)

  const tell = (impression: Impression) =>
    Effect.forkIn(
      Effect.forEach(
        observers,
        (observer) =>
          Effect.catchCause(observer(impression), (cause) => Effect.logWarning("an observer of search failed", cause)),
        { discard: true }
      ),
      scope
    )

  /** The list that the page is cut from. A fresh one comes with its ranking. */
  const listFor = Effect.fnUntraced(function* (read: ReadSearch, snapshot: bigint, from: RankingPosition | undefined) {
    const end = (from?.shown ?? read.offset) + read.limit
    if (from !== undefined && (from.ids.length >= end || !from.more)) return { position: from, ranking: undefined }
    const window =
      from !== undefined
        ? settings.window
        : Math.min(settings.window, end <= settings.first_window ? settings.first_window : 2 * end)
    const ranking = yield* rank({ query: read.query, mode: read.mode, filters: read.filters, snapshot, window })
    const known = new Set(from?.ids)
    const ids = [...(from?.ids ?? []), ...ranking.hits.map(({ id }) => id).filter((id) => !known.has(id))].slice(
      0,
      settings.window
    )
    const position: RankingPosition = {
      shown: from?.shown ?? read.offset,
      ids,
      more: window < settings.window && ranking.more
    }
    return { position, ranking }
  })

  const explain = (ids: ReadonlyArray<bigint>, shown: number, ranking: Ranking | undefined) => {
    const byId = new Map(ranking?.hits.map((hit) => [hit.id, hit]))
    return ids.map((id, at) => {
      const hit = byId.get(id)
      return {
        position: shown + at + 1,
        ...(hit === undefined
          ? {}
          : { score: hit.score, branches: hit.standings, signals: hit.signals ?? null, reranking: ranking?.reranking })
      }
    })
  }

  return Effect.fn("Catalog.search")(function* (
    read: ReadSearch,
    request: HttpServerRequest.HttpServerRequest
  ): Effect.fn.Return<SearchAnswer, SqlError.SqlError> {
    if (registry.branches().length === 0) return { _tag: "Disabled" }
    if (read.explain && Option.isNone(callers.identify(request))) return { _tag: "Unauthorized" }
    const startedAt = yield* Clock.currentTimeMillis
    const fingerprint = fingerprintOf(read.filters, [read.query, read.mode])
    const opened = read.cursor === undefined ? Option.none() : yield* catalog.open(read.cursor, fingerprint)
    const from = Option.flatMap(opened, ({ position }) => decodePosition(position))
    if (read.cursor !== undefined && Option.isNone(from)) return { _tag: "InvalidCursor" }
    const snapshot = Option.isSome(opened) ? opened.value.snapshot : yield* snapshots
    const { position, ranking } = yield* listFor(read, snapshot, Option.getOrUndefined(from))
    const { ids, more, shown } = position
    const bodies = yield* catalog.bodies(ids.slice(shown, shown + read.limit))
    const next = shown + read.limit
    const cursor =
      next < ids.length || (more && next <= ids.length)
        ? yield* catalog.seal({ snapshot, position: encodePosition({ ids, more, shown: next }), fingerprint })
        : null
    const milliseconds = (yield* Clock.currentTimeMillis) - startedAt
    const missing = ranking?.missing ?? []
    const reranking = ranking?.reranking ?? "off"
    yield* tell({
      query: read.query,
      mode: read.mode,
      ids: bodies.map(({ id }) => id),
      offset: shown,
      milliseconds,
      missing,
      reranking,
      session: sessionOf(request)
    })
    return {
      _tag: "Page",
      resources: bodies.map(({ json }) => json),
      partial: missing.length > 0 || reranking === "failed",
      cursor,
      explained: read.explain
        ? explain(
            bodies.map(({ id }) => id),
            shown,
            ranking
          )
        : undefined
    }
  })
}
