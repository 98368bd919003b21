// The answers of settle: refusals of the core, and the answer for a settlement that has ended. Pure.
// `settle/existing.ts` finds the stored settlement and decides which caller may receive its success (rules 2).
import { Effect, Option } from "effect"
import type { BudgetReset } from "../budget/Budget.ts"
import type { AdoptionResult } from "../settlement/follower/adopt.ts"
import { spentText } from "../settlement/state/outcomes.ts"
import type { SettlementRecord } from "../settlement/store/Settlements.ts"
import type { SettleAnswer } from "./Answer.ts"
import { cannotSettle } from "./paymentErrors.ts"
import { type Refusal, refusal } from "./Refusal.ts"
import type { Objection } from "./settle/admit.ts"
import { Sponsor } from "../settlement/sponsor/Sponsor.ts"

export const refuse = (refused: Refusal, transaction: Option.Option<string> = Option.none()): SettleAnswer => ({
  _tag: "Failed",
  refusal: refused,
  transaction
})

/** Default Retry-After, milliseconds. */
const retryMillis = 1_000

/** One reason for every transient cause: no channel, a twin elsewhere, too many open, a silent ledger. */
export const busy = (payer?: string, retryAfterMillis = retryMillis): SettleAnswer =>
  busyFor("no capacity at the moment", payer, retryAfterMillis)

/** The same with a specific cause. */
export const busyFor = (why: string, payer?: string, retryAfterMillis: number = retryMillis): SettleAnswer =>
  refuse({
    ...refusal(
      "settle_ledger_temporarily_unavailable",
      `${why}; try the same payment again`,
      Option.fromUndefinedOr(payer)
    ),
    retryAfterMillis
  })

/** Describes the ledger's evidence for a settlement, as a clause after "which". */
const stateText = (record: SettlementRecord): string => {
  switch (record.state) {
    case "settled":
      return `is settled by transaction ${hashOf(record)}`
    case "failed":
    case "expired":
      return `has ${record.state}: ${ended(record).message}`
    case "prepared":
    case "submitted":
      return "is still open"
    case "unresolved":
      return "has an unknown outcome"
  }
}

/**
 * The hash of the transaction that made the payment. Before the settlement's end, and if no payment was seen, the hash
 * of its own transaction.
 */
const hashOf = ({ innerHash, transaction }: SettlementRecord): string => Option.getOrElse(transaction, () => innerHash)

/** The owner sent its identifier or authorization with other terms: the answer reports its outcome. */
const conflict = (record: SettlementRecord): Refusal =>
  refusal(
    "payment_identifier_conflict",
    `this identifier or authorization belongs to a payment with other terms, which ${stateText(record)}`,
    Option.some(record.payer)
  )

export const answerConflict = (record: SettlementRecord): SettleAnswer => refuse(conflict(record), record.transaction)

/** An internal error for a payment without a stored record. */
export const internalError: Refusal = refusal("internal_error", "the payment could not be processed")

export const unsupportedScheme: Refusal = refusal("unsupported_scheme", "no such scheme is served here")

/** The answer for an authorization that was used or has expired, without a stored settlement here. */
export const unadopted = (refused: Refusal, adopted: AdoptionResult | undefined): Refusal => {
  const spent = (message: string) => refusal("settle_ledger_authorization_spent", message, refused.payer)
  switch (adopted?._tag) {
    case "Elsewhere":
      return spent(spentText(adopted))
    case "Forgotten":
      return {
        ...refused,
        message: `${refused.message}; the ledger's nodes do not reach back far enough to show whether it was used`
      }
    default:
      return refused.authorizationSpent === true ? spent("the authorization was used in another transaction") : refused
  }
}

/** Our transaction paid but its record was lost, and we cannot show that the caller owns it. */
export const unclaimed = ({ payer }: Refusal): Refusal =>
  refusal(
    "settle_ledger_already_settled",
    "the authorization was settled, but its caller's record was lost; ask this facilitator's operator to assign it",
    payer
  )

export const answerUnclaimed = (refused: Refusal, transaction: string): SettleAnswer =>
  refuse(unclaimed(refused), Option.some(transaction))

