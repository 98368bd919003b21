// Search over the branches that plugins register: those that the mode asks for run side by side, each with its deadline, their
// ranks are fused, and a page of the ranking is served. One ranking is kept for a while under its snapshot and query, so that
// pages neither repeat nor skip while the catalog is written; a replica that has not got it ranks the same snapshot again
// (S115, S121–S130, decisions 4 and 5).
import { Clock, Effect, Option, type Scope } from "effect"
import { Hex } from "effect/encoding"
import type { HttpServerRequest } from "effect/http"
import type { SqlError } from "effect/sql"
import type { Callers } from "../../../kernel/http/Callers.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { Catalog, Hit, Impression, Search, SearchBranch, SearchMode } from "../contract.ts"
import { fingerprintOf } from "../discovery/filters.ts"
import { fuse } from "./fuse.ts"
import type { ReadSearch } from "./readSearch.ts"
import type { SearchValues } from "./searchSection.ts"

/** Hits of one ranking that can be paged through. */
const rankingMax = 1_000
const rankingsMax = 500

export type SearchAnswer =
  | { readonly _tag: "Disabled" }
  | { readonly _tag: "InvalidCursor" }
  | { readonly _tag: "Page"; readonly resources: ReadonlyArray<string>; readonly partial: boolean; readonly cursor: string | null }

interface Ranking {
  readonly hits: ReadonlyArray<bigint>
  readonly missing: ReadonlyArray<SearchMode>
}

/** Where branches and observers are registered. */
export const makeSearchRegistry = () => {
  const branches = new Map<string, SearchBranch>()
  const observers = new Set<(impression: Impression) => Effect.Effect<void>>()
  const registry: Search["Service"] = {
    register: (branch) =>
      Effect.asVoid(Effect.acquireRelease(
        Effect.suspend(() =>
          branches.has(branch.mode) ? Effect.die(new Error(`two branches of search are ${branch.mode}`)) : Effect.sync(() => branches.set(branch.mode, branch))
        ),
        () => Effect.sync(() => branches.delete(branch.mode))
      )),
    observe: (observer) => Effect.asVoid(Effect.acquireRelease(Effect.sync(() => observers.add(observer)), () => Effect.sync(() => observers.delete(observer)))),
    branches: () => [...branches.values()]
  }
  return { registry, observers }
}

const wantedBy = (mode: SearchMode): ReadonlyArray<SearchBranch["mode"]> => mode === "hybrid" ? ["lexical", "semantic"] : [mode]

export interface SearchParts {
  readonly catalog: Catalog["Service"]
  readonly crypto: Crypto["Service"]
  readonly callers: Callers["Service"]
  readonly registry: ReturnType<typeof makeSearchRegistry>
  readonly settings: SearchValues
  readonly scope: Scope.Scope
}

export const makeSearch = ({ callers, catalog, crypto, registry: { observers, registry }, scope, settings }: SearchParts) => {
  const rankings = new Map<string, Ranking>()

  const ask = Effect.fnUntraced(function*(branch: SearchBranch, read: ReadSearch, snapshot: bigint) {
    const request = { query: read.query, filters: read.filters, snapshot, limit: rankingMax }
    return yield* branch.search(request).pipe(
      Effect.timeout(branch.timeoutMillis),
      Effect.catchCause((cause) => Effect.as(Effect.logWarning(`the ${branch.mode} branch of search did not answer`, cause), undefined)),
      Effect.withSpan(`search.${branch.mode}`)
    )
  })

  const rank = Effect.fnUntraced(function*(read: ReadSearch, snapshot: bigint) {
    const present = registry.branches()
    const wanted = wantedBy(read.mode)
    // A mode whose plugin is off falls back to what is on.
    const asked = present.filter(({ mode }) => wanted.includes(mode))
    const used = asked.length === 0 ? present : asked
    const answers = yield* Effect.forEach(used, (branch) => Effect.map(ask(branch, read, snapshot), (hits) => ({ branch, hits })), { concurrency: "unbounded" })
    const answered = answers.filter((answer): answer is { branch: SearchBranch; hits: ReadonlyArray<Hit> } => answer.hits !== undefined)
    const ranked = answered.map(({ branch, hits }) => ({ weight: Math.max(branch.weight, Number.EPSILON), hits: hits.slice(0, answered.length === 1 ? rankingMax : branch.candidates) }))
    return {
      hits: fuse(ranked, { k: settings.rrf_k, relevanceMin: settings.minimum_relevance_score }).slice(0, rankingMax),
      missing: wanted.filter((mode) => !answered.some(({ branch }) => branch.mode === mode))
    } satisfies Ranking
  })

  const rankingOf = Effect.fnUntraced(function*(read: ReadSearch, snapshot: bigint, fingerprint: string) {
    const key = `${snapshot} ${fingerprint}`
    const known = read.cursor === undefined ? undefined : rankings.get(key)
    if (known !== undefined) return known
    const fresh = yield* rank(read, snapshot)
    rankings.delete(key)
    rankings.set(key, fresh)
    if (rankings.size > rankingsMax) rankings.delete(rankings.keys().next().value!)
    return fresh
  })

  const sessionOf = (request: HttpServerRequest.HttpServerRequest): string =>
    Hex.encode(crypto.sha256(new TextEncoder().encode(Option.match(callers.identify(request), { onNone: () => "", onSome: ({ id }) => id })))).slice(0, 16)

  return Effect.fn("Catalog.search")(function*(
    read: ReadSearch,
    request: HttpServerRequest.HttpServerRequest
  ): Effect.fn.Return<SearchAnswer, SqlError.SqlError> {
    if (registry.branches().length === 0) return { _tag: "Disabled" }
    const startedAt = yield* Clock.currentTimeMillis
    const fingerprint = fingerprintOf(read.filters, [read.query, read.mode])
    const opened = read.cursor === undefined ? undefined : yield* catalog.open(read.cursor, fingerprint)
    if (opened !== undefined && Option.isNone(opened)) return { _tag: "InvalidCursor" }
    const snapshot = opened === undefined ? yield* catalog.snapshot : opened.value.snapshot
    const offset = opened === undefined ? read.offset : Number(opened.value.position)
    const { hits, missing } = yield* rankingOf(read, snapshot, fingerprint)
    const ids = hits.slice(offset, offset + read.limit)
    const bodies = yield* catalog.bodies(ids)
    const next = offset + read.limit
    const cursor = next < hits.length ? yield* catalog.seal({ snapshot, position: String(next), fingerprint }) : null
    const milliseconds = (yield* Clock.currentTimeMillis) - startedAt
    const impression: Impression = { query: read.query, mode: read.mode, ids: bodies.map(({ id }) => id), offset, milliseconds, missing, session: sessionOf(request) }
    yield* Effect.forkIn(
      Effect.forEach(observers, (observer) => Effect.catchCause(observer(impression), (cause) => Effect.logWarning("an observer of search failed", cause)), { discard: true }),
      scope
    )
    return { _tag: "Page", resources: bodies.map(({ json }) => json), partial: missing.length > 0, cursor }
  })
}
