// A refusal of a payment is a value, not an error: a reason from a closed table, a sentence for people, and the payer's
// data. Every refusal reason has a row `{reason, check, status}`. The kernel owns the core's rows; each scheme
// registers its own. An unregistered reason is a defect, and a reason registered twice with different meanings stops
// the boot. Reasons are neutral here (`invalid_ledger_…`); the edge spells them.
import { Option } from "effect"

export interface RefusalRow {
  /** Neutral reason, `[a-z0-9_]+`. */
  readonly reason: string
  /** The check behind the reason, for documentation and tests. */
  readonly check: string
  /** For people, a few words, a sentence and a remedy; absent: `reasons.ts` makes them from the check and status. */
  readonly label?: string
  readonly sentence?: string
  readonly remedy?: string
  /** HTTP status; 200 for business refusals. */
  readonly status: 200 | 400 | 401 | 409 | 413 | 429 | 500 | 503
}

export interface Refusal {
  readonly _tag: "Refusal"
  readonly reason: string
  /** A sentence without payload, secrets or text of buyer or seller. */
  readonly message: string
  /** The payer's address, if it was read. */
  readonly payer: Option.Option<string>
  /** Set if the ledger reports that the authorization was used before. */
  readonly authorizationSpent?: true
  /** Set if the authorization is refused for its age: the last ledger that accepts it. */
  readonly authorizationExpiresLedger?: number
  /** Set in addition if its window is in seconds too and has ended: a ledger that closed after the window. */
  readonly authorizationEndedLedger?: number
  /** A failed payment with an authorization that may still be used until this ledger: sign nothing again before. */
  readonly authorizationLivesUntilLedger?: number
  /** Verify: the hash of the payment's transaction, if it exists. */
  readonly transaction?: string
  /** Set if the same payment may succeed later: an estimate of the wait. */
  readonly retryAfterMillis?: number
  /** Set if a day's budget is used up: the beginning of the next day, Unix milliseconds. */
  readonly resetAtMillis?: number
}

export const refusal = (reason: string, message: string, payer: Option.Option<string> = Option.none()): Refusal => ({
  _tag: "Refusal",
  reason,
  message,
  payer
})

export const isRefusal = (value: unknown): value is Refusal =>
  typeof value === "object" && value !== null && (value as { _tag?: unknown })._tag === "Refusal"

/** The core's rows (rules 1, S261–S273). */
export const coreReasons = [
  {
    reason: "invalid_request",
    check: "the body is well-formed JSON of the envelope's shape",
    status: 400,
    label: "Malformed request",
    sentence: "The request is not well-formed, or a member is missing.",
    remedy: "Correct the request; the message names the member."
  },
  {
    reason: "invalid_x402_version",
    check: "both x402Version members are 2",
    status: 200,
    sentence: "The payment is not of x402 version 2.",
    remedy: "Send x402Version 2."
  },
  {
    reason: "unsupported_network",
    check: "the network is enabled here",
    status: 200,
    sentence: "The network is not served here.",
    remedy: "Use a network of `GET /supported`."
  },
  {
    reason: "network_mismatch",
    check: "both copies name the same network",
    status: 200,
    label: "Different networks",
    sentence: "The payment and its terms name different networks.",
    remedy: "Use one network in the payment and its terms."
  },
  {
    reason: "unsupported_scheme",
    check: "a plugin serves the scheme",
    status: 200,
    sentence: "The scheme is not served here.",
    remedy: "Use a scheme of `GET /supported`."
  },
  {
    reason: "requirements_mismatch",
    check: "accepted equals the requirements",
    status: 200,
    label: "Terms do not match",
    sentence: "The terms that the buyer signed differ from the seller's.",
    remedy: "Request the terms again and sign them."
  },
  {
    reason: "invalid_ledger_asset_not_allowed",
    check: "the asset is listed in the settings",
    status: 200,
    label: "Asset not accepted",
    sentence: "This facilitator does not accept the asset.",
    remedy: "Use an asset of `GET /supported`, or list it in the settings."
  },
  {
    reason: "payment_identifier_required",
    check: "a required payment identifier is present",
    status: 400,
    sentence: "The seller requires a payment identifier, and none was sent.",
    remedy: "Send the payment identifier that the seller requires."
  },
  {
    reason: "payment_identifier_conflict",
    check: "an identifier belongs to one payment",
    status: 409,
    sentence: "The payment identifier belongs to another payment."
  },
  {
    reason: "ledger_unavailable",
    check: "the ledger's RPC answers",
    status: 503,
    label: "Ledger unavailable",
    sentence: "The ledger's RPC did not answer.",
    remedy: "Send the same payment again after Retry-After; `tollkeeper doctor` examines the RPC."
  },
  {
    reason: "settle_ledger_temporarily_unavailable",
    check: "a channel is free and fewer settlements are open than the limit",
    status: 503,
    label: "Channels in use",
    sentence: "Every channel was in use; the same payment may be sent again.",
    remedy: "Send the same payment again after Retry-After; `tollkeeper channels resize` adds channels."
  },
  {
    reason: "settle_ledger_sponsor_budget_exceeded",
    check: "the sponsor's budget covers the fee",
    status: 200,
    label: "Fee budget used up",
    sentence: "The day's fee budget of this key or of the sponsor is used up.",
    remedy: "Wait for the next UTC day (`resetAt`), or raise the limit."
  },
  {
    reason: "settle_ledger_transaction_status_unknown",
    check: "the ledger has confirmed an outcome",
    status: 200,
    label: "Outcome not known yet",
    sentence: "The outcome is not known yet; ask again with the same payment.",
    remedy: "Send the same payment again; do not request a second one until then."
  },
  {
    reason: "settle_ledger_transaction_failed",
    check: "the transaction succeeded on the ledger",
    status: 200,
    label: "Failed on the ledger",
    sentence: "The transaction failed on the ledger; no money moved.",
    remedy: "Fix the cause in the message, then have the buyer sign a new payment."
  },
  {
    reason: "settle_ledger_transaction_expired",
    check: "the transaction was included before its bound",
    status: 200,
    label: "Signature expired",
    sentence: "The buyer's signature expired before the ledger included it; no money moved.",
    remedy: "Have the buyer sign a new payment."
  },
  {
    reason: "settle_ledger_authorization_spent",
    check: "the authorization was not spent elsewhere",
    status: 200,
    label: "Signature already used",
    sentence: "The buyer's signature was used by another transaction.",
    remedy: "Look up the transaction that used it in an explorer, then have the buyer sign a new payment."
  },
  {
    reason: "settle_ledger_already_settled",
    check: "the payment was not delivered before",
    status: 200,
    label: "Already settled",
    sentence: "The payment was settled and delivered before.",
    remedy: "Do not pay again: `GET /settlements` has the transaction; the seller's Idempotency-Key repeats the answer."
  },
  {
    reason: "unauthorized",
    check: "a listed bearer key is sent",
    status: 401,
    label: "No listed key",
    sentence: "No listed key was sent."
  },
  {
    reason: "request_too_large",
    check: "the body is within its size limit",
    status: 413,
    sentence: "The body is larger than the limit."
  },
  {
    reason: "rate_limited",
    check: "the principal is within its rate limit",
    status: 429,
    sentence: "The caller exceeded its rate limit."
  },
  {
    reason: "internal_error",
    check: "no internal error",
    status: 500,
    sentence: "The facilitator failed with an internal error; the payment may be sent again."
  }
] as const satisfies ReadonlyArray<RefusalRow>

export type CoreReason = (typeof coreReasons)[number]["reason"]