export const overBudget = ({ at, inMillis }: BudgetReset, payer: Option.Option<string>): Refusal => ({
  ...refusal(
    "settle_ledger_sponsor_budget_exceeded",
    `the sponsor's budget for today does not cover this transaction; it starts again at ${new Date(at).toISOString()}`,
    payer
  ),
  retryAfterMillis: inMillis,
  resetAtMillis: at
})

export const answerObjection = (objection: Objection, payer?: string): SettleAnswer =>
  objection._tag === "OverBudget"
    ? refuse(overBudget(objection.reset, Option.fromUndefinedOr(payer)))
    : busyFor(objection.why, payer, objection.retryAfterMillis)

/** Verify's answer to the same. */
export const refuseObjection = (objection: Objection, payer?: string): Refusal => {
  if (objection._tag === "OverBudget") return overBudget(objection.reset, Option.fromUndefinedOr(payer))
  const { retryAfterMillis, why } = objection
  return { ...cannotSettle(why), ...(retryAfterMillis === undefined ? {} : { retryAfterMillis }) }
}

/** The answer for a caller that does not own the settlement. */
export const answerOthers = (record: SettlementRecord): SettleAnswer => {
  const payer = Option.some(record.payer)
  switch (record.state) {
    case "settled":
      return refuse(
        refusal("settle_ledger_already_settled", "the authorization was settled for another caller", payer),
        Option.some(hashOf(record))
      )
    case "failed":
    case "expired":
      return refuse(ended(record))
    default:
      return refuse(
        refusal("settle_ledger_already_settled", "the authorization is being settled for another caller", payer)
      )
  }
}

/** The reason why a settlement failed or expired, and the ledger's evidence for its authorization. */
const ended = (record: SettlementRecord): Refusal => ({
  ...refusal(
    Option.getOrElse(record.reason, () => "settle_ledger_transaction_failed"),
    Option.getOrElse(record.reasonMessage, () => "the transaction failed"),
    Option.some(record.payer)
  ),
  ...(record.isWatched === true ? { authorizationLivesUntilLedger: record.authorizationExpiresLedger } : {})
})

/** Another request has the success of this settled payment. Not a refusal: the next answer may be the success. */
export const beingDelivered = (record: SettlementRecord): Extract<SettleAnswer, { readonly _tag: "Pending" }> => ({
  _tag: "Pending",
  payer: record.payer,
  transaction: hashOf(record),
  why: "the payment is settled, and another request is receiving its success; send the same payment again"
})

/** Verify: the ledger no longer shows the settlement's outcome. Settle answers the same, with the hash. */
export const outcomeUnknown = ({
  payer,
  transaction,
  why = "the payment was submitted and its outcome is not known; an operator must resolve it"
}: Extract<SettleAnswer, { readonly _tag: "Pending" }>): Refusal => ({
  ...refusal("settle_ledger_transaction_status_unknown", why, Option.some(payer)),
  transaction
})

/** The answer for a settlement that has ended. `deliver` is true if this caller may receive its success. */
export const answerFinal = (record: SettlementRecord, deliver: boolean): SettleAnswer => {
  const { payer } = record
  const transaction = hashOf(record)
  switch (record.state) {
    case "settled":
      return deliver
        ? {
            _tag: "Settled",
            payer,
            transaction,
            amount: Option.getOrElse(record.amountTransferred, () => record.amount),
            record
          }
        : refuse(
            refusal(
              "settle_ledger_already_settled",
              `the payment was settled by transaction ${transaction} and its success was delivered before`,
              Option.some(payer)
            ),
            Option.some(transaction)
          )
    case "failed":
    case "expired":
      return refuse(ended(record), record.transaction)
    default:
      return { _tag: "Pending", payer, transaction: record.innerHash }
  }
}

// Settle's answer after an error of a dependency, or after its timeout: busy, since nothing was decided. If nothing can
// be recorded, the answer names that cause, like verify's; it does not try a write to find out.

/** Pure. */
const unavailable = (unrecordable: Option.Option<string>, payer?: string): SettleAnswer =>
  Option.match(unrecordable, { onNone: () => busy(payer), onSome: (why) => busyFor(why, payer) })

/** The current answer. */
export const makeUnavailable = Effect.map(
  Sponsor,
  ({ knownUnrecordable }) =>
    (payer?: string): Effect.Effect<SettleAnswer> =>
      Effect.map(knownUnrecordable, (why) => unavailable(why, payer))
)
