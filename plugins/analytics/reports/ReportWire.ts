// The bodies of analytics as Schemas that type the reports and describe them in /openapi.json (S133–S167, S178–S180,
// S308). Counts, amounts and fees are whole numbers as decimal text, times ISO 8601 UTC.
import { Schema } from "effect"
import { countedFields, cursorFields, text, time } from "../../../kernel/http/wireSchema.ts"

export const count = Schema.String.annotate({
  description: "A whole number as decimal text; amounts in atomic units, fees in stroops."
}).check(Schema.isPattern(/^(0|[1-9][0-9]*)$/u))
export const moment = time("UTC.")
const activity = Schema.NullOr(time("UTC.")).annotate({ description: "Null when there was none." })
export const maybe = Schema.NullOr(Schema.String)
const words = Schema.Array(Schema.String)
const share = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))
export const status = Schema.Literals(["success", "failed", "unknown"])
export const address = text("An address or its pseudonym.")

export const assetNames = { asset: maybe, asset_symbol: maybe, asset_decimals: Schema.NullOr(Schema.Int) }
const amounts = Schema.Array(Schema.Struct({ ...assetNames, amount: count, transactions: count }))
const money = { total_amount: count, ...assetNames, amounts }
const statuses = {
  total_transactions: count,
  successful_transactions: count,
  failed_transactions: count,
  unknown_transactions: count
}
const organic = Schema.Struct({ successful_transactions: count, ...money }).annotate({
  description: "Excludes payments to a recipient that had paid the payer before."
})

export const AnalyticsError = Schema.Struct({
  error: text("The error code."),
  details: Schema.optionalKey(Schema.Array(text("One issue per item.")))
}).annotate({ identifier: "AnalyticsError" })

const Pagination = Schema.Struct({ limit: Schema.Int, offset: Schema.Int, total: Schema.Int }).annotate({
  identifier: "AnalyticsPagination"
})
export const pageOf = <S extends Schema.Constraint>(item: S) =>
  Schema.Struct({ items: Schema.Array(item), pagination: Pagination })
/** A page of a list that is read by offset or by cursor. */
const cursorPageOf = <S extends Schema.Constraint>(item: S) =>
  Schema.Struct({
    items: Schema.Array(item),
    pagination: Schema.Struct({ ...Pagination.fields, cursor: cursorFields.cursor, more: countedFields.more })
  })
const windowed = <S extends Schema.Constraint>(item: S) => Schema.Struct({ days: Schema.Int, ...pageOf(item).fields })

export const Overview = Schema.Struct({
  days: Schema.Int,
  since: activity,
  ...statuses,
  total_verifications: count,
  valid_verifications: count,
  ...money,
  total_sponsored_fee_stroops: count,
  unique_buyers: count,
  unique_sellers: count,
  unique_facilitators: count,
  unique_networks: count,
  unique_resources: count,
  cataloged_resources: count,
  active_resources: count,
  stale_resources: count,
  quarantined_resources: count,
  origins: count,
  first_activity: activity,
  latest_activity: activity,
  organic
}).annotate({ identifier: "Overview" })

export const Timeseries = Schema.Struct({
  bucket: Schema.Literals(["hour", "day"]),
  days: Schema.Int,
  ...assetNames,
  series: Schema.Array(
    Schema.Struct({
      bucket_start: moment,
      ...statuses,
      ...money,
      unique_buyers: count,
      unique_sellers: count,
      organic
    })
  )
}).annotate({ identifier: "Timeseries" })

const Breakdown = Schema.Struct({
  key: Schema.String,
  ...statuses,
  ...money,
  sponsored_fee_stroops: count,
  organic
}).annotate({ identifier: "Breakdown" })
const broken = Schema.Array(Breakdown)

export const Breakdowns = Schema.Struct({
  days: Schema.Int,
  networks: broken,
  schemes: broken,
  assets: broken,
  statuses: broken,
  reasons: Schema.Array(
    Schema.Struct({ key: Schema.String, ...statuses, sponsored_fee_stroops: count }).annotate({
      description: "Failed and pending settlements, by reason."
    })
  )
}).annotate({ identifier: "Breakdowns" })

const DailyVolume = Schema.Struct({
  day: Schema.String.annotate({ format: "date" }),
  network: Schema.String,
  scheme: Schema.String,
  ...assetNames,
  status,
  total_transactions: count,
  total_amount: count,
  sponsored_fee_stroops: count,
  organic: Schema.Struct({ successful_transactions: count, total_amount: count })
}).annotate({ identifier: "DailyVolume" })
export const DailyVolumes = windowed(DailyVolume)

export const SettlementUpdates = Schema.Struct({
  id: Schema.String,
  at: time("When it happened, UTC."),
  state: text("State when the event is sent: `prepared`, `submitted`, `settled`, `failed`, `expired`, `unresolved`."),
  network: Schema.String,
  scheme: Schema.String,
  ...assetNames,
  payer: address,
  pay_to: address,
  amount: count.annotate({ description: "Amount transferred; the intended amount while that is unknown." }),
  transaction_hash: Schema.String,
  recorded_at: moment,
  resolved_at: activity,
  ledger: Schema.NullOr(Schema.Int),
  fee_stroops: maybe,
  error_reason: maybe
}).annotate({ identifier: "SettlementNews" })

