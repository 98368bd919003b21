// The order of one purchase, for every kind of seller: the outcome of an earlier payment for the same call, the
// operator's policy, the seller's challenge, and only then a payment. The policy decides on the resolved listing before
// its seller is contacted; an earlier open payment is completed without asking the policy again.
import { Effect } from "effect"
import type { Caller, ToolError } from "../../mcp-tools/contract.ts"
import { Policy } from "../policy/Policy.ts"
import type { Challenge, PaymentOption } from "../seller/SellerWire.ts"
import { heldError } from "./heldError.ts"
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
  readonly ask: Effect.Effect<Asked, ToolError>
  /** The seller, for a payment that is signed already. */
  readonly connect: Effect.Effect<Seller, ToolError>
}

/** The invocation as the policy decides on it: by the most that may move. */
export const decidedOn = <A extends Pick<Invocation, "option" | "atMost">>(invocation: A): A => {
  const { atMost, option } = invocation
  return atMost === undefined ? invocation : { ...invocation, option: { ...option, amount: atMost } }
}

export const makePurchase = Effect.fnUntraced(function* (invocation: Invocation, caller: Caller, shop: Shop) {
  const payments = yield* Payments
  let state = yield* payments.stateOf(invocation.key)
  if (state._tag === "Open") {
    const outcome = yield* payments.resume(state, shop.connect)
    if (outcome !== undefined) return outcome
    state = yield* payments.stateOf(invocation.key)
  }
  if (state._tag === "UnderWay") return yield* state.outcome
  if (state._tag !== "None") return yield* heldError(state.reservation)
  const { made, released } = state
  const giveBack = yield* (yield* Policy).verify(decidedOn(invocation), caller, made)
  const asked = yield* Effect.onError(shop.ask, () => giveBack)
  if (asked.free !== undefined) return yield* Effect.as(giveBack, asked.free)
  const { challenge, option, seller } = asked
  return yield* payments.pay({ made, released, invocation, challenge, option }, caller, seller)
})
