// A payment: the seller's terms, the buyer's signed payload, and the caller. `Wire.ts` decodes it once, at the edge,
// from bounded JSON, with networks in their neutral spelling and amounts as bigint. A payment that exists is
// well-formed as an envelope; the scheme decides whether it is valid. The signed transaction is passed on verbatim.
import { type Option, Schema } from "effect"
import type { NetworkId } from "../config/Network.ts"
import type { Dialect } from "../Dialect.ts"
import type { Principal } from "../http/Authentication.ts"
import { anything, text, units } from "../http/wireSchema.ts"

/** Terms of one payment: an element of `accepts`, the buyer's `accepted`, the seller's `paymentRequirements`. */
export interface Terms {
  readonly scheme: string
  readonly network: NetworkId
  /** Token contract address, as sent. */
  readonly asset: string
  /**
   * Atomic units, as sent; None unless it is a canonical integer string ≥ 0 (the scheme refuses it with its own
   * reason).
   */
  readonly amount: Option.Option<bigint>
  readonly amountText: string
  readonly payTo: string
  readonly maxTimeoutSeconds: number
  /** Free-form; it includes `areFeesSponsored`. */
  readonly extra: Readonly<Record<string, unknown>>
}

export interface Payment {
  /** The spelling of the answer: that of `paymentRequirements.network`. */
  readonly dialect: Dialect
  readonly principal: Principal
  readonly requirements: Terms
  /** The option that the buyer chose. */
  readonly accepted: Terms
  /** `paymentPayload.payload`; the scheme decodes it. For `exact`: `{ transaction: string }`. */
  readonly payload: Readonly<Record<string, unknown>>
  /** `paymentPayload.resource.url`, if sent and if it is text without control characters. Inert. */
  readonly resourceUrl: Option.Option<string>
  /** `paymentPayload.resource`, free-form and bounded. Inert text. */
  readonly resource: Readonly<Record<string, unknown>>
  /** Extensions by neutral key; the value is the buyer's echo, or undefined if it was dropped for its form. */
  readonly extensions: ReadonlyMap<
    string,
    { readonly sentKey: string; readonly value: unknown; readonly isDropped?: true }
  >
  /** `payment-identifier`, if sent: 16–128 of `[A-Za-z0-9_-]`. */
  readonly identifier: Option.Option<string>
  /** sha256 hex of the call's `Idempotency-Key`, if any. It is the seller's, and does not belong to the payment. */
  readonly idempotencyKey?: string | undefined
  /** sha256 hex of canonical {envelope bytes, accepted, requirements, resource.url}, networks neutral (rules 2). */
  readonly fingerprint: string
  /** The fingerprint of the same payment with another required amount: verify checks the maximum that may settle. */
  readonly fingerprintFor: (requiredAmount: bigint) => string
}

/** All fields except the scheme. */
export const terms = {
  network: text("`ledger:testnet` or `stellar:testnet`."),
  asset: text("Contract address of the token."),
  amount: units("Atomic units, as a decimal string."),
  payTo: text("Address of the recipient."),
  maxTimeoutSeconds: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  extra: Schema.optionalKey(anything("Of the scheme."))
}

/** One way to pay, as a seller declares it. */
export const PaymentOption = Schema.Struct({ scheme: text("Payment scheme."), ...terms }).annotate({
  identifier: "PaymentOption"
})
