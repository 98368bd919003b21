// Types of the responses that the pages show. They are the client's types, generated from /openapi.json, under the
// names that the pages use.
import type * as Client from "../../../examples/client/types.ts"

export type {
  ActorShown,
  ChannelShown,
  Life,
  Moves,
  Overview,
  Pulse,
  Rotations,
  SearchStatus,
  Selling,
  Session,
  WithoutEnd
} from "../../../examples/client/types.ts"

export type Amount = Client.Overview["amounts"][number]
export type Money = Pick<Client.Overview, "total_amount" | "amounts" | "asset" | "asset_symbol" | "asset_decimals">
export type Statuses = Pick<
  Client.Overview,
  "total_transactions" | "successful_transactions" | "failed_transactions" | "unknown_transactions"
>
export type Settlement = Omit<Client.SettlementRecord, "status"> & {
  readonly status: string
  readonly origin?: string | null
  readonly key?: string | null
}
export type Leaderboard = Client.Leaderboard
export type Leader = Leaderboard["items"][number]
export type Cataloged = Client.CatalogedResource
export type Refusals = Client.Refusals
/** Refused payments of one operation, reason and key. */
export type Refusal = Refusals["items"][number]
export type Sums = Client.Pulse["now"]
export type Missed = Client.MissedSearches["items"][number]
export type Rejected = Client.RejectedDeclaration
export type Conversion = Client.SearchConversion
export type ChannelReported = Client.BatchReportedChannel
export type Delivery = Client.WebhookDelivery
export type FacilitatorStatus = Client.FacilitatorStanding

export interface Listed<Item> {
  readonly items: ReadonlyArray<Item>
  readonly pagination: Client.AnalyticsPagination
}
export type MonthTotals = Client.MonthTotals
