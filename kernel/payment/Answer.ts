// What verify and settle say, as values. They are made in `answers.ts`, spelled in `Wire.ts`, and never fail on a
// payment's account.
import type { Option } from "effect"
import type { SettlementRecord } from "../settlement/store/Settlements.ts"
import type { Refusal } from "./Refusal.ts"

/** What a scheme adds to an answer, as JSON: `extra` on the wire. */
export type AnswerExtra = Readonly<Record<string, unknown>>

export type VerifyAnswer =
  | { readonly _tag: "Valid"; readonly payer: string; readonly extra?: AnswerExtra | undefined }
  | Refusal

export type SettleAnswer =
  | {
      readonly _tag: "Settled"
      readonly payer: string
      /** Inner transaction hash, 64 hex; empty for a payment that is settled without a transaction. */
      readonly transaction: string
      /** What moved, atomic units. */
      readonly amount: bigint
      /** The recorded outcome it was made from. */
      readonly record?: SettlementRecord
      readonly extra?: AnswerExtra | undefined
    }
  | {
      /** The outcome is not known yet: `settle_ledger_transaction_status_unknown`. Never presented as failure. */
      readonly _tag: "Pending"
      readonly payer: string
      readonly transaction: string
      /** A sentence, where it is not the ledger that is waited for. */
      readonly why?: string | undefined
    }
  | {
      /** A refusal; with a hash when a transaction exists (failed, expired, spent, already settled). */
      readonly _tag: "Failed"
      readonly refusal: Refusal
      readonly transaction: Option.Option<string>
    }
