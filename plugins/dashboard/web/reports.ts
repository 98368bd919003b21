// Types of the responses that the pages show. They are the client's types, generated from /openapi.json, under the
// names that the pages use.
import type * as Client from "../../../examples/client/types.ts"

export type {
  About,
  AccountChallenged,
  AccountShown,
  ActorShown,
  ChannelShown,
  Counterparty,
  FacetCounts,
  Life,
  ListingHistory,
  Moves,
  Overview,
  Participant,
  PaymentOption,
  Pulse,
  ResourceUse,
  Rotations,
  SearchStatus,
  Selling,
  Session,
  Use,
  WithoutEnd
} from "../../../examples/client/types.ts"

/** A public listing in full, as this facilitator's own pages ask for it. */
export type Listing = Client.DiscoveryResource &
  Required<Pick<Client.DiscoveryResource, "lastUpdated" | "ownership" | "status" | "verification" | "versionHash">>
/** A page of the catalog, browsed or searched. */
export type ListingsPage = Omit<Client.SearchPage, "pagination" | "resources"> & {
  readonly items?: ReadonlyArray<Listing>
  readonly resources?: ReadonlyArray<Listing>
  readonly pagination: Client.SearchPage["pagination"] & { readonly total?: number }
}
export type Sale = Client.Settlement
export type FoundItem = Client.Found["items"][number]
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
