// What a settle request is told, in one place: refusals of the spine, and the word for a settlement that has ended.
// Pure. What is stored of a payment, and who may hear it, is judged in `settle/known.ts` (decisions 2).
import { Option } from "effect"
import type { SettlementRecord } from "../settlement/Settlements.ts"
import type { SettleAnswer } from "./Answer.ts"
import { type Refusal, refusal } from "./Refusal.ts"

export const refuse = (refused: Refusal, transaction: Option.Option<string> = Option.none()): SettleAnswer => ({
  _tag: "Failed",
  refusal: refused,
  transaction
})

/** When to come again where nothing better is known: what the header says. */
const retryMillis = 1_000

/** One word for every cause that passes by itself: no channel, a twin elsewhere, too many open, a silent ledger. */
export const busy = (payer?: string, retryAfterMillis = retryMillis): SettleAnswer =>
  refuse({
    ...refusal(
      "settle_ledger_temporarily_unavailable",
      "no capacity at the moment; try the same payment again",
      Option.fromUndefinedOr(payer)
    ),
    retryAfterMillis
  })

const stateText = (state: SettlementRecord["state"]): string => {
  switch (state) {
    case "settled":
      return "is settled"
    case "failed":
    case "expired":
      return "has ended without moving money"
    default:
      return "is still open"
  }
}

/** The owner sends an identifier or authorization of his with other terms: what became of it is told. */
export const conflict = (record: SettlementRecord): Refusal =>
  refusal(
    "payment_identifier_conflict",
    `this identifier or authorization belongs to a payment with other terms, which ${stateText(record.state)}`,
    Option.some(record.payer)
  )

export const answerConflict = (record: SettlementRecord): SettleAnswer =>
  refuse(conflict(record), Option.some(record.innerHash))

/** A defect of ours, of a payment of which nothing is stored. */
export const died: Refusal = refusal("internal_error", "the payment could not be processed")

export const noScheme: Refusal = refusal("unsupported_scheme", "no such scheme is served here")

/** The ledger has seen this authorization, and no transaction of this payment of ours: somebody else submitted it. */
export const spentElsewhere = (refused: Refusal): Refusal =>
  refusal("settle_ledger_authorization_spent", "the authorization was used in another transaction", refused.payer)

export const overBudget = (payer: Option.Option<string>): Refusal =>
  refusal(
    "settle_ledger_sponsor_budget_exceeded",
    "the sponsor's budget for today does not cover this transaction",
    payer
  )

/** What is told of a settlement to whoever did not settle it. */
export const answerOthers = (record: SettlementRecord): SettleAnswer => {
  const payer = Option.some(record.payer)
  switch (record.state) {
    case "settled":
      return refuse(
        refusal("settle_ledger_already_settled", "the authorization was settled for another caller", payer),
        Option.some(record.innerHash)
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

/** Why a settlement ended without moving money. */
const ended = (record: SettlementRecord): Refusal =>
  refusal(
    Option.getOrElse(record.reason, () => "settle_ledger_transaction_failed"),
    Option.getOrElse(record.reasonMessage, () => "the transaction failed"),
    Option.some(record.payer)
  )

/** What verify says of an authorization whose settlement has ended. */
export const over = (record: SettlementRecord): Refusal =>
  record.state === "settled"
    ? refusal(
        "settle_ledger_already_settled",
        "the authorization was settled before; settle tells more to whoever settled it",
        Option.some(record.payer)
      )
    : ended(record)

/** What is told of a settlement that has ended. `deliver` says whether its success may be given to this caller. */
export const answerFinal = (record: SettlementRecord, deliver: boolean): SettleAnswer => {
  const { payer } = record
  const transaction = Option.getOrElse(record.transaction, () => record.innerHash)
  switch (record.state) {
    case "settled":
      return deliver
        ? {
            _tag: "Settled",
            payer,
            transaction,
            amount: Option.getOrElse(record.moved, () => record.amount)
          }
        : refuse(
            refusal(
              "settle_ledger_already_settled",
              "the payment was settled and its success was delivered before",
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
