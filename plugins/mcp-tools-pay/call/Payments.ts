// From the reservation to the receipt, steps 7 to 11 (S211–S216). It runs in a fiber of its own: an agent that hangs up
// or cancels neither stops a payment half way nor loses track of one. A payment that is signed is remembered until its
// result is delivered or too old; the same call meanwhile sends the same payment again, under the same identifier, and
// signs nothing. Two identical calls at once are one purchase: here the second has the result of the first, and of two
// processes one is refused.
import { Cause, Clock, Context, Effect, Fiber, Layer } from "effect"
import { Hex } from "effect/encoding"
import type { WireWords } from "../../../kernel/config/WireWords.ts"
import type { LatestLedger } from "../../../kernel/ledger/LedgerRpc.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { type Caller, fault, type InputNeeded, spelled, type ToolFault } from "../../mcp-tools/contract.ts"
import { BudgetStore } from "../budget/BudgetStore.ts"
import type { Reservation } from "../budget/Reservation.ts"
import { Config } from "../Config.ts"
import { PaymentBuilder } from "../payer/PaymentBuilder.ts"
import { Policy } from "../policy/Policy.ts"
import { type Challenge, encodePayment, type PaymentOption } from "../seller/SellerWire.ts"
import type { Invocation, OpenPayment, Output, PaidAnswer, Seller } from "./Invocation.ts"
import { type Judged, Judge } from "./Judge.ts"
import { OpenPayments } from "./OpenPayments.ts"

/**
 * A payment whose result this process cannot ask for again stands in the way of the same call for so long, and for so
 * many ledgers after the last of its authorization: by a clock that is ahead alone nothing is paid for twice.
 */
const spentMillis = 600_000
const spentLedgers = 120

export type PaymentStanding =
  /** `made`: how often the call was paid for before. */
  | { readonly _tag: "None"; readonly made: number }
  /** Being paid for in this process. */
  | { readonly _tag: "UnderWay"; readonly outcome: Effect.Effect<Output, ToolFault> }
  | { readonly _tag: "Open"; readonly open: OpenPayment }
  /** Of another process, or of one before this. */
  | { readonly _tag: "Held"; readonly reservation: Reservation }

const storeAway = fault("UPSTREAM_TIMEOUT", "the budget cannot be read or written now, so nothing is paid")

const receiptOf = (
  { identifier, invocation: { option, ref, versionHash } }: OpenPayment,
  network: string,
  transaction: string
) => ({
  paymentIdentifier: identifier,
  ref,
  versionHash,
  network,
  scheme: option.scheme,
  asset: option.asset,
  payTo: option.payTo,
  authorizedAmount: option.amount.toString(),
  settledAmount: option.amount.toString(),
  transaction,
  status: "settled"
})

/** What an agent is told of a payment that was signed and did not come to its result. */
const faultOf = (judged: Exclude<Judged, { readonly _tag: "Settled" }>, details: Output): ToolFault => {
  switch (judged._tag) {
    case "StillRequired":
      return fault(
        "PAYMENT_REQUIRED",
        "the seller asks for payment again; the budget stays held while the authorization lives",
        { ...details, reason: judged.reason }
      )
    case "Rejected":
      return fault(
        "PAYMENT_REJECTED",
        "the settlement was rejected; the budget stays held while the authorization lives",
        { ...details, reason: judged.reason }
      )
    case "Unknown":
      return fault(
        "SETTLEMENT_UNKNOWN",
        `signed and not confirmed: ${judged.why}. The same call asks again and pays nothing more`,
        { ...details, ...(judged.transaction === undefined ? {} : { transaction: judged.transaction }) }
      )
  }
}

/** Once a payment has left, whatever an answer does to its reader is an answer that says nothing. */
const paidAnswer = (seller: Seller, payment: OpenPayment["payment"]): Effect.Effect<PaidAnswer | ToolFault> =>
  seller.send(payment).pipe(
    Effect.catch((failed) => Effect.succeed(failed)),
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.failCause(cause)
        : Effect.as(
            Effect.logError("a seller's answer could not be read", cause),
            fault("UPSTREAM_PROTOCOL_ERROR", "the seller's answer cannot be read")
          )
    )
  )

