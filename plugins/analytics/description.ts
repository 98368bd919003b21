// The routes of analytics for /openapi.json, by the Schemas that type the reports and the patterns that read a query.
import { Schema } from "effect"
import type { Described, Parameters, RouteDescription } from "../../kernel/http/OpenApi.ts"
import { text, whole } from "../../kernel/http/wireSchema.ts"
import { Found, Pulse, Selling, SettlementsListed } from "./reports/ListWire.ts"
import { daysAllowed, forms } from "./reports/parameters.ts"
import type { Role } from "./reports/ranking.ts"
import {
  AnalyticsError,
  Breakdowns,
  CatalogedResources,
  Counterparties,
  DailyVolumes,
  Leaderboard,
  Origins,
  Overview,
  Participant,
  Refusals,
  RejectedDeclarations,
  ResourceHistory,
  ResourceUse,
  SettlementRecord,
  SettlementRecords,
  Timeseries
} from "./reports/ReportWire.ts"

/** A filter as `readQuery` takes it. */
const filter = (form: keyof typeof forms, description: string) =>
  text(description).check(Schema.isPattern(forms[form].pattern))
const exactly = (form: keyof typeof forms) => Schema.optionalKey(filter(form, "Exactly this."))

const days = {
  days: Schema.optionalKey(
    Schema.Literals(daysAllowed).annotate({
      description: "Whole UTC days back from today; 0 is all history. Any other value means 30."
    })
  )
}
const asset = {
  asset: Schema.optionalKey(
    filter("asset", "The asset of `total_amount`; without it, the one with the most settlements.")
  )
}
const paging = {
  limit: Schema.optionalKey(
    text("Clamped to `analytics.max_page_size`.").check(Schema.isPattern(forms.number.pattern))
  ),
  offset: Schema.optionalKey(whole("Items to skip."))
}
const address = Schema.Struct({ address: filter("address", "An address, or its pseudonym.") })
const resource = Schema.Struct({ id: filter("id", "The resource's internal id.") })

const get = (
  path: string,
  id: string,
  summary: string,
  body: Schema.Constraint,
  query: Readonly<Record<string, Schema.Constraint>>,
  inPath?: Parameters
): RouteDescription => ({
  method: "get",
  path: `/analytics/v1${path}`,
  id,
  summary,
  tag: "analytics",
  callers: "keyed",
  query: Schema.Struct(query),
  ...(inPath === undefined ? {} : { inPath }),
  answers: {
    200: { description: "The report.", body },
    400: { description: "`invalid_parameter`, with a sentence for each issue.", body: AnalyticsError },
    401: { description: "A bearer key is required.", body: AnalyticsError },
    ...(inPath === undefined ? {} : { 404: { description: "`not_found`.", body: AnalyticsError } }),
    503: { description: "The database is unavailable.", body: AnalyticsError }
  }
})

const participants = (role: Role): ReadonlyArray<RouteDescription> => [
  get(`/${role}s`, `${role}s`, `A leaderboard of ${role}s, by amount.`, Leaderboard, {
    ...days,
    ...asset,
    min: Schema.optionalKey(filter("units", "At least, in atomic units of `asset`, which it requires.")),
    ...paging,
    cursor: Schema.optionalKey(filter("place", "Of the page before, in place of `offset`."))
  }),
  get(`/${role}s/{address}`, role, `One ${role}'s totals.`, Participant, { ...days, ...asset }, address),
  get(
    `/${role}s/{address}/transactions`,
    `${role}Transactions`,
    "Settlements of the address as payer or recipient.",
    SettlementRecords,
    { ...days, ...paging },
    address
  ),
  get(
    `/${role}s/{address}/counterparties`,
    `${role}Counterparties`,
    role === "buyer" ? "The sellers it paid." : "The buyers that paid it.",
    Counterparties,
    { ...days, ...asset, ...paging },
    address
  )
]

