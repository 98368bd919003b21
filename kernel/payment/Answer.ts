// The answers of verify and settle, as values. `answers.ts` makes them and `Wire.ts` encodes them; they never fail
// because of a payment.
import type { Option } from "effect"
import type { SettlementRecord } from "../settlement/store/Settlements.ts"
import type { Refusal } from "./Refusal.ts"

/** A scheme's addition to an answer, as JSON: `extra` on the wire. */
export type AnswerExtra = Readonly<Record<string, unknown>>

export type VerifyAnswer =
  | { readonly _tag: "Valid"; readonly payer: string; readonly extra?: AnswerExtra | undefined }
  | Refusal

export type SettleAnswer =
  | {
      readonly _tag: "Settled"
      readonly payer: string
      /** Inner transaction hash, 64 hex; empty for a payment that settles without a transaction. */
      readonly transaction: string
      /** False for a seller's own call, such as a claim: the answer names no payer. */
      readonly hasBuyer?: boolean
      /** The transferred amount, atomic units; undefined if the settlement transfers nothing by itself. */
      readonly amount?: bigint | undefined
      /** The transferred asset, for schemes whose answers include it. */
      readonly asset?: string | undefined
      readonly record?: SettlementRecord
      readonly extra?: AnswerExtra | undefined
    }
  | {
      /** The outcome is still open: `settle_ledger_transaction_status_unknown`. Never presented as failure. */
      readonly _tag: "Pending"
      readonly payer: string
      readonly transaction: string
      /** A sentence, if the answer waits for something other than the ledger. */
      readonly why?: string | undefined
    }
  | {
      /** A refusal; with a hash when a transaction exists (failed, expired, spent, already settled). */
      readonly _tag: "Failed"
      readonly refusal: Refusal
      readonly transaction: Option.Option<string>
    }
