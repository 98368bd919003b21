// The reasons for which an `exact` payment is refused: the official scheme's, in their neutral spelling, and the
// specification's.
import type { RefusalRow } from "../../kernel/payment/Refusal.ts"

type RefusalText = Pick<RefusalRow, "label" | "sentence" | "remedy">

const row = <const R extends string>(reason: R, check: string, words: RefusalText = {}) =>
  ({ reason, check, status: 200 as const, ...words }) satisfies RefusalRow

export const refusals = [
  row("invalid_exact_ledger_payload_malformed", "the transaction is canonical base64 of one bounded v1 envelope"),
  row("invalid_exact_ledger_payload_wrong_operation", "one contract call and nothing else"),
  row("invalid_exact_ledger_payload_unsafe_tx_or_op_source", "no account of the facilitator is a source"),
  row("invalid_exact_ledger_payload_wrong_asset", "the contract called is the asset", {
    label: "Wrong asset signed",
    sentence: "The buyer signed a payment in another asset."
  }),
  row("invalid_exact_ledger_payload_wrong_function_name", "transfer with three arguments"),
  row("invalid_exact_ledger_payload_muxed_address", "plain addresses"),
  row("invalid_exact_ledger_payload_facilitator_is_payer", "the facilitator is not the payer"),
  row("invalid_exact_ledger_payload_facilitator_is_recipient", "the facilitator receives nothing"),
  row("invalid_exact_ledger_payload_wrong_recipient", "the recipient is payTo", {
    label: "Wrong recipient signed",
    sentence: "The buyer signed a payment to another recipient."
  }),
  row("invalid_exact_ledger_payload_self_payment", "payer and recipient differ"),
  row("invalid_exact_ledger_payload_wrong_amount", "the amount is the required one, above zero", {
    label: "Wrong amount signed",
    sentence: "The buyer signed a payment of another amount."
  }),
  row("invalid_exact_ledger_payload_issuer_is_payer", "the payer does not issue the asset"),
  row("invalid_exact_ledger_payload_no_auth_entries", "there is an authorization entry"),
  row("invalid_exact_ledger_payload_unsupported_credential_type", "address credentials only"),
  row("invalid_exact_ledger_payload_facilitator_in_auth", "no account of the facilitator in any authorization"),
  row("invalid_exact_ledger_payload_has_subinvocations", "no sub-invocations"),
  row("invalid_exact_ledger_payload_missing_payer_signature", "the payer authorizes this very call"),
  row("invalid_exact_ledger_payload_unexpected_pending_signatures", "no other signature is required"),
  row("invalid_exact_ledger_payload_invalid_signature", "signatures by listed keys verify"),
  row("invalid_ledger_auth_expired", "the authorization has not expired", {
    label: "Signature expired before it was sent",
    sentence: "The buyer's signature has expired.",
    remedy: "Have the buyer sign a new payment."
  }),
  row("invalid_exact_ledger_signature_expiration_too_far", "the authorization does not outlive its timeout", {
    label: "Signature valid for too long",
    sentence: "The buyer's signature is valid for longer than the terms allow."
  }),
  row("invalid_ledger_enforcing_simulation_failed", "the enforcing simulation succeeds", {
    label: "Ledger would refuse it",
    sentence: "The ledger would refuse the transfer: most often the buyer lacks the balance or a trustline.",
    remedy: "Fix the balance, limit or trustline named in the message; then sign a new payment."
  }),
  row("invalid_ledger_restore_required", "what has to be restored is restored by the payment, within the fee ceilings"),
  row("invalid_exact_ledger_payload_no_transfer_events", "the simulation shows a transfer"),
  row("invalid_exact_ledger_payload_multiple_transfers", "the simulation shows one transfer"),
  row("invalid_exact_ledger_payload_event_not_transfer", "the movement is a transfer"),
  row("invalid_exact_ledger_payload_event_wrong_asset", "the asset moves, and no other"),
  row("invalid_exact_ledger_payload_event_wrong_from", "the payer pays"),
  row("invalid_exact_ledger_payload_event_wrong_to", "payTo receives"),
  row("invalid_exact_ledger_payload_event_wrong_amount", "the amount moves"),
  row("invalid_exact_ledger_payload_fee_exceeds_maximum", "the network fee is within its ceilings", {
    label: "Network fee too high",
    sentence: "The network fee is above the ceiling of the settings.",
    remedy: "Wait until fees drop, or raise the network's ceilings in the settings."
  })
]

export type ExactReason = (typeof refusals)[number]["reason"]