const totals: ReadonlyArray<RouteDescription> = [
  get("/overview", "overview", "Totals.", Overview, { ...days, ...asset }),
  get(
    "/overview/timeseries",
    "timeseries",
    "Totals by hour or UTC day in which something happened, oldest first.",
    Timeseries,
    {
      ...days,
      bucket: Schema.optionalKey(
        Schema.Literals(["hour", "day"]).annotate({ description: "Width of a point.", default: "day" })
      ),
      ...asset
    }
  ),
  get("/overview/breakdowns", "breakdowns", "Totals by network, scheme, asset, status and reason.", Breakdowns, {
    ...days,
    ...asset
  }),
  get("/refusals", "refusals", "Refused payments by reason and key, the most frequent first, with samples.", Refusals, {
    ...days,
    operation: exactly("operation"),
    reason: exactly("reason"),
    key: Schema.optionalKey(filter("principal", "The label of a key; `anonymous`, or `none` without a listed one.")),
    payer: Schema.optionalKey(filter("address", "Samples that name this payer, and their groups alone.")),
    from: Schema.optionalKey(filter("time", "From this UTC day on.")),
    to: Schema.optionalKey(filter("time", "Before this UTC day.")),
    limit: paging.limit,
    cursor: Schema.optionalKey(filter("group", "Of the page before."))
  }),
  get(
    "/volume/daily",
    "dailyVolume",
    "Daily rollups by network, scheme, asset and status, newest first.",
    DailyVolumes,
    { ...days, ...paging }
  )
]

const transactions: ReadonlyArray<RouteDescription> = [
  get("/transactions", "transactions", "Settlements, newest first.", SettlementRecords, {
    payer: exactly("address"),
    payTo: exactly("address"),
    network: exactly("network"),
    scheme: exactly("scheme"),
    asset: exactly("asset"),
    resourceId: exactly("id"),
    status: exactly("status"),
    ...days,
    ...paging
  }),
  get(
    "/transactions/{hash}",
    "transaction",
    "The newest settlement of a transaction hash.",
    SettlementRecord,
    {},
    Schema.Struct({ hash: filter("hash", "64 hex digits.") })
  )
]

/** What the pages read: a list by cursor, search, and a range beside the one before it. */
const lists: ReadonlyArray<RouteDescription> = [
  get("/settlements", "settlementList", "Settlements by cursor; a CSV has up to 10,000.", SettlementsListed, {
    status: exactly("status"),
    reason: exactly("reason"),
    network: exactly("network"),
    scheme: exactly("scheme"),
    asset: exactly("asset"),
    key: Schema.optionalKey(filter("principal", "Label of the key that settled it.")),
    payer: exactly("address"),
    payTo: exactly("address"),
    party: Schema.optionalKey(filter("address", "As payer or as recipient.")),
    resourceId: exactly("id"),
    origin: exactly("origin"),
    min: Schema.optionalKey(filter("units", "At least, in atomic units of `asset`.")),
    max: Schema.optionalKey(filter("units", "At most, in atomic units of `asset`.")),
    from: Schema.optionalKey(filter("time", "From this time on, UTC.")),
    to: Schema.optionalKey(filter("time", "Before this time, UTC.")),
    sort: Schema.optionalKey(filter("sort", "Default newest; by amount only with `asset`.")),
    limit: paging.limit,
    cursor: Schema.optionalKey(filter("cursor", "Of the page before."))
  }),
  get("/find", "find", "What a hash, id, address, URL, name or key label leads to.", Found, {
    q: filter("words", "The words, or the beginning of a hash or address.")
  }),
  get(
    "/sellers/{address}/resources",
    "sellerResources",
    "The resources that a recipient's newest settlements were for.",
    Selling,
    {},
    address
  ),
  get("/pulse", "pulse", "Sums and series of a range, beside the range of equal length before it.", Pulse, {
    from: Schema.optionalKey(filter("time", "Start, UTC; 30 days before `to` without it.")),
    to: Schema.optionalKey(filter("time", "End, UTC; now without it.")),
    ...asset
  })
]

const cursor = (description: string) =>
  Schema.optionalKey(text(description).check(Schema.isPattern(/^[0-9]{1,19}(-[0-9a-z]{1,12})?$/u)))

