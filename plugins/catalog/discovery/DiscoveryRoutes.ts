// The public routes: browse, resolve, history, search. No key is required, nothing is written, and no body holds
// anything internal (S106–S113, S115, S131, S132).
import { Effect, Option } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import type { SqlError } from "effect/sql"
import { ReadReplica } from "../../../kernel/database/ReadReplica.ts"
import { queryOf } from "../../../kernel/http/readQuery.ts"
import { addRoutes, type Documented, type Handler, route } from "../../../kernel/http/Route.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { spellResourceUrl } from "../declaration/resourceUrl.ts"
import * as routes from "../description.ts"
import { type SearchAnswer, Searcher } from "../search/Searcher.ts"
import type { Intent } from "../search/readIntent.ts"
import { type ReadSearch, readSearch } from "../search/readSearch.ts"
import { Browse } from "./Browse.ts"
import type { CatalogOverloaded } from "./Counts.ts"
import { countedMax, makeFacets } from "./facets.ts"
import { makeFeed } from "./feed.ts"
import { History } from "./History.ts"
import { encodeHistory, readHistoryQuery } from "./HistoryWire.ts"
import { readFilters, readPaging } from "./filters.ts"
import { failure, fresh, preflight } from "./publicAnswer.ts"
import { Resolve, type ResolveRequest } from "./Resolve.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

/** Browsing: a larger limit is reduced to this. */
const browseLimitMax = 1_000

/** The database is unavailable or overloaded: a short answer with the time to retry. */
const away = <R>(answer: Effect.Effect<Response, SqlError.SqlError | CatalogOverloaded, R>) =>
  Effect.catch(answer, (error) =>
    Effect.as(
      error._tag === "CatalogOverloaded" ? Effect.void : Effect.logError("discovery: the database query failed", error),
      failure(503, "temporarily_unavailable", [], { "retry-after": "1" })
    )
  )

const readResolve = (query: URLSearchParams): ResolveRequest | { readonly wrong: ReadonlyArray<string> } => {
  const [type, url, toolName] = [query.get("type"), query.get("url"), query.get("toolName") ?? ""]
  const wrong: Array<string> = []
  if (type !== "http" && type !== "mcp") wrong.push("type: http or mcp")
  if (url === null || spellResourceUrl(type === "mcp" ? "mcp" : "http", url) === undefined)
    wrong.push("url: the URL of the resource")
  if (type === "mcp" && toolName === "") wrong.push("toolName: required with type=mcp")
  return wrong.length > 0
    ? { wrong }
    : { type: type as "http" | "mcp", url: url!, toolName: type === "mcp" ? toolName : "" }
}

/** The interpretation of the query's words, as a member of the answer. */
const understood = (intent: Intent | undefined): string => {
  if (intent === undefined) return ""
  const { filters, prefers, words } = intent
  const { asset, maxPrice } = filters
  const limit = maxPrice === undefined ? {} : { asset, maxPrice: maxPrice.toString() }
  return `,"understood":${JSON.stringify({ words, ...limit, ...(prefers.length > 0 ? { prefers: prefers[0] } : {}) })}`
}

const searchPage = ({ limit }: ReadSearch, answer: Extract<SearchAnswer, { readonly _tag: "Page" }>): string => {
  const pagination = JSON.stringify({ limit, cursor: answer.cursor })
  const explained = answer.explained === undefined ? "" : `,"explained":${JSON.stringify(answer.explained)}`
  const { corrected, spans } = answer.matches ?? { corrected: [], spans: undefined }
  const matched =
    spans === undefined
      ? ""
      : `,"matches":${JSON.stringify(spans)}${corrected.length > 0 ? `,"corrected":${JSON.stringify(corrected)}` : ""}`
  const reported = `"partialResults":${answer.partial}${answer.nearestOnly ? ',"nearestOnly":true' : ""}`
  const found = `"resources":[${answer.resources.join(",")}],${reported}`
  return `{"x402Version":2,${found},"pagination":${pagination}${understood(answer.intent)}${matched}${explained}}`
}

const makeHistory = Effect.gen(function* () {
  const { of } = yield* History
  const crypto = yield* Crypto
  return Effect.fnUntraced(function* (request: Request) {
    const asked = readHistoryQuery(queryOf(request))
    if ("wrong" in asked) return failure(400, "invalid_filter", asked.wrong)
    const found = yield* of(asked)
    return Option.isNone(found) ? failure(404, "not_found") : yield* fresh(crypto, request, encodeHistory(found.value))
  })
})

/** The results of a query with its filters; without a query, the filters only. */
const makeSought = Effect.map(
  Searcher,
  ({ found }) =>
    (request: Request) =>
      Effect.gen(function* () {
        const query = queryOf(request)
        if ((query.get("query") ?? "").trim() === "") {
          const { filters, issues } = readFilters(query)
          return issues.length > 0
            ? { refused: failure(400, "invalid_filter", issues) }
            : { filters, ids: undefined, isComplete: true, title: "Newest listings" }
        }
        const read = readSearch(query)
        if ("error" in read) return { refused: failure(400, read.error, read.details) }
        return { ...(yield* found(read)), title: read.query }
      })
)

