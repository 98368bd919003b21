// Declares the catalog's routes with the Schemas of `AnswerWire.ts`.
import { Schema } from "effect"
import type { Parameters } from "../../kernel/http/OpenApi.ts"
import { answers as answersOf, at, type Documented, type RouteGroup } from "../../kernel/http/Route.ts"
import { text } from "../../kernel/http/wireSchema.ts"
import {
  AccountExplanation,
  BrowsePage,
  ChallengeAnswer,
  ChallengeRequest,
  DiscoveryError,
  FacetCounts,
  JsonFeed,
  ListingExplanation,
  ProbeRequested,
  ActionResult,
  ActionRequest,
  OneResource,
  ResourceHistory,
  SearchPage
} from "./AnswerWire.ts"
import { filterParameters, kind, pagingParameters } from "./discovery/filters.ts"
import { MissedSearches, SearchConversion, SearchGenerations, SearchStatus } from "./search/report/SearchReportWire.ts"

export const discovery: RouteGroup = { tag: "discovery", about: "Resources that can be paid for." }
export const catalog: RouteGroup = { tag: "catalog", about: "The catalog, for sellers and operators." }
export const reports: RouteGroup = {
  tag: "search",
  about: "The state of search and the payments it leads to, for operators."
}

const answers = (description: string, body: Schema.Constraint, errors: Readonly<Record<number, string>>) =>
  answersOf(description, body, errors, DiscoveryError)

const open = { exposure: "public", callers: "public" } as const
const cursor = { cursor: Schema.optionalKey(text("Cursor of the previous page; use it with the same filters.")) }

export const browse = {
  ...at("GET", "/discovery/resources", "browse"),
  summary:
    "Listed resources: first those with evidence, then merely claimed ones, newest listing first; of the " +
    "first twenty at most three of one recipient or origin.",
  ...open,
  cost: { cpuMillis: 60, bytesOut: 16_777_216, statements: 9 },
  query: Schema.Struct({
    ...filterParameters,
    ...pagingParameters("Larger values are reduced to 1000."),
    ...cursor
  }),
  answers: answers("A page.", BrowsePage, {
    400: "`invalid_filter` or `invalid_cursor`.",
    429: "Too many reads of one caller; see Retry-After.",
    503: "The database is unavailable."
  })
} satisfies Documented

export const resolve = {
  ...at("GET", "/discovery/resource", "resolve"),
  summary: "One current resource; a concrete URL of a dynamic route leads to the route's entry.",
  ...open,
  cost: { cpuMillis: 10, bytesOut: 196_608, statements: 4 },
  query: Schema.Struct({
    type: kind,
    url: text("URL of the resource."),
    toolName: Schema.optionalKey(text("Required with type=mcp."))
  }),
  answers: answers("The resource.", OneResource, {
    400: "`invalid_filter`.",
    404: "`not_found`.",
    429: "Too many reads of one caller; see Retry-After.",
    503: "The database is unavailable."
  })
} satisfies Documented

export const history = {
  ...at("GET", "/discovery/history", "history"),
  summary: "The versions and price history of a resource, newest first, 200 of each at most.",
  ...open,
  cost: { cpuMillis: 10, bytesOut: 524_288, statements: 8 },
  query: Schema.Struct({
    resource: text("URL of the resource."),
    type: Schema.optionalKey(kind),
    toolName: Schema.optionalKey(text("Name of an MCP tool."))
  }),
  answers: answers("Its history.", ResourceHistory, {
    400: "`invalid_filter`.",
    404: "`not_found`.",
    429: "Too many reads of one caller; see Retry-After.",
    503: "The database is unavailable."
  })
} satisfies Documented

const several = {
  query: Schema.optionalKey(text("A search query; absent: all that pass the filters.").check(Schema.isMaxLength(512))),
  ...filterParameters
}
const severalErrors = {
  400: "`query_too_long` or `invalid_filter`.",
  429: "Too many searches of one caller; see Retry-After.",
  503: "The database is unavailable."
}

export const facets = {
  ...at("GET", "/discovery/facets", "facets"),
  summary:
    "Counts of the results of a query, or of all that pass the filters, by kind, scheme, asset, price and evidence.",
  ...open,
  cost: { cpuMillis: 60, bytesOut: 32_768, statements: 17 },
  query: Schema.Struct(several),
  answers: answers("The counts.", FacetCounts, severalErrors)
} satisfies Documented

export const feed = {
  ...at("GET", "/discovery/feed", "feed"),
  summary: "A query as a JSON Feed: its 30 results with the newest evidence; claims without evidence are left out.",
  ...open,
  cost: { cpuMillis: 60, bytesOut: 524_288, statements: 17 },
  query: Schema.Struct(several),
  answers: answers("The feed, version 1.1; caches may keep it for five minutes.", JsonFeed, severalErrors)
} satisfies Documented

export const search = {
  ...at("GET", "/discovery/search", "search"),
  summary: "Ranked search, by the search plugins that are enabled.",
  ...open,
  cost: { cpuMillis: 60, bytesOut: 8_912_896, statements: 16, rowsWritten: 1 },
  query: Schema.Struct({
    query: text("The search query.").check(Schema.isMinLength(1), Schema.isMaxLength(512)),
    ...filterParameters,
    mode: Schema.optionalKey(
      Schema.Literals(["lexical", "semantic", "hybrid"]).annotate({
        description: "A mode whose plugin is off falls back to the branches that are on.",
        default: "hybrid"
      })
    ),
    matches: Schema.optionalKey(
      Schema.Literal("1").annotate({ description: "Show which words match, and corrected words of the query." })
    ),
    ...pagingParameters("1 to 200."),
    ...cursor
  }),
  answers: answers("A page.", SearchPage, {
    400: "`query_required`, `query_too_long`, `invalid_filter` or `invalid_cursor`.",
    429: "Too many searches of one caller; see Retry-After.",
    503: "`search_disabled`, or the database is unavailable."
  })
} satisfies Documented

