// From the reservation to the receipt, steps 7 to 11 (S211–S216). It runs in a fiber of its own: an agent that hangs up
// or cancels neither stops a payment half way nor loses track of one. A payment that is signed is remembered until its
// result is delivered or too old; the same call meanwhile sends the same payment again, under the same identifier, and
// signs nothing.
import { Clock, Effect, Fiber, type Scope } from "effect"
import { Hex } from "effect/encoding"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { BudgetStore } from "../budget/BudgetStore.ts"
import type { Ceilings, Reservation } from "../budget/Reservation.ts"
import type { makeBuildPayment } from "../payer/buildPayment.ts"
import { type Challenge, encodePayment, type Fields, type PaymentOption } from "../seller/SellerWire.ts"
import type { SellerSession } from "../seller/SellerSession.ts"
import type { Caller } from "../Tool.ts"
import { fault, type ToolFault } from "../ToolFault.ts"
import type { Invocation, OpenPayment } from "./Invocation.ts"
import type { makeJudge } from "./judgeResult.ts"

export interface PayParts {
  readonly crypto: Crypto["Service"]
  readonly store: BudgetStore["Service"]
  readonly ceilings: Ceilings
  readonly build: ReturnType<typeof makeBuildPayment>
  readonly judge: ReturnType<typeof makeJudge>
  readonly paidTimeoutMillis: number
  /** A network as the house speaks outwards. */
  readonly spell: (network: string) => string
  readonly scope: Scope.Scope
}

/** Payments whose result is open, and how long each is remembered: longer than any authorization lives. */
const openMax = 1_000
const openMillis = 3_900_000
/** A payment whose result this process cannot ask for again stands in the way of the same call for so long. */
const spentMillis = 600_000

export type Standing =
  | { readonly _tag: "None" }
  | { readonly _tag: "Open"; readonly open: OpenPayment }
  /** Under way, or of a process before this one. */
  | { readonly _tag: "Held"; readonly reservation: Reservation }

type Output = Readonly<Record<string, unknown>>

const storeAway = fault("UPSTREAM_TIMEOUT", "the budget cannot be read or written now, so nothing is paid")

/** What the tool returned, member for member. */
const delivered = (result: Fields): Output => ({
  content: result["content"] ?? [],
  ...("structuredContent" in result ? { structuredContent: result["structuredContent"] } : {}),
  ...(result["isError"] === true ? { isError: true } : {})
})

