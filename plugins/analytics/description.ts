// The routes of analytics for /openapi.json, with the shapes of what they answer (S133–S167, S178–S180, S308).
import type { Described, JsonSchema } from "../../kernel/http/OpenApi.ts"

const string: JsonSchema = { type: "string" }
const text = (description: string): JsonSchema => ({ type: "string", description })
const count: JsonSchema = {
  type: "string",
  pattern: "^(0|[1-9][0-9]*)$",
  description: "A whole number as decimal text; amounts in atomic units, fees in stroops."
}
const time: JsonSchema = { type: ["string", "null"], format: "date-time" }
const list = (items: JsonSchema): JsonSchema => ({ type: "array", items })
const ref = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })
const object = (properties: Readonly<Record<string, JsonSchema>>): JsonSchema => ({
  type: "object",
  properties,
  required: Object.keys(properties)
})
const counts = (...names: ReadonlyArray<string>) => Object.fromEntries(names.map((name) => [name, count]))

const query = (name: string, description: string, schema: JsonSchema) => ({
  name,
  in: "query",
  required: false,
  description,
  schema
})
const inPath = (name: string, description: string) => ({
  name,
  in: "path",
  required: true,
  description,
  schema: string
})
const days = query("days", "Whole UTC days back from today; 0 is all history. Any other value is taken for 30.", {
  enum: [0, 1, 7, 14, 30]
})
const asset = query("asset", "The asset of `total_amount`; without it, the one with the most settlements.", string)
const paging = [
  query("limit", "Clamped to `analytics.max_page_size`.", { type: "integer", minimum: 1 }),
  query("offset", "Items to skip.", { type: "integer", minimum: 0 })
]
const address = inPath("address", "An address, or its pseudonym.")
const resource = inPath("id", "The resource's internal id.")

const get = (
  operationId: string,
  summary: string,
  parameters: ReadonlyArray<unknown>,
  schema: JsonSchema,
  found = false
) => ({
  get: {
    operationId,
    summary,
    security: [{}, { bearer: [] }],
    parameters,
    responses: {
      "200": { description: "The report.", content: { "application/json": { schema } } },
      ...Object.fromEntries(
        [
          ["400", "`invalid_parameter`, with a sentence for each fault."],
          ["401", "A listed bearer key is wanted."],
          ...(found ? [["404", "`not_found`."]] : []),
          ["503", "The database is away."]
        ].map(([status, description]) => [
          status,
          { description, content: { "application/json": { schema: ref("AnalyticsError") } } }
        ])
      )
    }
  }
})
const page = (items: JsonSchema) => object({ items: list(items), pagination: ref("AnalyticsPagination") })

const assetNames = {
  asset: { type: ["string", "null"] },
  asset_symbol: { type: ["string", "null"] },
  asset_decimals: { type: ["integer", "null"] }
}
const money = {
  ...counts("total_amount"),
  ...assetNames,
  amounts: list(object({ ...assetNames, ...counts("amount", "transactions") }))
}
const statuses = counts("total_transactions", "successful_transactions", "failed_transactions", "unknown_transactions")
const organic = {
  organic: {
    ...object({ ...counts("successful_transactions"), ...money }),
    description: "Without payments to a recipient that had paid the payer before."
  }
}
const use = object({ ...counts("calls", "successes", "unique_buyers"), ...money, latest_activity: time })

const participants = (role: "buyer" | "seller") => ({
  [`/analytics/v1/${role}s`]: get(
    `${role}s`,
    `A leaderboard of ${role}s, by amount.`,
    [days, asset, ...paging],
    ref("Leaderboard")
  ),
  [`/analytics/v1/${role}s/{address}`]: get(
    role,
    `One ${role}'s totals.`,
    [address, days, asset],
    ref("Participant"),
    true
  ),
  [`/analytics/v1/${role}s/{address}/transactions`]: get(
    `${role}Transactions`,
    "Settlements of the address as payer or recipient.",
    [address, days, ...paging],
    page(ref("SettlementRecord")),
    true
  ),
  [`/analytics/v1/${role}s/{address}/counterparties`]: get(
    `${role}Counterparties`,
    role === "buyer" ? "The sellers it paid." : "The buyers that paid it.",
    [address, days, asset, ...paging],
    page(ref("Counterparty")),
    true
  )
})

