// The declarations of the analytics routes, from the Schemas that type the reports and the forms that read a query.
import { Schema } from "effect"
import type { Parameters } from "../../kernel/http/OpenApi.ts"
import { inForm, parameter } from "../../kernel/http/readQuery.ts"
import { at, type Documented, errors as described, type RouteGroup } from "../../kernel/http/Route.ts"
import { text } from "../../kernel/http/wireSchema.ts"
import { resumed } from "../../kernel/payment/wire/description.ts"
import type { BadgeKind } from "./badge.ts"
import { Found, Pulse, Selling, SettlementsListed } from "./reports/ListWire.ts"
import { daysParameter as days, forms, pageParameters as paging } from "./reports/parameters.ts"
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
  Timeseries
} from "./reports/ReportWire.ts"
import { SettlementRecord, SettlementRecords } from "./reports/SettlementRecord.ts"

export const group: RouteGroup = {
  tag: "analytics",
  about:
    "What operators ask about payments. A caller's key reads those it settled, unless it is the only label or has " +
    "the scope `analytics:all`. A list is CSV to `Accept: text/csv`."
}

const filter = (form: keyof typeof forms, description: string) => parameter(forms[form], description)
const exactly = (form: keyof typeof forms) => Schema.optionalKey(filter(form, "Exactly this."))

const asset = {
  asset: Schema.optionalKey(
    filter("asset", "The asset of `total_amount`; without it, the one with the most settlements.")
  )
}
const address = Schema.Struct({ address: filter("address", "An address, or its pseudonym.") })
const inResource = Schema.Struct({ id: filter("id", "The resource's internal id.") })

const errors = (descriptions: Readonly<Record<number, string>>) => described(descriptions, AnalyticsError)
const noDatabase = "The database is unavailable."

const get = <Fields extends Schema.Struct.Fields>(
  path: string,
  id: string,
  summary: string,
  body: Schema.Constraint,
  query: Fields,
  inPath?: Parameters
) =>
  ({
    method: "GET",
    path: `/analytics/v1${path}`,
    id,
    summary,
    callers: "keyed",
    cost: { cpuMillis: 40, bytesOut: 524_288, statements: 8 },
    query: Schema.Struct(query),
    ...(inPath === undefined ? {} : { inPath }),
    answers: {
      200: { description: "The report.", body },
      ...errors({
        400: "`invalid_parameter`, with a sentence for each issue.",
        401: "A bearer key is required.",
        ...(inPath === undefined ? {} : { 404: "`not_found`." }),
        503: noDatabase
      })
    }
  }) satisfies Documented

const costing = <Declared extends Documented>(cost: Documented["cost"], declared: Declared) => ({ ...declared, cost })

/** An account's own report, by the session of a browser that proved the account. */
const own = <Declared extends Documented>(declared: Declared) => ({
  ...declared,
  callers: "public" as const,
  answers: {
    ...declared.answers,
    ...errors({
      401: "No account session; open one with `POST /dashboard/account`.",
      404: "The account has received no payment here."
    })
  }
})

export const participants = (role: Role) => ({
  board: get(`/${role}s`, `${role}s`, `A leaderboard of ${role}s, by amount.`, Leaderboard, {
    ...days,
    ...asset,
    min: Schema.optionalKey(filter("units", "At least, in atomic units of `asset`, which it requires.")),
    ...paging,
    cursor: Schema.optionalKey(filter("place", "Cursor of the previous page, instead of `offset`."))
  }),
  one: get(`/${role}s/:address`, role, `One ${role}'s totals.`, Participant, { ...days, ...asset }, address),
  transactions: get(
    `/${role}s/:address/transactions`,
    `${role}Transactions`,
    "Settlements with the address as payer or recipient.",
    SettlementRecords,
    { ...days, ...paging },
    address
  ),
  counterparties: get(
    `/${role}s/:address/counterparties`,
    `${role}Counterparties`,
    role === "buyer" ? "The sellers it paid." : "The buyers that paid it.",
    Counterparties,
    { ...days, ...asset, ...paging },
    address
  )
})

export const overview = get("/overview", "overview", "Totals.", Overview, { ...days, ...asset })

/** Hourly points of ninety days. */
export const timeseries = costing(
  { cpuMillis: 100, bytesOut: 2_097_152, statements: 2 },
  get(
    "/overview/timeseries",
    "timeseries",
    "Totals by hour or UTC day, without empty ones, oldest first.",
    Timeseries,
    {
      ...days,
      bucket: Schema.optionalKey(
        inForm(
          Schema.Literals(["hour", "day"]).annotate({ description: "Width of a point.", default: "day" }),
          forms.bucket
        )
      ),
      ...asset
    }
  )
)

export const breakdowns = get(
  "/overview/breakdowns",
  "breakdowns",
  "Totals by network, scheme, asset, status and reason.",
  Breakdowns,
  {
    ...days,
    ...asset
  }
)

export const refusals = get(
  "/refusals",
  "refusals",
  "Refused payments by reason and key, the most frequent first, with samples.",
  Refusals,
  {
    ...days,
    operation: exactly("operation"),
    reason: exactly("reason"),
    key: Schema.optionalKey(
      filter("principal", "The label of a key, `anonymous`, or `none` if no listed key was sent.")
    ),
    payer: Schema.optionalKey(filter("address", "Only samples with this payer, and their groups.")),
    from: Schema.optionalKey(filter("time", "From this UTC day.")),
    to: Schema.optionalKey(filter("time", "Before this UTC day.")),
    limit: paging.limit,
    cursor: Schema.optionalKey(filter("group", "Cursor of the previous page."))
  }
)

