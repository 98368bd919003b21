// From the reservation to the receipt, steps 7 to 11 (S211–S216). A payment runs in its own fiber: an agent that
// disconnects or cancels neither stops it half way nor loses track of it. The budget's store has the signed payment,
// sealed, from before it is sent until its result is acknowledged or the payment is proven dead. During that time the
// same call, at any process and after any restart, sends the same payment again under the same identifier, and signs
// nothing. Two identical concurrent calls are one purchase: in one process the second call gets the result of the
// first; of two processes one waits a moment for the other.
import { Clock, Context, Effect, Fiber, Layer, Schedule } from "effect"
import type { WireVocabulary } from "../../../kernel/config/WireVocabulary.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { Caller, ToolError } from "../../mcp-tools/contract.ts"
import { BudgetStore, type ExistingReservation } from "../budget/BudgetStore.ts"
import type { Reservation } from "../budget/Reservation.ts"
import { Config } from "../Config.ts"
import { PaymentBuilder } from "../payer/PaymentBuilder.ts"
import { PaymentSeal } from "../payer/PaymentSeal.ts"
import type { AgentChannels } from "../channel/AgentChannels.ts"
import { batchScheme } from "../channel/channelTerms.ts"
import { noteDelivered, payByChannel, resumeVoucher } from "../channel/payByChannel.ts"
import { concurrent } from "./heldError.ts"
import type { OpenPayment, OpenVoucher, Output, Seller } from "./Invocation.ts"
import type { PaymentPolicyCheck } from "./PaymentPolicyCheck.ts"
import { decodeKeptPayment, decodeKeptVoucher } from "./KeptWire.ts"
import { OpenPayments } from "./OpenPayments.ts"
import { resumePayment, sendPayment, storeUnavailable } from "./sendPayment.ts"
import { type Purchase, reserve, sign } from "./signPurchase.ts"

/** How long a call waits for another process that may be paying for the same call. Afterwards it takes over. */
const elsewhereMillis = 10_000
const elsewherePolls = Schedule.spaced("250 millis")

interface ExistingOpenPayment {
  readonly _tag: "Open"
  readonly open: OpenPayment
  readonly reservation: Reservation
}

/** A voucher that was sent and whose outcome is not known. */
interface ExistingVoucher {
  readonly _tag: "Voucher"
  readonly voucher: OpenVoucher
  readonly reservation: Reservation
}

export type PaymentState =
  /**
   * `made`: how often the call was paid for before; `released`: the payments among these that were signed and never
   * spent.
   */
  | { readonly _tag: "None"; readonly made: number; readonly released: ReadonlyArray<string> }
  /** Being paid for in this process. */
  | { readonly _tag: "UnderWay"; readonly outcome: Effect.Effect<Output, ToolError> }
  | ExistingOpenPayment
  | ExistingVoucher
  /** Nothing was stored for it, or this process cannot open the data. */
  | { readonly _tag: "Held"; readonly reservation: Reservation }

const buy = Effect.fnUntraced(function* (purchase: Purchase, caller: Caller, seller: Seller) {
  const store = yield* BudgetStore
  const ledger = yield* (yield* PaymentBuilder).latestLedger
  const identifier = yield* reserve(purchase.invocation, caller, purchase.made, ledger)
  // Nothing was sent yet, so it is safe to release the reservation.
  const open = yield* Effect.onError(sign(purchase, identifier, ledger), () =>
    Effect.ignore(store.move(identifier, { state: "released" }))
  )
  return yield* sendPayment(open, seller)
})

const resume = Effect.fnUntraced(function* (
  existing: ExistingOpenPayment | ExistingVoucher,
  connect: Effect.Effect<Seller, ToolError>
) {
  const { reservation } = existing
  const open = existing._tag === "Voucher" ? existing.voucher : existing.open
  const outcome =
    existing._tag === "Voucher"
      ? yield* resumeVoucher(existing.voucher, reservation, connect)
      : yield* resumePayment(existing.open, reservation, connect)
  if (outcome !== undefined) yield* noteDelivered(open.payment)
  return outcome
})

/** Depends on the scheme of the terms. */
const pay = (purchase: Purchase, caller: Caller, seller: Seller) =>
  purchase.option.scheme === batchScheme ? payByChannel(purchase, caller, seller) : buy(purchase, caller, seller)

