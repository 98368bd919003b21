// The reasons for a refusal of a `batch-settlement` payment: one for each reason code of the official packages, with
// the ledger's name in place of theirs, and additional ones of this ledger. Only a seller can return some of them, from
// its record of a channel. They have a row here so that every code has one meaning.
import { Option } from "effect"
import { type Refusal, refusal, type RefusalRow } from "../../kernel/payment/Refusal.ts"

const prefix = "invalid_batch_settlement_ledger_"

const row = <const W extends string>(word: W, check: string) =>
  ({ reason: `${prefix}${word}`, check, status: 200 }) as const satisfies RefusalRow

export const refusals = [
  row("payload_type", "the payload is of a known type, with every member in its form"),
  row("scheme", "both copies name the scheme"),
  row("network_mismatch", "both copies name the network"),
  row("channel_id_invalid", "the channel's id is 32 bytes in hex"),
  row("channel_id_mismatch", "the channel's id is that of its configuration, on this network and contract"),
  row("receiver_mismatch", "the channel's receiver is payTo"),
  row("receiver_authorizer_mismatch", "the channel's receiverAuthorizer is the one required"),
  row("token_mismatch", "the channel's token is the asset"),
  row("withdraw_delay_mismatch", "the channel's withdrawDelay is the one required"),
  row("withdraw_delay_out_of_range", "the channel's withdrawDelay is in its range"),
  row("voucher_signature", "the payer's authorizer signed the voucher"),
  row("channel_not_found", "the channel holds a balance"),
  row("cumulative_exceeds_balance", "the voucher's maximum is within the balance"),
  row("cumulative_below_claimed", "the voucher's maximum covers the claimed total and the price"),
  row("cumulative_amount_mismatch", "the voucher's maximum covers the required amount"),
  row("withdrawal_started", "the payer has not started a withdrawal"),
  row("facilitator_is_party", "no account of the facilitator is a party"),
  row("insufficient_balance", "the depositor's balance covers the deposit"),
  row("receiver_cannot_be_paid", "the receiver's account takes the token: it is there, authorized and has room"),
  row("deposit_below_min_deposit", "the deposit is at least the minimum"),
  row("deposit_amount", "the deposit is above zero, within the asset's bound, and the one that is authorized"),
  row("deposit_authorization", "one call of deposit, authorized by its depositor with the transfer below it"),
  row("receive_authorization_signature", "the depositor's signature verifies"),
  row("payload_authorization_valid_after", "the authorization does not outlive its timeout"),
  row("payload_authorization_valid_before", "the authorization has not expired"),
  row("deposit_simulation_failed", "the enforcing simulation of the deposit succeeds and moves the deposit alone"),
  row("deposit_transaction_failed", "the deposit succeeds on the ledger"),
  row("authorizer_not_configured", "the receiver's authorizer signed: this facilitator signs for none"),
  row("authorizer_address_mismatch", "the claims' authorizer is one, and the signature is of its key"),
  row("charge_exceeds_signed_cumulative", "what is claimed is within the voucher's maximum"),
  row("too_many_claims", "the claims are as many as fit one transaction"),
  row("nothing_to_claim", "a claim raises the total of a channel"),
  row("claim_simulation_failed", "the simulation of the claim succeeds"),
  row("claim_transaction_failed", "the claim succeeds on the ledger"),
  row("nothing_to_settle", "something was claimed and not settled yet"),
  row("settle_simulation_failed", "the simulation of the settle succeeds"),
  row("settle_transaction_failed", "the settle succeeds on the ledger"),
  row("refund_payload", "a refund to settle names amount, nonce and claims, all of its channel"),
  row("refund_amount_invalid", "the amount to refund is above zero"),
  row("refund_no_balance", "something is left to refund"),
  row("refund_simulation_failed", "the simulation of the refund succeeds"),
  row("refund_transaction_failed", "the refund succeeds on the ledger"),
  row("withdraw_simulation_failed", "the enforcing simulation of the withdrawal succeeds"),
  row("fee_exceeds_maximum", "the network fee is within its ceilings"),
  row("rpc_read_failed", "the contract's entries can be read"),
  row("verification_state_unavailable", "the channel's state is known to its seller"),
  row("channel_busy", "no other request of the channel is in progress"),
  row("missing_channel", "the seller knows the channel")
] as const

type BatchReason = (typeof refusals)[number]["reason"]
export type BatchWord = BatchReason extends `${typeof prefix}${infer W}` ? W : never

/** A refusal by its reason code. */
export const refuse = (word: BatchWord, message: string, payer?: string): Refusal =>
  refusal(`${prefix}${word}`, message, Option.fromUndefinedOr(payer))

/** A refusal's code and message, or undefined. */
export type CheckError = readonly [word: BatchWord, message: string] | undefined
