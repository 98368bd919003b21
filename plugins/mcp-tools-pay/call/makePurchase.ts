// The order of one purchase, for every kind of seller: the outcome of an earlier payment for the same call, the
// operator's policy, the seller's challenge, and only then a payment. The policy decides on the resolved listing before
// the seller is contacted. An earlier open payment is completed without asking the policy or the catalog again.
import { Effect, Exit, Fiber } from "effect"
import type { Caller, ToolError } from "../../mcp-tools/contract.ts"
import { Policy } from "../policy/Policy.ts"
import { type Challenge, isFields, type PaymentOption } from "../seller/SellerWire.ts"
import { concurrent, heldError } from "./heldError.ts"
import type { Invocation, Output, Seller } from "./Invocation.ts"
import { Payments, type PaymentState } from "./Payments.ts"

/** A seller's answer to the call without payment. */
type SellerAnswer =
  | { readonly free: Output }
  | {
      readonly free?: undefined
      readonly challenge: Challenge
      readonly option: PaymentOption
      readonly seller: Seller
    }

/** Access to the seller of a purchase. */
export interface Shop {
  /** Makes the call without payment. Fails if the seller's terms do not match the listing. */
  readonly ask: Effect.Effect<SellerAnswer, ToolError>
  /** Connects to the seller for a payment that is already signed. */
  readonly connect: Effect.Effect<Seller, ToolError>
}

/** The invocation as the policy sees it: with the largest amount that may move. */
export const decidedOn = <A extends Pick<Invocation, "option" | "deposit">>(invocation: A): A => {
  const { deposit, option } = invocation
  return deposit === undefined ? invocation : { ...invocation, option: { ...option, amount: deposit.amount } }
}

/** Runs a call and registers the host's acknowledgement of its result. */
export const acknowledged = <E, R>(call: Effect.Effect<Output, E, R>, { onAcknowledged }: Caller) =>
  Effect.gen(function* () {
    const payments = yield* Payments
    const output = yield* call
    const { receipt } = output
    const id = isFields(receipt) ? receipt["paymentIdentifier"] : undefined
    if (typeof id === "string") onAcknowledged?.(id, payments.acknowledge(id))
    return output
  })

/** The outcome of an open payment; undefined if there is none, or if it is proven dead. */
const resumed = Effect.fnUntraced(function* (state: PaymentState, connect: Shop["connect"]) {
  if (state._tag === "UnderWay") return yield* state.outcome
  const isOpen = state._tag === "Open" || state._tag === "Voucher"
  return isOpen ? yield* (yield* Payments).resume(state, connect) : undefined
})

/**
 * The result of a concurrent identical call. A call that came too late to pay fails with `concurrent`, and so do the
 * calls that waited for it; each of them reads the state again. The number of such calls bounds the retries.
 */
const twinResult = (earlier: Effect.Effect<PaymentState, ToolError>, connect: Shop["connect"]) =>
  Effect.flatMap(earlier, (state) => resumed(state, connect)).pipe(
    Effect.retry({ times: 100, while: (error: ToolError) => error === concurrent }),
    Effect.flatMap((output) => (output === undefined ? concurrent : Effect.succeed(output)))
  )

/**
 * The outcome of an earlier payment for the same call, used if the call cannot be prepared now: its listing was
 * removed, has another version or a higher price, or the catalog hangs. Undefined if there is no payment or it is dead.
 * `found` runs first if there is a payment.
 */
export const recoverPurchase = Effect.fnUntraced(function* (
  key: string,
  connect: Effect.Effect<Seller, ToolError>,
  found: Effect.Effect<void>
) {
  const state = yield* (yield* Payments).stateOf(key)
  if (state._tag !== "None") yield* found
  return state._tag === "Held" ? yield* heldError(state.reservation) : yield* resumed(state, connect)
})

/** How long an earlier payment for the same call waits for the catalog. */
const catalogWait = "2 seconds"

/**
 * Prepares a call. If that fails, returns the outcome of an earlier payment for the call, if there is one. After two
 * seconds without an answer of the catalog we search for such a payment and, if we find one, stop waiting. Without one,
 * the call keeps waiting.
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
  // The payment that interrupted the preparation is proven dead, so we prepare the call again.
  return yield* orEarlier(Exit.hasInterrupts(late) ? prepared : late)
})

export const makePurchase = Effect.fnUntraced(function* (invocation: Invocation, caller: Caller, shop: Shop) {
  const payments = yield* Payments
  const earlier = payments.stateOf(invocation.key)
  const orTwin = (paid: Effect.Effect<Output, ToolError>) =>
    Effect.catchIf(
      paid,
      (error) => error === concurrent,
      () => twinResult(earlier, shop.connect)
    )
  let state = yield* earlier
  if (state._tag === "Open" || state._tag === "Voucher") {
    const outcome = yield* payments.resume(state, shop.connect)
    if (outcome !== undefined) return outcome
    state = yield* earlier
  }
  if (state._tag === "UnderWay") return yield* orTwin(state.outcome)
  if (state._tag !== "None") return yield* heldError(state.reservation)
  const { made, released } = state
  const giveBack = yield* (yield* Policy).verify(decidedOn(invocation), caller, made)
  const answer = yield* Effect.onError(shop.ask, () => giveBack)
  if (answer.free !== undefined) return yield* Effect.as(giveBack, answer.free)
  const { challenge, option, seller } = answer
  // A twin may have paid while this call asked: it gets the twin's result.
  return yield* orTwin(payments.pay({ made, released, invocation, challenge, option }, caller, seller))
})