/** Sends the payment, judges the answer and keeps the budget's books. */
const send = Effect.fnUntraced(function* (open: OpenPayment, seller: Seller) {
  const { authorization, identifier, invocation, payment } = open
  const store = yield* BudgetStore
  const opens = yield* OpenPayments
  const answer = yield* paidAnswer(seller, payment)
  const judged = yield* (yield* Judge).judge(answer, open)
  const network = (yield* spelled)(invocation.option.network)
  if (judged._tag === "Settled" && "content" in answer) {
    // A store that is away now finds the payment spent later, by its nonce.
    yield* Effect.ignore(store.move(identifier, { state: "settled", transaction: judged.transaction }))
    yield* opens.forget(invocation.key)
    return { ...answer.content, receipt: receiptOf(open, network, judged.transaction) } as Output
  }
  const transaction = judged._tag === "Unknown" ? judged.transaction : undefined
  yield* Effect.ignore(
    store.move(identifier, { state: "unknown", ...(transaction === undefined ? {} : { transaction }) })
  )
  const details = {
    paymentIdentifier: identifier,
    network,
    authorizedUntilLedger: authorization.expirationLedger
  }
  return yield* faultOf(judged as Exclude<Judged, { readonly _tag: "Settled" }>, details)
})

/** The day is the ledger's: a machine whose clock is wrong neither opens a second budget nor closes the first. */
const reserve = Effect.fnUntraced(function* (
  invocation: Invocation,
  caller: Caller,
  made: number,
  { closedAtSeconds }: LatestLedger
) {
  const { amount, asset, network, payTo } = invocation.option
  const { ceilings } = yield* Config
  const now = yield* Clock.currentTimeMillis
  const id = `pay_${Hex.encode((yield* Crypto).randomBytes(16))}`
  const reservation: Reservation = {
    id,
    day: new Date(closedAtSeconds * 1_000).toISOString().slice(0, 10),
    agent: caller.principal,
    session: caller.session,
    invocation: invocation.key,
    network,
    asset,
    payTo,
    origin: invocation.about.origin,
    grade: invocation.about.grade,
    amount,
    state: "reserved",
    createdAtMillis: now,
    authorization: undefined,
    transaction: undefined
  }
  const reserved = yield* Effect.mapError((yield* BudgetStore).reserve(reservation, ceilings, made), () => storeAway)
  if (reserved === "kept") return id
  if (reserved === "changed") {
    return yield* fault(
      "SETTLEMENT_UNKNOWN",
      "the same call was or is paid for by another one that came at once; nothing was signed for this one",
      { reason: "concurrent_call" }
    )
  }
  return yield* fault(
    "BUDGET_EXCEEDED",
    "what is left of the budget, or of the payments that a minute may have, does not cover this call",
    {
      amount: amount.toString(),
      asset
    }
  )
})

/** Steps 7 to 9: nothing is signed before its authorization stands in the store. */
const sign = Effect.fnUntraced(function* (
  invocation: Invocation,
  challenge: Challenge,
  option: PaymentOption,
  identifier: string,
  ledger: LatestLedger
) {
  const store = yield* BudgetStore
  const { build } = yield* PaymentBuilder
  const built = yield* build(option, ledger, (authorization) =>
    Effect.flatMap(
      Effect.mapError(store.move(identifier, { state: "signed", authorization }), () => storeAway),
      (moved) => (moved ? Effect.void : Effect.fail(fault("PAYMENT_REJECTED", "the reservation is gone")))
    )
  )
  const payment = encodePayment({ challenge, option, transaction: built.transaction, identifier })
  return { identifier, payment, authorization: built.authorization, invocation }
})

/** What a payment is made from: the invocation, what the seller asks for, and which of it is paid. */
export interface Purchase {
  /** How often the call was paid for when its payment was decided on. */
  readonly made: number
  readonly invocation: Invocation
  readonly challenge: Challenge
  readonly option: PaymentOption
}

