// Conditions of a deposit before the sponsor pays for it: at least the seller's announced minimum, worth a multiple of
// its fee and its share in a claim, and within the caller's daily budget for deposits. Without them opening channels is
// free for a buyer, and each costs the sponsor a new entry. Deposits verified at the same moment may pass the budget
// together.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { BudgetTime } from "../../kernel/budget/Budget.ts"
import { Network } from "../../kernel/config/Network.ts"
import { LedgerUnavailable } from "../../kernel/ledger/LedgerUnavailable.ts"
import { decodeAmount } from "./batchCodec.ts"
import { batchKeys } from "./Config.ts"
import type { CheckError } from "./refusals.ts"

/** Stroops that opening a channel costs, and a channel's share of a claim of forty (README.md, "Costs"). */
const openingStroops = 112_197n
const claimShareStroops = 6_203n

/** The least deposit, atomic units of any token, by the operator's setting; announced in `/supported`. */
const depositMinOf = (keys: {
  readonly batch_deposit_fee_times: number
  readonly batch_unit_stroops: bigint
}): bigint => {
  const stroops = BigInt(keys.batch_deposit_fee_times) * (openingStroops + claimShareStroops)
  return (stroops + keys.batch_unit_stroops - 1n) / keys.batch_unit_stroops
}

/** Refuses a deposit below the seller's announced minimum, or below the amount that is worth its fee. */
export const depositMinError = (amount: bigint, announced: unknown, least: bigint): CheckError => {
  const asked = decodeAmount(announced) ?? 0n
  const most = asked > least ? asked : least
  return amount < most ? ["deposit_below_min_deposit", `the deposit is below ${most}`] : undefined
}

/** Whether a caller's deposits of today may cost `stroops` more. */
const fitsDepositBudget = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  contract: string,
  source: string,
  stroops: bigint,
  most: bigint
) {
  const day = new Date(yield* yield* BudgetTime).toISOString().slice(0, 10)
  const [row] = yield* Effect.mapError(
    sql<{ spent: string }>`select coalesce(sum(coalesce(fee_charged_stroops, budget_stroops)), 0)::text as spent
      from kernel_settlements where scheme = 'batch-settlement' and budget_day = ${day}::date and pay_to = ${contract}
        and coalesce(budget_principal, principal) = ${source}`,
    () => new LedgerUnavailable({ operation: "deposit budget", message: "the database cannot be read" })
  )
  return BigInt(row!.spent) + stroops <= most
})

/** The terms of a network's deposits, by its settings. */
export const makeDepositTerms = Effect.fnUntraced(function* (contract: string) {
  const sql = yield* SqlClient.SqlClient
  const keys = (yield* Network).keys(batchKeys)
  const most = keys.batch_deposits_stroops_per_key_per_day
  return {
    depositMin: depositMinOf(keys),
    fitsBudget: (source: string, stroops: bigint) => fitsDepositBudget(sql, contract, source, stroops, most)
  }
})
