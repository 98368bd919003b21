// Conditions of a deposit before the sponsor pays for it: at least the seller's announced minimum, worth a multiple of
// its fee and its share in a claim, and within the caller's daily budget for deposits. Without them a buyer could open
// channels for free, and each costs the sponsor a new entry. Deposits that are verified at the same moment may exceed
// the budget together. The receiver must be able to hold the token: otherwise charges could be claimed, but not paid
// out.
import { Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { BudgetTime } from "../../kernel/budget/Budget.ts"
import { LruCache } from "../../kernel/cache/LruCache.ts"
import { Network } from "../../kernel/config/Network.ts"
import { LedgerRpc, LedgerUnavailable } from "../../kernel/ledger/LedgerRpc.ts"
import { monotonicMillis } from "../../kernel/time/monotonicMillis.ts"
import { decodeAmount } from "./batchCodec.ts"
import { batchKeys } from "./Config.ts"
import type { CheckError } from "./refusals.ts"

/** Cost of opening a channel in stroops, and a channel's share of a claim of forty (README.md, "Costs"). */
const openingStroops = 112_197n
const claimShareStroops = 6_203n

/** A deposit must be worth this many times its own fee and its share of a claim. */
const feeTimes = 2n

/** The minimum deposit from the operator's setting, in atomic units of any token; announced in `/supported`. */
const depositMinOf = (keys: { readonly batch_unit_stroops: bigint }): bigint => {
  const stroops = feeTimes * (openingStroops + claimShareStroops)
  return (stroops + keys.batch_unit_stroops - 1n) / keys.batch_unit_stroops
}

/** Refuses a deposit below the seller's announced minimum, or below the amount that is worth its fee. */
export const depositMinError = (amount: bigint, announced: unknown, least: bigint): CheckError => {
  const asked = decodeAmount(announced) ?? 0n
  const most = asked > least ? asked : least
  return amount < most ? ["deposit_below_min_deposit", `the deposit is below ${most}`] : undefined
}

/** True if the caller's deposits of today may cost `stroops` more. */
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

/** How long a receiver that could hold a deposit is cached, and how many are cached. */
const receiverMillis = 600_000
const receiversMax = 10_000

/** Whether a receiver takes a token: a trustline with the issuer's authorization and room for the deposit. */
const makeReceiverError = Effect.map(LedgerRpc, (rpc) => {
  const taken = new LruCache<string, { readonly room: bigint; readonly until: number }>({
    name: "batch-receivers",
    capacity: receiversMax
  })
  return Effect.fnUntraced(function* (receiver: string, token: string, amount: bigint) {
    const [key, now] = [`${receiver} ${token}`, yield* monotonicMillis]
    if (taken.get(key, ({ room, until }) => now < until && amount <= room) !== undefined) return undefined
    const holdings = Option.getOrUndefined(yield* rpc.holdings(token, [receiver]))
    // Another token's code decides which receivers it pays. A contract needs no entry before its first payment.
    const isOpen = holdings === undefined || (receiver.startsWith("C") && !holdings.has(receiver))
    const holding = isOpen ? { room: amount, isAuthorized: true } : holdings.get(receiver)
    if (holding?.isAuthorized !== true || holding.room < amount) {
      const lack =
        holding === undefined ? "account or trustline for" : holding.isAuthorized ? "room for" : "permission for"
      return ["receiver_cannot_be_paid", `the receiver ${receiver} has no ${lack} the token`] as NonNullable<CheckError>
    }
    taken.set(key, { room: holding.room, until: now + receiverMillis })
    return undefined
  })
})

/** The terms of a network's deposits, by its settings. */
export const makeDepositTerms = Effect.fnUntraced(function* (contract: string) {
  const sql = yield* SqlClient.SqlClient
  const keys = (yield* Network).keys(batchKeys)
  const most = keys.batch_deposits_stroops_per_key_per_day
  return {
    depositMin: depositMinOf(keys),
    receiverError: yield* makeReceiverError,
    fitsBudget: (source: string, stroops: bigint) => fitsDepositBudget(sql, contract, source, stroops, most)
  }
})