const buy = Effect.fnUntraced(function* (
  { challenge, invocation, made, option }: Purchase,
  caller: Caller,
  seller: Seller
) {
  const store = yield* BudgetStore
  const ledger = yield* (yield* PaymentBuilder).latestLedger
  const identifier = yield* reserve(invocation, caller, made, ledger)
  // Until the payment leaves this process, letting go of it is safe.
  const open = yield* Effect.onError(sign(invocation, challenge, option, identifier, ledger), () =>
    Effect.ignore(store.move(identifier, { state: "released" }))
  )
  yield* (yield* OpenPayments).remember(open)
  return yield* send(open, seller)
})

const pay = Effect.fnUntraced(function* (purchase: Purchase, caller: Caller, seller: Seller) {
  yield* (yield* Policy).judge(purchase.invocation, caller)
  const { once } = yield* OpenPayments
  return yield* once(purchase.invocation.key, buy(purchase, caller, seller))
})

const standing = Effect.fnUntraced(function* (
  key: string
): Effect.fn.Return<PaymentStanding, ToolFault, BudgetStore | OpenPayments | PaymentBuilder> {
  const { find, forget, underWay } = yield* OpenPayments
  const outcome = underWay(key)
  if (outcome !== undefined) return { _tag: "UnderWay", outcome }
  const now = yield* Clock.currentTimeMillis
  const { made, undelivered } = yield* Effect.mapError((yield* BudgetStore).ofInvocation(key), () => storeAway)
  const open = find(key)
  const isLongAgo = ({ createdAtMillis, state }: Reservation): boolean =>
    state === "spent" && now - createdAtMillis >= spentMillis && open === undefined
  const ledger = undelivered.some(isLongAgo) ? (yield* (yield* PaymentBuilder).latestLedger).sequence : 0
  const held = undelivered.filter(
    (one) => !isLongAgo(one) || ledger < (one.authorization?.expirationLedger ?? ledger) + spentLedgers
  )
  const [newest] = held
  if (newest === undefined) {
    yield* forget(key)
    return { _tag: "None", made }
  }
  return open === undefined || !held.some(({ id }) => id === open.identifier)
    ? { _tag: "Held", reservation: newest }
    : { _tag: "Open", open }
})

type Parts = Policy | BudgetStore | OpenPayments | PaymentBuilder | Judge | Config | Crypto | WireWords

export class Payments extends Context.Service<
  Payments,
  {
    /** What is known of an earlier payment for the same call. */
    readonly standing: (key: string) => Effect.Effect<PaymentStanding, ToolFault>
    /** Reserves, signs and sends; the conversation with the seller ends with it. */
    readonly pay: (purchase: Purchase, caller: Caller, seller: Seller) => Effect.Effect<Output, ToolFault | InputNeeded>
    /** Sends an open payment again, the same to the last byte. */
    readonly sendAgain: (open: OpenPayment, seller: Seller) => Effect.Effect<Output, ToolFault>
  }
>()("tollkeeper/mcp-tools-pay/Payments") {
  static readonly layer = Layer.effect(
    Payments,
    Effect.gen(function* () {
      const parts = yield* Effect.context<Parts>()
      const { once } = yield* OpenPayments
      const scope = yield* Effect.scope
      /** The conversation with the seller goes with the payment: whoever waits for it must not end it. */
      const inOwnFiber = <A, E>(effect: Effect.Effect<A, E, Parts>, seller: Seller): Effect.Effect<A, E> =>
        Effect.uninterruptibleMask((restore) =>
          effect.pipe(
            Effect.ensuring(seller.close),
            Effect.interruptible,
            Effect.forkIn(scope),
            Effect.flatMap((fiber) => restore(Fiber.join(fiber))),
            Effect.provideContext(parts)
          )
        )
      return Payments.of({
        standing: (key) => Effect.provideContext(standing(key), parts),
        pay: (purchase, caller, seller) => inOwnFiber(pay(purchase, caller, seller), seller),
        sendAgain: (open, seller) => inOwnFiber(once(open.invocation.key, send(open, seller)), seller)
      })
    })
  )
}
