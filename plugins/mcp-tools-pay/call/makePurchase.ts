// The order of one purchase, for every kind of seller: the outcome of an earlier payment for the same call, the
// operator's policy, the seller's challenge, and only then a payment. The policy decides on the resolved listing before
// its seller is contacted; an earlier open payment is completed without asking the policy or the catalog again.
import { Effect, Exit, Fiber } from "effect"
import type { Caller, ToolError } from "../../mcp-tools/contract.ts"
import { Policy } from "../policy/Policy.ts"
import { type Challenge, isFields, type PaymentOption } from "../seller/SellerWire.ts"
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
export const decidedOn = <A extends Pick<Invocation, "option" | "deposit">>(invocation: A): A => {
  const { deposit, option } = invocation
  return deposit === undefined ? invocation : { ...invocation, option: { ...option, amount: deposit.amount } }
}

/** A call whose result is kept until its host has acknowledged it. */
export const acknowledged = <E, R>(call: Effect.Effect<Output, E, R>, { onAcknowledged }: Caller) =>
  Effect.gen(function* () {
    const payments = yield* Payments
    const output = yield* call
    const { receipt } = output
    const id = isFields(receipt) ? receipt["paymentIdentifier"] : undefined
    if (typeof id === "string") onAcknowledged?.(id, payments.acknowledge(id))
    return output
  })

/** What is known of a payment for the same call, by this version or one before it. */
const earlierOf = Effect.fnUntraced(function* ({ formerKeys, key }: Pick<Invocation, "key" | "formerKeys">) {
  const { stateOf } = yield* Payments
  const state = yield* stateOf(key)
  for (const former of state._tag === "None" ? formerKeys : []) {
    const known = yield* stateOf(former)
    if (known._tag !== "None") return known
  }
  return state
})

/**
 * What a payment that was made earlier for the same call comes to, where the call cannot be prepared now: its listing
 * is gone, is another version, or asks for more, or the catalog hangs. Nothing when there is none, or none that counts.
 * `found` runs before anything is done for one that there is.
 */
export const recoverPurchase = Effect.fnUntraced(function* (
  keys: Pick<Invocation, "key" | "formerKeys">,
  connect: Effect.Effect<Seller, ToolError>,
  found: Effect.Effect<void>
) {
  const state = yield* earlierOf(keys)
  if (state._tag !== "None") yield* found
  if (state._tag === "Open" || state._tag === "Voucher") return yield* (yield* Payments).resume(state, connect)
  if (state._tag === "UnderWay") return yield* state.outcome
  return state._tag === "Held" ? yield* heldError(state.reservation) : undefined
})

/** How long an earlier payment for the same call waits for the catalog. */
const catalogWait = "2 seconds"

/**
 * A prepared call, or where it cannot be prepared now the outcome of an earlier payment for it, if there is one. That
 * waits two seconds for the catalog, and then gives up what the call waits for; a call that was not paid for waits on.
 */
export const orRecovered = Effect.fnUntraced(function* <A, R, B>(
  prepared: Effect.Effect<A, ToolError, R>,
  recovered: (found: Effect.Effect<void>) => Effect.Effect<Output | undefined, ToolError, B>
): Effect.fn.Return<A | { readonly outcome: Output }, ToolError, R | B> {
  const orEarlier = (prepared: Effect.Effect<A, ToolError, R>) =>
    Effect.catch(prepared, (failed) =>
      Effect.flatMap(recovered(Effect.void), (outcome) =>
        outcome === undefined ? failed : Effect.succeed({ outcome })
      )
    )
  const preparing = yield* Effect.forkChild(prepared)
  const soon = yield* Effect.timeoutOption(Fiber.await(preparing), catalogWait)
  if (soon._tag === "Some") return yield* orEarlier(soon.value)
  const outcome = yield* recovered(Fiber.interrupt(preparing))
  if (outcome !== undefined) return { outcome }
  const late = yield* Fiber.await(preparing)
  // One that was found and is proven dead counts for nothing: the call is prepared anew.
  return yield* orEarlier(Exit.hasInterrupts(late) ? prepared : late)
})

export const makePurchase = Effect.fnUntraced(function* (invocation: Invocation, caller: Caller, shop: Shop) {
  const payments = yield* Payments
  const earlier = earlierOf(invocation)
  let state = yield* earlier
  if (state._tag === "Open" || state._tag === "Voucher") {
    const outcome = yield* payments.resume(state, shop.connect)
    if (outcome !== undefined) return outcome
    state = yield* earlier
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
