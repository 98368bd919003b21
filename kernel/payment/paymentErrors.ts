// Maps an unavailable ledger or database to a payment's answer. Nothing was decided then: verify answers that the
// ledger is not available, settle answers busy, and the caller may retry the same payment (rules 1).
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { outageOf } from "../actor/outages.ts"
import type { LedgerUnavailable } from "../ledger/LedgerRpc.ts"
import { type Refusal, refusal } from "./Refusal.ts"

export type PaymentError = LedgerUnavailable | SqlError.SqlError

/** The log has one line per outage, however many payments arrive during it (`actor/outages.ts`). */
export const logPaymentError = (error: PaymentError): Effect.Effect<void> =>
  outageOf(error) !== undefined
    ? Effect.logDebug("the database, or the ledger's RPC, did not answer a payment's request")
    : error._tag === "LedgerUnavailable"
      ? Effect.logWarning("the ledger could not be reached").pipe(
          Effect.annotateLogs({ operation: error.operation, why: error.message })
        )
      : Effect.logError("the database failed during a payment's request", error)

/** Verify's answer while the sponsor cannot pay for a settlement: nothing was checked. */
export const cannotSettle = (why: string): Refusal =>
  refusal("ledger_unavailable", `${why}; nothing was decided, try the same payment again`)

export const verifyTimedOut: Refusal = refusal("ledger_unavailable", "the check took too long; nothing was decided")

export const unavailable = (error: PaymentError): Refusal =>
  error._tag === "LedgerUnavailable"
    ? refusal("ledger_unavailable", "the ledger is unavailable at the moment; nothing was decided")
    : refusal("internal_error", "the payment could not be processed")