export const Leaderboard = Schema.Struct({
  days: Schema.Int,
  ...cursorPageOf(
    Schema.Struct({
      address,
      tx_count: count,
      successful_transactions: count,
      ...money,
      unique_counterparties: count,
      networks: words,
      facilitators: words,
      latest_activity: moment
    })
  ).fields,
  concentration: Schema.Struct({
    total_transactions: count,
    ...money,
    top1_share: share,
    top5_share: share,
    top10_share: share
  })
}).annotate({ identifier: "Leaderboard" })

export const Participant = Schema.Struct({
  address,
  days: Schema.Int,
  ...statuses,
  successful_amount: count,
  ...money,
  unique_counterparties: count,
  schemes: words,
  networks: words,
  facilitators: words,
  first_activity: activity,
  latest_activity: activity
}).annotate({ identifier: "Participant" })

const Counterparty = Schema.Struct({
  address,
  tx_count: count,
  successful_transactions: count,
  ...money,
  first_activity: moment,
  latest_activity: moment
}).annotate({ identifier: "Counterparty" })
export const Counterparties = windowed(Counterparty)

const Origin = Schema.Struct({
  origin: Schema.String,
  resource_count: count,
  active_count: count,
  last_seen: moment,
  settlement_count: count,
  successful_settlement_count: count,
  successful_amount: count,
  ...assetNames,
  amounts
}).annotate({ identifier: "Origin" })
export const Origins = pageOf(Origin)

export const CatalogedResource = Schema.Struct({
  id: Schema.String,
  type: Schema.Literals(["http", "mcp"]),
  resource: Schema.String,
  tool_name: maybe,
  origin: maybe,
  status: Schema.Literals(["active", "stale", "quarantined", "removed"]),
  status_reason: maybe,
  ownership: Schema.Literals(["provisional", "proven"]),
  grade: Schema.Literals(["claimed", "declared", "origin"]),
  pay_tos: words,
  version: Schema.Int,
  version_hash: Schema.String,
  verification: Schema.Literals(["unverified", "payment_observed"]),
  provenance: Schema.Literal("seller_declared"),
  service_name: maybe,
  tags: words,
  created_at: moment,
  updated_at: moment,
  last_seen_at: moment,
  last_seen_paid_at: activity
}).annotate({ identifier: "CatalogedResource" })
export const CatalogedResources = cursorPageOf(CatalogedResource)

const RejectedDeclaration = Schema.Struct({
  url: Schema.String,
  type: maybe,
  tool_name: maybe,
  pay_to: Schema.String,
  stage: Schema.Literals(["verified", "settled"]),
  reason: maybe,
  detail: maybe,
  resource_id: maybe,
  times: count,
  first_at: moment,
  last_at: moment
}).annotate({ identifier: "RejectedDeclaration" })
export const RejectedDeclarations = pageOf(RejectedDeclaration)

const RefusalSample = Schema.Struct({
  at: moment,
  message: text("The error message that was answered."),
  payer: maybe,
  pay_to: maybe,
  network: maybe,
  scheme: maybe,
  asset: maybe,
  amount: maybe.annotate({ description: "As in the terms." }),
  resource_url: maybe,
  transaction_hash: maybe
}).annotate({ identifier: "RefusalSample", description: "One refused payment: never a signature or a key." })

export const Refusals = Schema.Struct({
  days: Schema.Int,
  pagination: Schema.Struct(cursorFields),
  items: Schema.Array(
    Schema.Struct({
      operation: text("`verify` or `settle`."),
      reason: Schema.String,
      principal: text("`key:` and a label, `anonymous`, or `none` if no listed key was sent."),
      refused: count,
      first_at: moment,
      last_at: moment,
      samples: Schema.Array(RefusalSample).annotate({ description: "The newest samples, at most five." })
    })
  )
}).annotate({ identifier: "Refusals" })

const history = Schema.Array(Schema.Unknown).annotate({ description: "Newest first." })
export const ResourceHistory = Schema.Struct({
  ...CatalogedResource.fields,
  observed_count: count,
  settled_count: count,
  unique_payers: count,
  declaration: Schema.Unknown,
  versions: history,
  payment_options: history,
  decisions: history,
  claims: history,
  observations: history
}).annotate({ identifier: "ResourceHistory" })

const Use = Schema.Struct({
  calls: count,
  successes: count,
  unique_buyers: count,
  ...money,
  latest_activity: activity
}).annotate({ identifier: "Use" })

export const ResourceUse = Schema.Struct({
  resource_id: Schema.String,
  all_time: Use,
  windows: Schema.Record(Schema.String, Use).annotate({ description: "Keyed by the number of hours, such as `24h`." })
}).annotate({ identifier: "ResourceUse" })
