// The order of one purchase, whatever kind of seller it is made at: what an earlier payment for the same call came to,
// the operator's policy, what the seller asks for, and only then a payment. The policy decides on the resolved listing
// before its seller is contacted; a payment that was made before is brought to its end without asking the policy again.
import { Effect } from "effect"
import type { Caller, ToolFault } from "../../mcp-tools/contract.ts"
import { Policy } from "../policy/Policy.ts"
import type { Challenge, PaymentOption } from "../seller/SellerWire.ts"
import { heldError } from "./heldFault.ts"
import type { Invocation, Output, Seller } from "./Invocation.ts"
import { Payments } from "./Payments.ts"

/** What a seller answered to the call without payment. */
export type Asked =
  | { readonly free: Output }
  | {
      readonly free?: undefined
      readonly challenge: Challenge
      readonly option: PaymentOption
      readonly seller: Seller
    }

/** Where the purchase is made. */
export interface Shop {
  /** Makes the call without payment; what the seller asks for fits the listing, or it fails. */
  readonly ask: Effect.Effect<Asked, ToolFault>
  /** The seller, for a payment that is signed already. */
  readonly connect: Effect.Effect<Seller, ToolFault>
}

export const makePurchase = Effect.fnUntraced(function* (invocation: Invocation, caller: Caller, shop: Shop) {
  const payments = yield* Payments
  let standing = yield* payments.standing(invocation.key)
  if (standing._tag === "Open") {
    const outcome = yield* payments.resume(standing, shop.connect)
    if (outcome !== undefined) return outcome
    standing = yield* payments.standing(invocation.key)
  }
  if (standing._tag === "UnderWay") return yield* standing.outcome
  if (standing._tag !== "None") return yield* heldError(standing.reservation)
  const { made, released } = standing
  const giveBack = yield* (yield* Policy).verify(invocation, caller, made)
  const asked = yield* Effect.onError(shop.ask, () => giveBack)
  if (asked.free !== undefined) return yield* Effect.as(giveBack, asked.free)
  const { challenge, option, seller } = asked
  return yield* payments.pay({ made, released, invocation, challenge, option }, caller, seller)
})