const events: RouteDescription = {
  method: "get",
  path: "/analytics/v1/events",
  id: "events",
  summary: "Streams all settlements as server-sent events, from a cursor on.",
  tag: "analytics",
  callers: "keyed",
  headers: Schema.Struct({
    "Last-Event-ID": cursor("The id of the last event that was read; without one, the stream begins 15 minutes back.")
  }),
  query: Schema.Struct({ after: cursor("The same, for clients that cannot set the header.") }),
  answers: {
    200: {
      description:
        "Events named settlement.recorded, .settled, .failed, .expired and .unresolved; their data is the settlement.",
      body: Schema.String,
      mediaType: "text/event-stream"
    },
    400: { description: "`invalid_cursor`.", body: AnalyticsError },
    401: { description: "A bearer key is required.", body: AnalyticsError },
    429: { description: "The limit of open streams is reached.", body: AnalyticsError },
    503: { description: "The database is unavailable.", body: AnalyticsError }
  }
}

const resources: ReadonlyArray<RouteDescription> = [
  get("/origins", "origins", "Origins of cataloged resources, the one seen last first.", Origins, {
    ...asset,
    ...paging
  }),
  get("/resources", "resources", "Cataloged resources, the newest first.", CatalogedResources, {
    state: exactly("state"),
    grade: exactly("grade"),
    type: exactly("type"),
    origin: exactly("origin"),
    payTo: exactly("address"),
    q: Schema.optionalKey(
      filter("words", "A part of the URL, or of the tool's or seller's name; of the newest 20,000.")
    ),
    ...paging,
    cursor: Schema.optionalKey(filter("id", "Of the page before, in place of `offset`."))
  }),
  get(
    "/rejections",
    "rejections",
    "Declarations that the catalog did not take, the latest first, of what never was listed too.",
    RejectedDeclarations,
    paging
  ),
  get(
    "/resources/{id}",
    "resourceDetail",
    "A resource with the histories of its versions, options, owners and observations.",
    ResourceHistory,
    {},
    resource
  ),
  get(
    "/resources/{id}/observability",
    "resourceUse",
    "How a resource was used, for all time and in windows of hours.",
    ResourceUse,
    asset,
    resource
  ),
  get(
    "/resources/{id}/invocations",
    "resourceInvocations",
    "Settlements for a resource.",
    SettlementRecords,
    { ...days, ...paging },
    resource
  )
]

/** Public figures of a listing as a picture. */
const badges: ReadonlyArray<RouteDescription> = (
  [
    ["listing", "Whether a listing is verified"],
    ["calls", "Its settled calls of 30 days"],
    ["uptime", "Its uptime"]
  ] as const
).map(([kind, what]) => ({
  method: "get",
  path: `/badge/${kind}.svg`,
  id: `${kind}Badge`,
  summary: `${what}, as a badge to embed.`,
  tag: "analytics",
  callers: "public",
  query: Schema.Struct({
    url: text("URL of the listed resource."),
    payTo: text("Its recipient.").check(Schema.isPattern(/^[GCM][A-Z2-7]{55,68}$/u))
  }),
  answers: {
    200: { description: "The badge, cached for minutes.", body: Schema.String, mediaType: "image/svg+xml" },
    400: { description: "`invalid_parameter`.", body: AnalyticsError },
    503: { description: "The database is unavailable.", body: AnalyticsError }
  }
}))

/** An account's own reports, by the session of a browser that proved the account. */
const own: ReadonlyArray<RouteDescription> = [
  get("/account", "ownTotals", "What the session's account was paid.", Participant, {
    ...days,
    ...asset
  }),
  get("/account/transactions", "ownTransactions", "Settlements that pay the session's account.", SettlementRecords, {
    status: exactly("status"),
    resourceId: exactly("id"),
    ...days,
    ...paging
  })
].map((route) => ({
  ...route,
  callers: "public",
  answers: {
    ...route.answers,
    401: { description: "No session of an account; `POST /dashboard/account` opens one.", body: AnalyticsError },
    404: { description: "The account has received no payment here.", body: AnalyticsError }
  }
}))

export const described: Described = {
  tags: { analytics: "What operators ask about payments. A list is CSV to `Accept: text/csv`." },
  routes: [
    ...totals,
    ...transactions,
    ...lists,
    ...participants("buyer"),
    ...participants("seller"),
    ...resources,
    ...own,
    ...badges,
    events
  ]
}