export const makePayInvocation = (parts: PayParts) => {
  const { build, ceilings, crypto, judge, store } = parts
  const opens = new Map<string, OpenPayment & { readonly at: number; isBusy: boolean }>()

  const remember = (open: OpenPayment, now: number) => {
    for (const [key, { at }] of opens) if (now - at > openMillis || opens.size >= openMax) opens.delete(key)
    opens.set(open.invocation.key, { ...open, at: now, isBusy: false })
  }

  const busy = (key: string, isBusy: boolean) =>
    Effect.sync(() => {
      const open = opens.get(key)
      if (open !== undefined) open.isBusy = isBusy
    })

  const receiptOf = ({ authorization: _, identifier, invocation }: OpenPayment, transaction: string) => ({
    paymentIdentifier: identifier,
    ref: invocation.ref,
    versionHash: invocation.versionHash,
    network: parts.spell(invocation.terms.option.network),
    scheme: invocation.terms.option.scheme,
    asset: invocation.terms.option.asset,
    payTo: invocation.terms.option.payTo,
    authorizedAmount: invocation.terms.option.amount.toString(),
    settledAmount: invocation.terms.option.amount.toString(),
    transaction,
    status: "settled"
  })

  /** Sends the payment, judges the answer and keeps the budget's books. */
  const send = Effect.fnUntraced(
    function* (open: OpenPayment, seller: SellerSession): Effect.fn.Return<Output, ToolFault> {
      const { identifier, invocation, payment } = open
      yield* busy(invocation.key, true)
      const answer = yield* seller
        .callTool(invocation.identity.toolName, invocation.args, { payment, timeoutMillis: parts.paidTimeoutMillis })
        .pipe(Effect.catch((failed) => Effect.succeed(failed)))
      const judged = yield* judge(answer, open)
      const details = {
        paymentIdentifier: identifier,
        network: parts.spell(invocation.terms.option.network),
        authorizedUntilLedger: open.authorization.expirationLedger
      }
      if (judged._tag === "Settled") {
        // A store that is away now finds the payment spent later, by its nonce.
        yield* Effect.ignore(store.move(identifier, { state: "settled", transaction: judged.transaction }))
        opens.delete(invocation.key)
        return { ...delivered(answer as Fields), receipt: receiptOf(open, judged.transaction) }
      }
      const transaction = judged._tag === "Unknown" ? judged.transaction : undefined
      yield* Effect.ignore(
        store.move(identifier, { state: "unknown", ...(transaction === undefined ? {} : { transaction }) })
      )
      switch (judged._tag) {
        case "StillRequired":
          return yield* fault(
            "PAYMENT_REQUIRED",
            "the seller asks for payment again; the budget stays held while the authorization lives",
            { ...details, reason: judged.reason }
          )
        case "Rejected":
          return yield* fault(
            "PAYMENT_REJECTED",
            "the settlement was rejected; the budget stays held while the authorization lives",
            { ...details, reason: judged.reason }
          )
        case "Unknown":
          return yield* fault(
            "SETTLEMENT_UNKNOWN",
            `signed and not confirmed: ${judged.why}. The same call asks again and pays nothing more`,
            {
              ...details,
              ...(judged.transaction === undefined ? {} : { transaction: judged.transaction })
            }
          )
      }
    },
    (effect, { invocation: { key } }) => Effect.ensuring(effect, busy(key, false))
  )

  const reserve = Effect.fnUntraced(function* (invocation: Invocation, caller: Caller) {
    const { amount, asset, network, payTo } = invocation.terms.option
    const now = yield* Clock.currentTimeMillis
    const id = `pay_${Hex.encode(crypto.randomBytes(16))}`
    const fits = yield* Effect.mapError(
      store.reserve(
        {
          id,
          day: new Date(now).toISOString().slice(0, 10),
          agent: caller.principal,
          session: caller.session,
          invocation: invocation.key,
          network,
          asset,
          payTo,
          amount,
          state: "reserved",
          createdAtMillis: now,
          authorization: undefined,
          transaction: undefined
        },
        ceilings
      ),
      () => storeAway
    )
    return fits
      ? id
      : yield* fault("BUDGET_EXCEEDED", "what is left of the session's or the day's budget does not cover this call", {
          amount: amount.toString(),
          asset
        })
  })

  /** Steps 7 to 9: nothing is signed before its authorization stands in the store. */
  const sign = Effect.fnUntraced(function* (
    invocation: Invocation,
    challenge: Challenge,
    option: PaymentOption,
    identifier: string
  ) {
    const built = yield* build(option, (authorization) =>
      Effect.flatMap(
        Effect.mapError(store.move(identifier, { state: "signed", authorization }), () => storeAway),
        (moved) => (moved ? Effect.void : Effect.fail(fault("PAYMENT_REJECTED", "the reservation is gone")))
      )
    )
    const payment = encodePayment({ challenge, option, transaction: built.transaction, identifier })
    return { identifier, payment, authorization: built.authorization, invocation }
  })

  const pay = Effect.fnUntraced(function* (
    invocation: Invocation,
    caller: Caller,
    challenge: Challenge,
    option: PaymentOption,
    seller: SellerSession
  ): Effect.fn.Return<Output, ToolFault> {
    const identifier = yield* reserve(invocation, caller)
    // Until the payment leaves this process, letting go of it is safe.
    const open = yield* Effect.onError(sign(invocation, challenge, option, identifier), () =>
      Effect.ignore(store.move(identifier, { state: "released" }))
    )
    remember(open, yield* Clock.currentTimeMillis)
    return yield* send(open, seller)
  })

  /** The conversation with the seller goes with the payment: whoever waits for it must not end it. */
  const inOwnFiber = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(Effect.forkIn(Effect.interruptible(effect), parts.scope), (fiber) => restore(Fiber.join(fiber)))
    )

  /** What is known of an earlier payment for the same call. */
  const standing = Effect.fnUntraced(function* (key: string): Effect.fn.Return<Standing, ToolFault> {
    const now = yield* Clock.currentTimeMillis
    const held = (yield* Effect.mapError(store.ofInvocation(key), () => storeAway)).filter(
      ({ createdAtMillis, state }) => state !== "spent" || now - createdAtMillis < spentMillis || opens.has(key)
    )
    const [newest] = held
    if (newest === undefined) {
      opens.delete(key)
      return { _tag: "None" }
    }
    const open = opens.get(key)
    if (open === undefined || open.isBusy || !held.some(({ id }) => id === open.identifier))
      return { _tag: "Held", reservation: newest }
    return { _tag: "Open", open }
  })

  return {
    standing,
    pay: (invocation: Invocation, caller: Caller, challenge: Challenge, option: PaymentOption, seller: SellerSession) =>
      inOwnFiber(Effect.ensuring(pay(invocation, caller, challenge, option, seller), seller.close)),
    /** Sends an open payment again, the same to the last byte. */
    sendAgain: (open: OpenPayment, seller: SellerSession) =>
      inOwnFiber(Effect.ensuring(send(open, seller), seller.close))
  }
}
