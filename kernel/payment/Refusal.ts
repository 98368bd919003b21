// Refusing a payment is a value, not an error: a reason from a closed table, a sentence for people, and what is known
// of the payer. Every refusal reason has a row `{reason, check, status}`. The kernel owns the rows of the core; each
// scheme registers its own; an unregistered reason is a defect and a reason registered twice with different meaning
// stops the boot. Reasons are neutral here (`invalid_ledger_…`); the edge spells them.
import { Option } from "effect"

export interface RefusalRow {
  /** Neutral reason, `[a-z0-9_]+`. */
  readonly reason: string
  /** What was checked, for documentation and tests. */
  readonly check: string
  /** HTTP status; 200 for business refusals. */
  readonly status: 200 | 400 | 401 | 409 | 413 | 429 | 500 | 503
}

export interface Refusal {
  readonly _tag: "Refusal"
  readonly reason: string
  /** A sentence without payload, secrets or text of buyer or seller. */
  readonly message: string
  /** The payer's address, whenever it is known. */
  readonly payer: Option.Option<string>
  /** Set when the ledger says that the authorization was used before. */
  readonly authorizationSpent?: true
  /** Set when the authorization is refused for its age: the last ledger in which it can be used. */
  readonly authorizationExpiresLedger?: number
  /** With it, where its window is in seconds too and has ended: a ledger that closed after the last of them. */
  readonly authorizationEndedLedger?: number
  /** A failed payment whose authorization may still be used until this ledger: nothing is to be signed again before. */
  readonly authorizationLivesUntilLedger?: number
  /** Verify: the hash of the payment's transaction, when there is one. */
  readonly transaction?: string
  /** Set when the same payment may succeed later: an estimate of when. */
  readonly retryAfterMillis?: number
  /** Set when a day's budget is used up: when the next begins, Unix milliseconds. */
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

/** The spine's rows (rules 1, S261–S273). */
export const coreReasons = [
  { reason: "invalid_request", check: "the body is well-formed JSON of the envelope's shape", status: 400 },
  { reason: "invalid_x402_version", check: "x402Version is 2, twice", status: 200 },
  { reason: "unsupported_network", check: "the network is enabled here", status: 200 },
  { reason: "network_mismatch", check: "both copies name the same network", status: 200 },
  { reason: "unsupported_scheme", check: "a plugin serves the scheme", status: 200 },
  { reason: "requirements_mismatch", check: "accepted equals the requirements", status: 200 },
  { reason: "invalid_ledger_asset_not_allowed", check: "the asset is listed in the settings", status: 200 },
  { reason: "payment_identifier_required", check: "a required payment identifier is present", status: 400 },
  { reason: "payment_identifier_conflict", check: "an identifier belongs to one payment", status: 409 },
  { reason: "ledger_unavailable", check: "the ledger's RPC answers", status: 503 },
  {
    reason: "settle_ledger_temporarily_unavailable",
    check: "a channel and a place among the open settlements are free",
    status: 503
  },
  { reason: "settle_ledger_sponsor_budget_exceeded", check: "the sponsor's budget covers the fee", status: 200 },
  { reason: "settle_ledger_transaction_status_unknown", check: "the ledger has spoken", status: 200 },
  { reason: "settle_ledger_transaction_failed", check: "the transaction succeeded on the ledger", status: 200 },
  { reason: "settle_ledger_transaction_expired", check: "the transaction was included before its bound", status: 200 },
  { reason: "settle_ledger_authorization_spent", check: "the authorization was not spent elsewhere", status: 200 },
  { reason: "settle_ledger_already_settled", check: "the payment was not delivered before", status: 200 },
  { reason: "unauthorized", check: "a listed bearer key is sent", status: 401 },
  { reason: "request_too_large", check: "the body is within its bound", status: 413 },
  { reason: "rate_limited", check: "the principal is within its rate", status: 429 },
  { reason: "internal_error", check: "no internal error", status: 500 }
] as const satisfies ReadonlyArray<RefusalRow>

export type CoreReason = (typeof coreReasons)[number]["reason"]
