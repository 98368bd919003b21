// The facilitator: verify and settle as the house's own operations, free of HTTP. `verify` decides and stores nothing.
// `settle` finds what is already known of the payment, verifies it again, and hands it to the settlement's own fiber;
// the caller only waits. Its answers are values; it never fails and never dies on a payment's account.
import { Context, type Effect, type Option } from "effect"
import type { SettlementRecord } from "../settlement/Settlements.ts"
import type { Principal } from "../http/Principal.ts"
import type { Payment } from "./Payment.ts"
import type { Refusal } from "./Refusal.ts"

export type VerifyAnswer = { readonly _tag: "Valid"; readonly payer: string } | Refusal

export type SettleAnswer =
  | {
      readonly _tag: "Settled"
      readonly payer: string
      /** Inner transaction hash, 64 hex. */
      readonly transaction: string
      /** What moved, atomic units. */
      readonly amount: bigint
    }
  | {
      /** The outcome is not known yet: `settle_ledger_transaction_status_unknown`. Never presented as failure. */
      readonly _tag: "Pending"
      readonly payer: string
      readonly transaction: string
    }
  | {
      /** A refusal; with a hash when a transaction exists (failed, expired, spent, already settled). */
      readonly _tag: "Failed"
      readonly refusal: Refusal
      readonly transaction: Option.Option<string>
    }

export class Facilitator extends Context.Service<
  Facilitator,
  {
    readonly verify: (payment: Payment) => Effect.Effect<VerifyAnswer>
    readonly settle: (payment: Payment) => Effect.Effect<SettleAnswer>
    /**
     * A principal's own settlements, newest first, by payment identifier or transaction hash; None when the database
     * cannot be asked.
     */
    readonly lookup: (
      principal: Principal,
      by: { readonly identifier: string } | { readonly hash: string }
    ) => Effect.Effect<Option.Option<ReadonlyArray<SettlementRecord>>>
  }
>()("tollkeeper/payment/Facilitator") {}
