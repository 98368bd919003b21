// Reason codes of refused payments and unlisted resources, as sentences for the seller. An unknown code is shown as it
// is; the code stays beside the sentence.
import { h, type VNode } from "preact"

/** The code in its neutral spelling. */
const neutral = (word: string): string => word.replace("_stellar_", "_ledger_").replace(/^stellar_/, "ledger_")

const sentences: Readonly<Record<string, string>> = {
  settle_ledger_transaction_failed: "The ledger took the transaction and it failed; no money moved.",
  settle_ledger_transaction_expired:
    "The buyer's signature ended before the ledger took it; no money moved. Ask again.",
  settle_ledger_authorization_spent: "The buyer's signature was used by another transaction.",
  settle_ledger_transaction_status_unknown: "The outcome is not known yet; ask again with the same payment.",
  settlement_pending: "The outcome is not known yet; ask again with the same payment.",
  settle_ledger_temporarily_unavailable: "Every channel was in use; the same payment may be sent again.",
  settle_ledger_sponsor_budget_exceeded: "The day's fee budget of this key or of the sponsor is used up.",
  settle_ledger_already_settled: "The payment was settled and delivered before.",
  invalid_request: "The request is not well-formed, or a member is missing.",
  requirements_mismatch: "The buyer signed other terms than the seller asks for.",
  network_mismatch: "The payment and its terms name different networks.",
  invalid_ledger_asset_not_allowed: "The asset is not among those that this facilitator accepts.",
  invalid_ledger_auth_expired: "The buyer's signature has expired.",
  invalid_exact_ledger_signature_expiration_too_far: "The buyer's signature is valid for longer than the terms allow.",
  invalid_ledger_enforcing_simulation_failed:
    "The ledger would refuse the transfer: most often the buyer lacks the balance or a trustline.",
  invalid_exact_ledger_payload_wrong_amount: "The buyer signed another amount.",
  invalid_exact_ledger_payload_wrong_recipient: "The buyer signed another recipient.",
  invalid_exact_ledger_payload_wrong_asset: "The buyer signed another asset.",
  invalid_exact_ledger_payload_fee_exceeds_maximum: "The network fee is above the ceiling of the settings.",
  ledger_unavailable: "The ledger's RPC did not answer.",
  unauthorized: "No listed key was sent.",
  rate_limited: "The caller sent more than its rate allows.",
  request_too_large: "The body is larger than the limit.",
  schema_invalid: "What is declared does not fit its own schema.",
  metadata_too_large: "What is declared is larger than this facilitator keeps.",
  missing_resource_url: "The payment names no URL of the resource.",
  insecure_origin: "The origin is not HTTPS.",
  local_origin: "The origin is on a private network.",
  missing_tool_name: "An MCP resource needs the name of its tool.",
  payto_conflict: "The origin names another account than the one that was paid.",
  catalog_unavailable: "The catalog could not be written at that moment; the next payment tries again.",
  payment_observed: "A payment for it was observed.",
  origin_names_owner: "Its origin names the account that is paid."
}

/** The same in a few words, for a list or a bar. */
const labels: Readonly<Record<string, string>> = {
  settle_ledger_transaction_failed: "Failed on the ledger",
  settle_ledger_transaction_expired: "Signature expired",
  settle_ledger_authorization_spent: "Signature already used",
  settle_ledger_transaction_status_unknown: "Outcome not known yet",
  settlement_pending: "Still pending",
  settle_ledger_temporarily_unavailable: "Channels in use",
  settle_ledger_sponsor_budget_exceeded: "Fee budget used up",
  invalid_ledger_enforcing_simulation_failed: "Ledger would refuse it",
  invalid_ledger_auth_expired: "Signature expired before it was sent",
  unauthorized: "No listed key",
  invalid_request: "Malformed request",
  requirements_mismatch: "Other terms than asked for",
  network_mismatch: "Different networks",
  invalid_ledger_asset_not_allowed: "Asset not accepted",
  invalid_exact_ledger_signature_expiration_too_far: "Signature valid for too long",
  invalid_exact_ledger_payload_wrong_amount: "Other amount signed",
  invalid_exact_ledger_payload_wrong_recipient: "Other recipient signed",
  invalid_exact_ledger_payload_wrong_asset: "Other asset signed",
  invalid_exact_ledger_payload_fee_exceeds_maximum: "Network fee too high",
  settle_ledger_already_settled: "Already settled",
  ledger_unavailable: "Ledger unavailable"
}

/** Of the code, or of the same check of the scheme `exact`. */
const entryOf = (table: Readonly<Record<string, string>>, word: string): string | undefined =>
  table[neutral(word)] ?? table[neutral(word).replace(/^invalid_(upto|batch_settlement)_/, "invalid_exact_")]

export const sentenceOf = (word: string): string | undefined => entryOf(sentences, word)

/** A code as words, where no sentence is known: `invalid_exact_ledger_payload_x_failed` → `X failed`. */
const wordsOf = (word: string): string =>
  neutral(word)
    .replace(/^(settle|invalid)_/, "")
    .replace(/^(exact|upto|batch_settlement)_/, "")
    .replace(/^ledger_/, "")
    .replace(/^payload_/, "")
    .replaceAll("_", " ")
    .replace(/^[a-z]/, (letter) => letter.toUpperCase())

/** A code in a few words. */
export const reasonLabel = (word: string): string => entryOf(labels, word) ?? wordsOf(word)

/** Codes of payments, as a filter offers them. */
export const reasonsKnown: ReadonlyArray<string> = Object.keys(labels)

/** The code that a reader means by a label, or by the code itself in any spelling. */
export const reasonOf = (text: string): string => {
  const asked = text.trim().toLowerCase()
  return reasonsKnown.find((word) => reasonLabel(word).toLowerCase() === asked) ?? asked.replace(/[^a-z0-9]+/g, "_")
}

/** A code as people read it. */
export const reasonText = (word: string): string => sentenceOf(word) ?? wordsOf(word)

/** A sentence with its code; in a list a few words, with the sentence as their title. */
export const Reason = (props: { readonly word: string | undefined; readonly isShort?: boolean }): VNode<any> | null => {
  const { isShort, word } = props
  if (word === undefined) return null
  return isShort === true
    ? h("div", { class: "quiet reason", title: reasonText(word) }, reasonLabel(word))
    : h("div", null, reasonText(word), " ", h("code", { class: "quiet" }, word))
}