/** The stored reservations of a call. If another process has just begun to pay for it, waits for that process first. */
const known = Effect.fnUntraced(function* (key: string): Effect.fn.Return<ExistingReservation, ToolError, BudgetStore> {
  const store = yield* BudgetStore
  const read = Effect.mapError(store.ofInvocation(key), () => storeUnavailable)
  /** True if another process may still be paying. */
  const isBegun = Effect.fnUntraced(function* ({ undelivered: [newest] }: ExistingReservation) {
    if (newest === undefined || (newest.state !== "reserved" && newest.state !== "signed")) return false
    return (yield* Clock.currentTimeMillis) - newest.createdAtMillis < elsewhereMillis
  })
  const first = yield* read
  const [begun] = first.undelivered
  if (!store.isShared || begun === undefined || !(yield* isBegun(first))) return first
  // If the answer is already stored, that purchase is about to end, and this call is a new one.
  const { content } = yield* Effect.mapError(store.kept(begun.id), () => storeUnavailable)
  const now = yield* Effect.repeat(read, { schedule: elsewherePolls, while: isBegun })
  return now.undelivered.length === 0 && content === undefined ? yield* concurrent : now
})

const stateOf = Effect.fnUntraced(function* (
  key: string
): Effect.fn.Return<PaymentState, ToolError, BudgetStore | Config | OpenPayments | PaymentSeal> {
  const { underWay } = yield* OpenPayments
  const outcome = underWay(key)
  if (outcome !== undefined) return { _tag: "UnderWay", outcome }
  const { replayMillis } = yield* Config
  yield* Effect.mapError((yield* BudgetStore).settleAcknowledged(replayMillis), () => storeUnavailable)
  const { made, released, undelivered } = yield* known(key)
  const [reservation] = undelivered
  // The same call may have begun here while we waited.
  const begun = underWay(key)
  if (begun !== undefined) return { _tag: "UnderWay", outcome: begun }
  if (reservation === undefined) return { _tag: "None", made, released }
  const { payment } = yield* Effect.mapError((yield* BudgetStore).kept(reservation.id), () => storeUnavailable)
  const text = payment === undefined ? undefined : (yield* PaymentSeal).open(reservation.id, payment)
  const open = text === undefined ? undefined : decodeKeptPayment(text, reservation)
  if (open !== undefined) return { _tag: "Open", open, reservation }
  const voucher = text === undefined ? undefined : decodeKeptVoucher(text, reservation)
  return voucher === undefined ? { _tag: "Held", reservation } : { _tag: "Voucher", voucher, reservation }
})

type Parts =
  | AgentChannels
  | BudgetStore
  | OpenPayments
  | PaymentBuilder
  | PaymentSeal
  | PaymentPolicyCheck
  | Config
  | Crypto
  | WireVocabulary

export class Payments extends Context.Service<
  Payments,
  {
    readonly stateOf: (key: string) => Effect.Effect<PaymentState, ToolError>
    /** Reserves, signs and sends; then the conversation with the seller ends. */
    readonly pay: (purchase: Purchase, caller: Caller, seller: Seller) => Effect.Effect<Output, ToolError>
    /**
     * Finishes an earlier payment from the stored data, or sends the same payment again. Undefined if it is proven
     * dead.
     */
    readonly resume: (
      existing: ExistingOpenPayment | ExistingVoucher,
      connect: Effect.Effect<Seller, ToolError>
    ) => Effect.Effect<Output | undefined, ToolError>
    /** The host has this payment's result, so the replay window begins. */
    readonly acknowledge: (identifier: string) => Effect.Effect<void>
  }
>()("tollkeeper/mcp-tools-pay/Payments") {
  static readonly layer = Layer.effect(
    Payments,
    Effect.gen(function* () {
      const parts = yield* Effect.context<Parts>()
      const { once } = yield* OpenPayments
      const scope = yield* Effect.scope
      /** The work continues when its caller leaves. */
      const inOwnFiber = <A, E>(work: Effect.Effect<A, E, Parts>): Effect.Effect<A, E> =>
        Effect.uninterruptibleMask((restore) =>
          work.pipe(
            Effect.interruptible,
            Effect.forkIn(scope),
            Effect.flatMap((fiber) => restore(Fiber.join(fiber))),
            Effect.provideContext(parts)
          )
        )
      const acknowledge = Effect.fnUntraced(function* (identifier: string) {
        const store = yield* BudgetStore
        // A released payment cannot become acknowledged; its content is kept only until now.
        if (!(yield* store.move(identifier, { state: "acknowledged" }))) yield* store.forget(identifier)
      })
      return Payments.of({
        stateOf: (key) => Effect.provideContext(stateOf(key), parts),
        pay: (purchase, caller, seller) =>
          inOwnFiber(Effect.ensuring(once(purchase.invocation.key, pay(purchase, caller, seller)), seller.close)),
        resume: (existing, connect) => inOwnFiber(once(existing.reservation.invocation, resume(existing, connect))),
        acknowledge: (identifier) => Effect.ignore(Effect.provideContext(acknowledge(identifier), parts))
      })
    })
  )
}