export const dailyVolume = get(
  "/volume/daily",
  "dailyVolume",
  "Daily rollups by network, scheme, asset and status, newest first.",
  DailyVolumes,
  { ...days, ...paging }
)

export const transactions = get("/transactions", "transactions", "Settlements, newest first.", SettlementRecords, {
  payer: exactly("address"),
  payTo: exactly("address"),
  network: exactly("network"),
  scheme: exactly("scheme"),
  asset: exactly("asset"),
  resourceId: exactly("id"),
  status: exactly("status"),
  ...days,
  ...paging
})

export const transaction = get(
  "/transactions/:hash",
  "transaction",
  "The newest settlement of a transaction hash.",
  SettlementRecord,
  {},
  Schema.Struct({ hash: filter("hash", "64 hex digits.") })
)

/** Data of the pages: a list by cursor, search, and a range compared with the one before it. */
export const settlements = get(
  "/settlements",
  "settlementList",
  "Settlements by cursor; a CSV has up to 10,000.",
  SettlementsListed,
  {
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
    from: Schema.optionalKey(filter("time", "From this time, UTC.")),
    to: Schema.optionalKey(filter("time", "Before this time, UTC.")),
    sort: Schema.optionalKey(filter("sort", "Default newest; sorting by amount requires `asset`.")),
    limit: paging.limit,
    cursor: Schema.optionalKey(filter("cursor", "Cursor of the previous page."))
  }
)

export const find = get("/find", "find", "Finds a hash, id, address, URL, name or key label.", Found, {
  q: filter("words", "Search words, or the beginning of a hash or address.")
})

export const sellerResources = get(
  "/sellers/:address/resources",
  "sellerResources",
  "The resources paid for by a recipient's newest settlements.",
  Selling,
  {},
  address
)

export const pulse = get(
  "/pulse",
  "pulse",
  "Sums and series of a range and of the preceding range of equal length.",
  Pulse,
  {
    from: Schema.optionalKey(filter("time", "Start, UTC; default 30 days before `to`.")),
    to: Schema.optionalKey(filter("time", "End, UTC; default now.")),
    asset: Schema.optionalKey(
      filter("asset", "Only its settlements; default all, with the amounts of the most frequent asset.")
    )
  }
)

export const events: Documented = {
  ...at("GET", "/analytics/v1/events", "events"),
  summary: "Streams the settlements that the key may read as server-sent events, starting at a cursor.",
  callers: "keyed",
  cost: { cpuMillis: 10, bytesOut: 65_536, statements: 4 },
  ...resumed,
  answers: {
    200: {
      description:
        "Events named settlement.recorded, .settled, .failed, .expired and .unresolved; their data is the settlement.",
      body: Schema.String,
      mediaType: "text/event-stream"
    },
    ...errors({
      400: "`invalid_cursor`.",
      401: "A bearer key is required.",
      429: "The maximum number of streams is open.",
      503: noDatabase
    })
  }
}

export const origins = get(
  "/origins",
  "origins",
  "Origins of cataloged resources, most recently seen first.",
  Origins,
  {
    ...asset,
    ...paging
  }
)

export const resources = get("/resources", "resources", "Cataloged resources, newest first.", CatalogedResources, {
  state: exactly("state"),
  grade: exactly("grade"),
  type: exactly("type"),
  origin: exactly("origin"),
  payTo: exactly("address"),
  q: Schema.optionalKey(
    filter("words", "Part of the URL, or of the tool's or seller's name; searches the newest 20,000.")
  ),
  ...paging,
  cursor: Schema.optionalKey(filter("id", "Cursor of the previous page, instead of `offset`."))
})

export const rejections = get(
  "/rejections",
  "rejections",
  "Declarations that the catalog rejected, latest first, including resources that were never listed.",
  RejectedDeclarations,
  paging
)

export const resource = get(
  "/resources/:id",
  "resourceDetail",
  "A resource with the histories of its versions, options, owners and observations.",
  ResourceHistory,
  {},
  inResource
)

export const resourceUse = get(
  "/resources/:id/observability",
  "resourceUse",
  "How a resource was used, for all time and in windows of hours.",
  ResourceUse,
  asset,
  inResource
)

export const resourceInvocations = get(
  "/resources/:id/invocations",
  "resourceInvocations",
  "Settlements for a resource.",
  SettlementRecords,
  { ...days, ...paging },
  inResource
)

const shownBy: Readonly<Record<BadgeKind, string>> = {
  listing: "Whether a listing is verified",
  calls: "Its settled calls of 30 days",
  uptime: "Its uptime"
}

/** Public figures of a listing as a picture. */
export const badge = (kind: BadgeKind) =>
  ({
    method: "GET",
    path: `/badge/${kind}.svg`,
    id: `${kind}Badge`,
    summary: `${shownBy[kind]}, as a badge to embed.`,
    exposure: "public",
    callers: "public",
    cost: { cpuMillis: 5, bytesOut: 4_096, statements: 4 },
    query: Schema.Struct({
      url: text("URL of the listed resource."),
      payTo: text("Its recipient.").check(Schema.isPattern(/^[GCM][A-Z2-7]{55,68}$/u))
    }),
    answers: {
      200: { description: "The badge, cached for minutes.", body: Schema.String, mediaType: "image/svg+xml" },
      ...errors({ 400: "`invalid_parameter`.", 503: noDatabase })
    }
  }) satisfies Documented

export const ownTotals = own(
  get("/account", "ownTotals", "Totals paid to the session's account.", Participant, {
    ...days,
    ...asset
  })
)

export const ownTransactions = own(
  get("/account/transactions", "ownTransactions", "Settlements that pay the session's account.", SettlementRecords, {
    status: exactly("status"),
    resourceId: exactly("id"),
    ...days,
    ...paging
  })
)