export const explain = {
  ...at("GET", "/catalog/v1/observations", "explainListing"),
  summary:
    "Why a URL is or is not listed: the state of its listings, the decisions, and its observations, for a key those " +
    "of recipients that signed for it.",
  callers: "keyed",
  cost: { cpuMillis: 10, bytesOut: 262_144, statements: 8 },
  query: Schema.Struct({ url: text("URL of the resource."), ...pagingParameters("At most 200.") }),
  answers: answers("Listings and observations of the URL.", ListingExplanation, {
    400: "`invalid_filter`.",
    401: "A bearer key is required.",
    503: "The database is unavailable."
  })
} satisfies Documented

export const explainOwn = {
  ...at("GET", "/catalog/v1/account", "explainOwnListings"),
  summary: "The listings that pay the session's account, and why each declaration was or was not listed.",
  callers: "public",
  cost: { cpuMillis: 10, bytesOut: 262_144, statements: 8 },
  query: Schema.Struct(pagingParameters("At most 200.")),
  answers: answers("Listings and observations of the account.", AccountExplanation, {
    400: "`invalid_filter`.",
    401: "No account session; open one with `POST /dashboard/account`.",
    503: "The database is unavailable."
  })
} satisfies Documented

export const move = {
  ...at("POST", "/catalog/v1/moves", "moveListing"),
  summary: "An operator removes, quarantines or restores a listing.",
  callers: "operators",
  cost: { cpuMillis: 10, bytesOut: 4_096, statements: 8, rowsWritten: 16, rpcCalls: 1 },
  body: ActionRequest,
  answers: answers("Moved.", ActionResult, {
    400: "`invalid_request`.",
    401: "An operator's bearer key is required.",
    403: "No operator key is configured.",
    404: "`not_found`.",
    503: "The database is unavailable."
  })
} satisfies Documented

export const challenge = {
  ...at("POST", "/catalog/v1/challenge", "showRecipient"),
  summary: "Binds a recipient to the caller's key, by a challenge that its account signs.",
  callers: "keyed",
  cost: { cpuMillis: 10, bytesOut: 4_096, statements: 4, rowsWritten: 2, rpcCalls: 2 },
  body: ChallengeRequest,
  answers: answers("A challenge, or the binding.", ChallengeAnswer, {
    400: "`invalid_request`.",
    401: "A bearer key is required.",
    403: "`forbidden`: no API keys or host are configured, or the challenge was not completed.",
    503: "The database is unavailable."
  })
} satisfies Documented

export const look = {
  ...at("POST", "/catalog/v1/look", "lookAtOrigin"),
  summary:
    "Probes an origin: lists the resources that it names as unverified, carries out its signed moves, and " +
    "probes its listings again.",
  callers: "keyed",
  cost: { cpuMillis: 20, bytesOut: 65_536, statements: 16, rowsWritten: 16 },
  query: Schema.Struct({ origin: text("Such as https://api.example.com.") }),
  answers: answers("What was found.", ProbeRequested, {
    400: "`invalid_request`.",
    401: "A bearer key is required.",
    429: "`rate_limited`: once a minute for an origin, ten times an hour for a caller.",
    503: "The database is unavailable."
  })
} satisfies Documented

/** Hours that a report may reach back. */
export const hoursMax = 720
const hours = {
  hours: Schema.optionalKey(
    Schema.Int.annotate({ description: "Period of the report, up to now.", default: 24 }).check(
      Schema.isBetween({ minimum: 1, maximum: hoursMax })
    )
  )
}
const reportPaging = pagingParameters("Default 50; larger values than 200 are reduced to 200.")

const report = <Query extends Parameters>(
  name: string,
  id: string,
  summary: string,
  body: Schema.Constraint,
  {
    callers,
    query,
    refused = {}
  }: {
    readonly callers: Documented["callers"]
    readonly query: Query
    readonly refused?: Readonly<Record<number, string>>
  }
) =>
  ({
    method: "GET",
    path: `/analytics/v1/search/${name}`,
    id,
    summary,
    callers,
    cost: { cpuMillis: 100, bytesOut: 131_072, statements: 8 },
    query,
    answers: answers("The report.", body, {
      ...(Object.keys(query.fields).length === 0
        ? {}
        : { 400: "`invalid_parameter`, with one sentence for each invalid parameter." }),
      401: callers === "operators" ? "An operator's bearer key is required." : "A bearer key is required.",
      ...refused,
      503: "The database is unavailable."
    })
  }) satisfies Documented

export const status = report(
  "status",
  "searchStatus",
  "The state of each branch of search and its index.",
  SearchStatus,
  { callers: "keyed", query: Schema.Struct({}) }
)
export const generations = report(
  "generations",
  "searchGenerations",
  "Generations of embeddings, newest first.",
  SearchGenerations,
  { callers: "keyed", query: Schema.Struct(reportPaging) }
)
export const conversion = report(
  "conversion",
  "searchConversion",
  "Which searches were followed by payments for their results; a correlation, not a cause.",
  SearchConversion,
  {
    callers: "keyed",
    query: Schema.Struct(hours),
    refused: { 403: "The key reads only its own payments; this needs `analytics:all`." }
  }
)
export const missed = report(
  "missed",
  "missedSearches",
  "Queries without a result in the UTC days that the hours reach into, the most asked first.",
  MissedSearches,
  { callers: "operators", query: Schema.Struct({ ...hours, ...reportPaging }) }
)
