// One logical invocation of a paid tool: what is called, on whose behalf, for which terms. Its key says when two calls
// are the same, so that an agent that asks again while the outcome of the first is open gets that outcome and does not
// pay twice.
import { Hex } from "effect/encoding"
import { canonicalJson } from "../../../kernel/payment/canonicalJson.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { Authorization } from "../budget/Reservation.ts"
import type { Identity } from "../Reference.ts"
import type { CatalogTerms } from "../seller/compareTerms.ts"
import type { Fields } from "../seller/SellerWire.ts"

export interface Invocation {
  readonly key: string
  readonly ref: string
  readonly versionHash: string
  readonly identity: Identity
  readonly endpoint: URL
  readonly terms: CatalogTerms
  readonly args: Fields
}

/** A signed payment whose result is not delivered yet; it lives in memory alone. */
export interface OpenPayment {
  readonly identifier: string
  readonly payment: Fields
  readonly authorization: Authorization
  readonly invocation: Invocation
}

/** The same agent, tool, arguments and asset make the same invocation, whatever the session. */
export const invocationKey = (
  crypto: Crypto["Service"],
  agent: string,
  ref: string,
  args: Fields,
  asset: string
): string => Hex.encode(crypto.sha256(new TextEncoder().encode(canonicalJson([agent, ref, args, asset]))))