const facetNames = ["type", "scheme", "asset", "maxPrice", "evidence"] as const
const feedSeconds = 300

/** Reads of many listings: their counts, and the newest of them. */
const makeSeveral = Effect.gen(function* () {
  const crypto = yield* Crypto
  const [sought, count, write] = [yield* makeSought, yield* makeFacets, yield* makeFeed]
  const facets = Effect.fnUntraced(function* (request: Request) {
    const of = yield* sought(request)
    if ("refused" in of) return of.refused
    const { counted, rows } = yield* count(of.filters, of.ids)
    const listOf = (name: string) =>
      rows
        .filter(({ facet }) => facet === name)
        .map(({ asset, count, evidenced, value }) => ({
          value,
          ...(asset === null ? {} : { asset }),
          count,
          evidenced
        }))
    const body = {
      x402Version: 2,
      counted,
      complete: of.isComplete && counted < countedMax,
      facets: Object.fromEntries(facetNames.map((name) => [name, listOf(name)]))
    }
    return yield* fresh(crypto, request, JSON.stringify(body))
  })
  const feed = Effect.fnUntraced(function* (request: Request) {
    const of = yield* sought(request)
    if ("refused" in of) return of.refused
    return yield* fresh(crypto, request, yield* write(of.title, of.filters, of.ids), feedSeconds)
  })
  return { facets, feed }
})

const makeReading = Effect.map(
  ReadReplica,
  ({ reading }) =>
    <R>(answer: (request: Request) => Effect.Effect<Response, SqlError.SqlError | CatalogOverloaded, R>) =>
    (request: Request) =>
      away(reading(answer(request)))
)

const keyNeeded = "explain: needs a key; a facilitator without keys explains only to its own machine"
const unexplained = failure(401, "unauthorized", [keyNeeded], { "www-authenticate": "Bearer" })

const preflightCost = { cpuMillis: 1, bytesOut: 0 }

/** A route that any page may read, and the answer to a browser that asks first. */
const withPreflight = (declared: Documented, handler: Handler) => [
  route(
    { method: "OPTIONS", path: declared.path, exposure: "public", callers: "public", cost: preflightCost },
    Effect.succeed(preflight)
  ),
  route(declared, handler)
]

export const addDiscoveryRoutes = Effect.gen(function* () {
  const { page: browse } = yield* Browse
  const { one: resolve } = yield* Resolve
  const { search } = yield* Searcher
  const history = yield* makeHistory
  const { facets, feed } = yield* makeSeveral
  const crypto = yield* Crypto
  const { reading } = yield* ReadReplica
  const readonly = yield* makeReading

  const resources = Effect.fnUntraced(function* (request: Request) {
    const query = queryOf(request)
    const { issues: errors, filters } = readFilters(query)
    const paging = readPaging(query, { limitDefault: 20, limitMax: browseLimitMax, clamp: true })
    const wrong = [...errors, ...paging.issues]
    if (wrong.length > 0) return failure(400, "invalid_filter", wrong)
    const cursor = query.get("cursor")
    const page = yield* browse({
      filters,
      limit: paging.limit,
      offset: paging.offset,
      cursor: cursor === null || cursor === "" ? undefined : cursor
    })
    if (Option.isNone(page))
      return failure(400, "invalid_cursor", ["cursor: not ours, ended, or made for other filters"])
    const { cursor: next, items, offset, total } = page.value
    const pagination = JSON.stringify({ limit: paging.limit, offset, total, cursor: next })
    return yield* fresh(
      crypto,
      request,
      `{"x402Version":2,"items":[${items.join(",")}],"pagination":${pagination},"partialResults":false}`
    )
  })

  const resource = Effect.fnUntraced(function* (request: Request) {
    const asked = readResolve(queryOf(request))
    if ("wrong" in asked) return failure(400, "invalid_filter", asked.wrong)
    const found = yield* resolve(asked)
    return Option.isNone(found)
      ? failure(404, "not_found")
      : yield* fresh(crypto, request, `{"x402Version":2,"resource":${found.value}}`)
  })

  const searched = Effect.fnUntraced(function* (request: Request) {
    const read = readSearch(queryOf(request))
    if ("error" in read) return failure(400, read.error, read.details)
    const answer = yield* search(read, request)
    switch (answer._tag) {
      case "Disabled":
        return failure(503, "search_disabled", ["no search plugin is enabled"])
      case "InvalidCursor":
        return failure(400, "invalid_cursor", ["cursor: not ours, ended, or made for another query"])
      case "Unauthorized":
        return unexplained
      case "Page":
        return yield* fresh(crypto, request, searchPage(read, answer))
    }
  })

  yield* addRoutes(routes.discovery, [
    ...withPreflight(routes.browse, readonly(resources)),
    ...withPreflight(routes.resolve, readonly(resource)),
    ...withPreflight(routes.history, readonly(history)),
    ...withPreflight(routes.facets, readonly(facets)),
    ...withPreflight(routes.feed, readonly(feed)),
    ...withPreflight(routes.search, (request) => away(reading(searched(request))))
  ])
})
