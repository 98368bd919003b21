// The database's records, for the auditor: plain rows, read by separate SQL so that an error of the repository cannot
// hide itself.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { inTransaction } from "../database/Database.ts"
import { settlementTypes } from "../settlement/store/facts.ts"

export interface SettlementClaim {
  readonly id: string
  readonly state: string
  readonly payer: string
  readonly payTo: string
  readonly asset: string
  readonly amount: string
  readonly moved: string | null
  readonly inner_hash: string
  readonly ended_by: string | null
  readonly sponsor: string
  readonly channel: string
  readonly channel_sequence: bigint
  readonly recorded_ledger: bigint
  readonly ledger: bigint | null
  readonly fee_charged_stroops: bigint | null
  readonly budget_day: string
  readonly budget_stroops: bigint
  /** The principal that the budget counts. */
  readonly principal: string
}

interface AttemptClaim {
  readonly settlement: string
  readonly kind: string
  readonly inner_hash: string
  readonly outer_hash: string
}

interface SponsorClaim {
  readonly hash: string
  readonly sponsor: string
  readonly state: string
  readonly ledger: bigint | null
  readonly fee_charged_stroops: bigint | null
}

interface ChannelClaim {
  readonly address: string
  readonly sequence: bigint | null
  readonly sequence_ledger: bigint
  readonly settlement: string | null
}

interface BudgetClaim {
  readonly day: string
  readonly principal: string
  readonly reserved: bigint
  readonly committed: bigint
}

interface FactClaim {
  readonly subject: string
  readonly types: ReadonlyArray<string>
}

export interface Claims {
  readonly settlements: ReadonlyArray<SettlementClaim>
  readonly attempts: ReadonlyArray<AttemptClaim>
  readonly sponsorTransactions: ReadonlyArray<SponsorClaim>
  readonly channels: ReadonlyArray<ChannelClaim>
  readonly budgets: ReadonlyArray<BudgetClaim>
  readonly totals: ReadonlyArray<{ readonly day: string; readonly reserved: bigint; readonly committed: bigint }>
  readonly facts: ReadonlyArray<FactClaim>
}

/** Reads all claims as of one moment. */
export const readClaims = Effect.fn("audit.readClaims")(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* inTransaction(
    Effect.gen(function* () {
      yield* sql`set transaction isolation level repeatable read, read only`
      const claims: Claims = {
        settlements:
          yield* sql<SettlementClaim>`select id::text as id, state, payer, pay_to as "payTo", asset, amount::text as
            amount, moved::text as moved, inner_hash, ended_by, sponsor,
        channel, channel_sequence, recorded_ledger, ledger, fee_charged_stroops, budget_day::text as budget_day,
          budget_stroops,
        coalesce(budget_principal, principal) as principal from kernel_settlements order by recorded_at`,
        attempts: yield* sql<AttemptClaim>`select settlement::text as settlement, kind, inner_hash, outer_hash
            from kernel_attempts`,
        sponsorTransactions: yield* sql<SponsorClaim>`select hash, sponsor, state, ledger, fee_charged_stroops
            from kernel_sponsor_transactions`,
        channels: yield* sql<ChannelClaim>`select address, sequence, sequence_ledger, settlement::text as settlement
            from kernel_channels where state = 'ready'`,
        budgets:
          yield* sql<BudgetClaim>`select day::text as day, principal, reserved_stroops as reserved, committed_stroops as
            committed from kernel_sponsor_budget`,
        totals: yield* sql<
          Claims["totals"][number]
        >`select day::text as day, sum(reserved_stroops)::int8 as reserved, sum(committed_stroops)::int8 as committed
        from kernel_sponsor_budget_total group by day`,
        facts: yield* sql<FactClaim>`select subject, array_agg(type order by position, id) as types
            from kernel_facts where starts_with(type, ${settlementTypes}) group by subject`
      }
      return claims
    })
  )
})