export const described: Described = {
  paths: {
    "/analytics/v1/overview": get("overview", "Totals.", [days, asset], ref("Overview")),
    "/analytics/v1/overview/timeseries": get(
      "timeseries",
      "Totals by hour or UTC day in which something happened, oldest first.",
      [days, query("bucket", "Width of a point.", { enum: ["hour", "day"], default: "day" }), asset],
      ref("Timeseries")
    ),
    "/analytics/v1/overview/breakdowns": get(
      "breakdowns",
      "Totals by network, scheme, asset and status.",
      [days, asset],
      ref("Breakdowns")
    ),
    "/analytics/v1/volume/daily": get(
      "dailyVolume",
      "Daily rollups by network, scheme, asset and status, newest first.",
      [days, ...paging],
      page(ref("DailyVolume"))
    ),
    "/analytics/v1/transactions": get(
      "transactions",
      "Settlements, newest first.",
      [
        ...["payer", "payTo", "network", "scheme", "asset", "resourceId"].map((name) =>
          query(name, "Exactly this.", string)
        ),
        query("status", "Exactly this.", { enum: ["success", "failed", "unknown"] }),
        days,
        ...paging
      ],
      page(ref("SettlementRecord"))
    ),
    "/analytics/v1/transactions/{hash}": get(
      "transaction",
      "The newest settlement of a transaction hash.",
      [inPath("hash", "64 hex digits.")],
      ref("SettlementRecord"),
      true
    ),
    ...participants("buyer"),
    ...participants("seller"),
    "/analytics/v1/origins": get(
      "origins",
      "Origins of cataloged resources, the one seen last first.",
      [asset, ...paging],
      page(ref("Origin"))
    ),
    "/analytics/v1/resources": get(
      "resources",
      "Cataloged resources, the newest first.",
      paging,
      page(ref("CatalogedResource"))
    ),
    "/analytics/v1/resources/{id}": get(
      "resourceDetail",
      "A resource with the histories of its versions, options, owners and observations.",
      [resource],
      ref("CatalogedResource"),
      true
    ),
    "/analytics/v1/resources/{id}/observability": get(
      "resourceUse",
      "How a resource was used, for all time and in windows of hours.",
      [resource, asset],
      ref("ResourceUse"),
      true
    ),
    "/analytics/v1/resources/{id}/invocations": get(
      "resourceInvocations",
      "Settlements for a resource.",
      [resource, days, ...paging],
      page(ref("SettlementRecord")),
      true
    )
  },
  schemas: {
    AnalyticsError: {
      type: "object",
      properties: { error: text("A word."), details: list(text("A fault each.")) },
      required: ["error"]
    },
    AnalyticsPagination: object({
      limit: { type: "integer" },
      offset: { type: "integer" },
      total: { type: "integer" }
    }),
    Overview: object({
      days: { type: "integer" },
      since: time,
      ...statuses,
      ...counts("total_verifications", "valid_verifications"),
      ...money,
      ...counts(
        "total_sponsored_fee_stroops",
        "unique_buyers",
        "unique_sellers",
        "unique_facilitators",
        "unique_networks",
        "unique_resources"
      ),
      ...counts("cataloged_resources", "active_resources", "stale_resources", "quarantined_resources", "origins"),
      first_activity: time,
      latest_activity: time,
      ...organic
    }),
    Timeseries: object({
      bucket: { enum: ["hour", "day"] },
      days: { type: "integer" },
      ...assetNames,
      series: list(
        object({
          bucket_start: { type: "string", format: "date-time" },
          ...statuses,
          ...money,
          ...counts("unique_buyers", "unique_sellers"),
          ...organic
        })
      )
    }),
    Breakdowns: object({
      days: { type: "integer" },
      ...Object.fromEntries(["networks", "schemes", "assets", "statuses"].map((name) => [name, list(ref("Breakdown"))]))
    }),
    Breakdown: object({ key: string, ...statuses, ...money, ...counts("sponsored_fee_stroops"), ...organic }),
    DailyVolume: object({
      day: { type: "string", format: "date" },
      network: string,
      scheme: string,
      ...assetNames,
      status: { enum: ["success", "failed", "unknown"] },
      ...counts("total_transactions", "total_amount", "sponsored_fee_stroops"),
      organic: object(counts("successful_transactions", "total_amount"))
    }),
    SettlementRecord: object({
      id: string,
      occurred_at: { type: "string", format: "date-time" },
      network: string,
      scheme: string,
      ...assetNames,
      payer: text("An address or its pseudonym."),
      pay_to: text("An address or its pseudonym."),
      max_amount: count,
      amount: { type: ["string", "null"], description: "What moved; 0 when it failed, null while that is not known." },
      fee_stroops: count,
      transaction_hash: string,
      status: { enum: ["success", "failed", "unknown"] },
      facilitator_id: text("The replica that recorded it."),
      resource_id: { type: ["string", "null"] },
      resource_url: { type: ["string", "null"] },
      error_reason: { type: ["string", "null"] },
      organic: { type: "boolean" }
    }),
    Leaderboard: object({
      days: { type: "integer" },
      items: list(
        object({
          address: string,
          ...counts("tx_count", "successful_transactions"),
          ...money,
          ...counts("unique_counterparties"),
          networks: list(string),
          facilitators: list(string),
          latest_activity: time
        })
      ),
      pagination: ref("AnalyticsPagination"),
      concentration: object({
        ...counts("total_transactions"),
        ...money,
        ...Object.fromEntries(
          ["top1_share", "top5_share", "top10_share"].map((name) => [name, { type: "number", minimum: 0, maximum: 1 }])
        )
      })
    }),
    Participant: object({
      address: string,
      days: { type: "integer" },
      ...statuses,
      ...counts("successful_amount"),
      ...money,
      ...counts("unique_counterparties"),
      schemes: list(string),
      networks: list(string),
      facilitators: list(string),
      first_activity: time,
      latest_activity: time
    }),
    Counterparty: object({
      address: string,
      ...counts("tx_count", "successful_transactions"),
      ...money,
      first_activity: time,
      latest_activity: time
    }),
    Origin: object({
      origin: string,
      ...counts(
        "resource_count",
        "active_count",
        "settlement_count",
        "successful_settlement_count",
        "successful_amount"
      ),
      ...assetNames,
      amounts: money.amounts,
      last_seen: time
    }),
    CatalogedResource: object({
      id: string,
      type: { enum: ["http", "mcp"] },
      resource: string,
      status: { enum: ["active", "stale", "quarantined", "removed"] },
      ownership: { enum: ["provisional", "proven"] },
      version: { type: "integer" },
      verification: { enum: ["unverified", "payment_observed"] },
      provenance: { const: "seller_declared" },
      tags: list(string),
      created_at: time,
      last_seen_at: time,
      last_seen_paid_at: time
    }),
    ResourceUse: object({
      resource_id: string,
      all_time: use,
      windows: object(Object.fromEntries([1, 6, 24, 72, 168, 360, 720].map((hours) => [`${hours}h`, use])))
    })
  }
}
