// Types of analytics' responses, as far as the pages show them.
import type { Denomination } from "./format.ts"

export interface Amount extends Denomination {
  readonly amount: string
  readonly transactions: string
}

export interface Money extends Denomination {
  readonly total_amount: string
  readonly amounts: ReadonlyArray<Amount>
}

export interface Statuses {
  readonly total_transactions: string
  readonly successful_transactions: string
  readonly failed_transactions: string
  readonly unknown_transactions: string
}

export interface Organic {
  readonly organic: Money & { readonly successful_transactions: string }
}

export interface Overview extends Money, Statuses, Organic {
  readonly total_verifications: string
  readonly valid_verifications: string
  readonly total_sponsored_fee_stroops: string
  readonly unique_buyers: string
  readonly unique_sellers: string
  readonly unique_resources: string
  readonly cataloged_resources: string
  readonly active_resources: string
  readonly stale_resources: string
  readonly quarantined_resources: string
  readonly latest_activity: string | null
}

export interface Point extends Money, Statuses {
  readonly bucket_start: string
  readonly unique_buyers: string
  readonly unique_sellers: string
}

export interface Timeseries extends Denomination {
  readonly bucket: "hour" | "day"
  readonly days: number
  readonly series: ReadonlyArray<Point>
}

export interface Breakdown extends Money, Statuses, Organic {
  readonly key: string
  readonly sponsored_fee_stroops: string
}

export interface Reason extends Statuses {
  readonly key: string
  readonly sponsored_fee_stroops: string
}

export interface Breakdowns {
  readonly networks: ReadonlyArray<Breakdown>
  readonly schemes: ReadonlyArray<Breakdown>
  readonly assets: ReadonlyArray<Breakdown>
  readonly statuses: ReadonlyArray<Breakdown>
  readonly reasons: ReadonlyArray<Reason>
}

export interface Settlement extends Denomination {
  readonly id: string
  readonly occurred_at: string
  readonly network: string
  readonly scheme: string
  readonly payer: string
  readonly pay_to: string
  readonly max_amount: string
  readonly amount: string | null
  readonly fee_stroops: string
  readonly transaction_hash: string
  readonly status: string
  readonly facilitator_id: string
  readonly resource_id: string | null
  readonly resource_url: string | null
  readonly error_reason: string | null
  readonly organic: boolean
  readonly origin?: string | null
  readonly key?: string | null
}

export interface Listed<Item> {
  readonly items: ReadonlyArray<Item>
  readonly pagination: { readonly limit: number; readonly offset: number; readonly total: number }
}

export interface Leader extends Money {
  readonly address: string
  readonly tx_count: string
  readonly successful_transactions: string
  readonly unique_counterparties: string
  readonly latest_activity: string
}

export interface Leaderboard extends Listed<Leader> {
  readonly concentration: Money & {
    readonly total_transactions: string
    readonly top1_share: number
    readonly top5_share: number
    readonly top10_share: number
  }
}

export interface Cataloged {
  readonly id: string
  readonly type: string
  readonly resource: string
  readonly tool_name: string | null
  readonly origin: string | null
  readonly status: string
  readonly status_reason: string | null
  readonly ownership: string
  readonly verification: string
  readonly version: number
  readonly service_name: string | null
  readonly updated_at: string
  readonly created_at?: string
  readonly pay_tos?: ReadonlyArray<string>
  readonly last_seen_paid_at: string | null
}

/** Refused payments of one operation, reason and key. */
export interface Refusal {
  readonly operation: string
  readonly reason: string
  readonly principal: string
  readonly refused: string
  readonly last_at: string
  readonly samples: ReadonlyArray<{
    readonly at: string
    readonly message: string
    readonly payer: string | null
    readonly resource_url: string | null
  }>
}

export interface Refusals {
  readonly items: ReadonlyArray<Refusal>
}

export interface Sums {
  readonly settled: number
  readonly failed: number
  readonly pending: number
  readonly amount: string
}

export interface Share extends Denomination {
  readonly kind: "scheme" | "asset" | "network"
  readonly key: string
  readonly settlements: number
  readonly settled: number
  readonly amount: string
}

export interface Pulse extends Denomination {
  readonly from: string
  readonly to: string
  readonly bucket: "hour" | "day"
  readonly now: Sums
  readonly before: Sums | null
  readonly series: ReadonlyArray<Sums & { readonly at: string; readonly recorded: boolean }>
  readonly shares: ReadonlyArray<Share>
  readonly reasons: ReadonlyArray<{ readonly reason: string; readonly failed: number; readonly pending: number }>
}
