// The reasons for refusing an `upto` payment. The scheme is proposed, so it defines most of them. It keeps the reasons
// of this ledger's drafts if they fit.
import type { RefusalRow } from "../../kernel/payment/Refusal.ts"

const row = <const R extends string>(reason: R, check: string) =>
  ({ reason, check, status: 200 }) as const satisfies RefusalRow

export const refusals = [
  row("invalid_upto_ledger_payload_malformed", "the transaction is canonical base64 of one bounded v1 envelope"),
  row("invalid_upto_ledger_payload_wrong_operation", "one contract call and nothing else"),
  row("invalid_upto_ledger_payload_unsafe_tx_or_op_source", "no account of the facilitator is a source"),
  row(
    "invalid_upto_ledger_payload_wrong_contract",
    "the contract called is this network's of the profile, with the registered code"
  ),
  row("invalid_upto_ledger_payload_wrong_function_name", "the profile's function with all its arguments"),
  row("invalid_upto_ledger_payload_wrong_arguments", "every argument has its type"),
  row("invalid_upto_ledger_payload_muxed_address", "plain addresses"),
  row("invalid_upto_ledger_payload_wrong_asset", "the token is the asset"),
  row("invalid_upto_ledger_payload_wrong_facilitator", "the facilitator named is this one"),
  row("invalid_upto_ledger_payload_facilitator_is_payer", "the facilitator is not the payer"),
  row("invalid_upto_ledger_payload_facilitator_is_recipient", "the facilitator receives nothing"),
  row("invalid_upto_ledger_payload_wrong_recipient", "the recipient is payTo"),
  row("invalid_upto_ledger_payload_self_payment", "payer and recipient differ"),
  row("invalid_upto_ledger_payload_invalid_max_amount", "the signed maximum is the accepted amount, above zero"),
  row("invalid_upto_ledger_settlement_negative_amount", "the amount to settle is not negative"),
  row("invalid_upto_ledger_settlement_exceeds_amount", "the amount to settle is at most the signed maximum"),
  row("invalid_upto_ledger_settlement_invalid_amount", "the amount to settle is an integer"),
  row("invalid_upto_ledger_settlement_not_yet_valid", "the window of the authorization has begun"),
  row("invalid_upto_ledger_settlement_expired", "the window of the authorization has not ended"),
  row("invalid_upto_ledger_expiration_too_far", "the authorization does not outlive its timeout"),
  row("invalid_upto_ledger_fees_not_sponsored", "the terms say that fees are sponsored, where the draft requires it"),
  row(
    "invalid_upto_ledger_payload_wrong_expiration",
    "allowance and signature end together, where the draft requires it"
  ),
  row("invalid_upto_ledger_payload_no_auth_entries", "there is an authorization entry"),
  row("invalid_upto_ledger_payload_unsupported_credential_type", "address credentials only"),
  row("invalid_upto_ledger_payload_facilitator_in_auth", "the facilitator appears in its one argument alone"),
  row("invalid_upto_ledger_payload_missing_payer_signature", "the payer authorizes this very call"),
  row("invalid_upto_ledger_payload_wrong_subinvocations", "and below it the allowance and its end, nothing else"),
  row("invalid_upto_ledger_payload_unexpected_pending_signatures", "no other signature is required"),
  row("invalid_upto_ledger_account_authentication", "signatures by listed keys verify"),
  row("invalid_upto_ledger_simulation_failed", "the enforcing simulation succeeds"),
  row(
    "invalid_upto_ledger_restore_required",
    "what has to be restored is restored by the settlement, within the ceilings"
  ),
  row("invalid_upto_ledger_event_unreadable", "every movement in the simulation can be read"),
  row("invalid_upto_ledger_event_wrong_sequence", "allowance, transfer, its end, settlement; zero only the last"),
  row("invalid_upto_ledger_event_wrong_asset", "the asset moves, and no other"),
  row("invalid_upto_ledger_event_wrong_transfer", "the payer pays payTo the amount"),
  row("invalid_upto_ledger_event_wrong_settlement", "the contract states the ceiling and the amount"),
  row("invalid_upto_ledger_payload_fee_exceeds_maximum", "the network fee is within its ceilings")
]

export type UptoReason = (typeof refusals)[number]["reason"]

/** A refusal's reason and message, or nothing. */
export type CheckError = readonly [reason: UptoReason, message: string] | undefined
