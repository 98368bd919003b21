// Sends a signed payment to its seller, the first time or again: the same bytes under the same identifier, from any
// process. Stored data is used first: content whose payment the ledger shows is delivered without asking the seller,
// and a payment that the ledger shows dead is released.
import { Cause, Effect } from "effect"
import { toolError, type spelled, type ToolError } from "../../mcp-tools/contract.ts"
import { BudgetStore } from "../budget/BudgetStore.ts"
import type { Reservation } from "../budget/Reservation.ts"
import type { Config } from "../Config.ts"
import type { PaymentSeal } from "../payer/PaymentSeal.ts"
import {
  contentOf,
  type Delivered,
  errorOf,
  keepContent,
  keptOf,
  type Proof,
  provenOf,
  withReceipt
} from "./delivery.ts"
import type { OpenPayment, Output, PaidAnswer, Seller } from "./Invocation.ts"
import { PaymentPolicyCheck } from "./PaymentPolicyCheck.ts"
import type { KeptContent } from "./KeptWire.ts"

export const storeUnavailable = toolError(
  "UPSTREAM_TIMEOUT",
  "the budget's store is unavailable, so nothing is paid; retry later"
)

/** Once a payment has been sent, an unreadable answer counts as an answer without information. */
export const paidAnswer = (seller: Seller, payment: OpenPayment["payment"]): Effect.Effect<PaidAnswer | ToolError> =>
  seller.send(payment).pipe(
    Effect.catch((failed) => Effect.succeed(failed)),
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.failCause(cause)
        : Effect.as(
            Effect.logError("a seller's answer could not be read", cause),
            toolError("UPSTREAM_PROTOCOL_ERROR", "the seller's answer cannot be read")
          )
    )
  )

/**
 * Stores and delivers the content of a payment. Until the host has acknowledged it and the replay window has passed,
 * the same call gets it again and pays nothing.
 */
export const deliver = Effect.fnUntraced(function* (open: Delivered, kept: KeptContent, proven: Proof) {
  const store = yield* BudgetStore
  const transaction = proven.transaction === undefined ? {} : { transaction: proven.transaction }
  const receipt = kept.receipt === undefined ? {} : { receipt: kept.receipt }
  // If storing fails, a repeated call asks the seller again.
  yield* keepContent(open, kept)
  yield* Effect.ignore(store.move(open.identifier, { state: "spent", ...transaction, ...receipt }))
  return yield* withReceipt(open, kept.content, proven)
})

/**
 * The answer to a repeated payment. A failure without a settlement means that the seller no longer or not yet has the
 * payment, so it is not the purchased content.
 */
export const answerAgain = (answer: PaidAnswer | ToolError): PaidAnswer | ToolError =>
  "content" in answer && answer.isFailure === true && answer.settlement?.success !== true
    ? { ...answer, isContent: false }
    : answer

/**
 * Sends the payment, verifies the answer and records the result in the budget. `earlier`: stored content of an earlier
 * answer; a failure never replaces it.
 */
export const sendPayment = Effect.fnUntraced(function* (
  open: OpenPayment,
  seller: Seller,
  earlier?: { readonly content: KeptContent | undefined }
) {
  const answered = yield* paidAnswer(seller, open.payment)
  const answer = earlier === undefined ? answered : answerAgain(answered)
  const verified = yield* (yield* PaymentPolicyCheck).verify(answer, open)
  const before = "content" in answer && answer.isFailure !== true ? undefined : earlier?.content
  if (verified._tag === "Settled" && "content" in answer) {
    if (before !== undefined) return yield* deliver(open, before, provenOf(before, verified.transaction))
    return yield* deliver(open, keptOf(open, answer), { ...verified, status: "settled" })
  }
  const isContent = "content" in answer && answer.isContent && answer.asksAgain === undefined
  const part = isContent && answer.isPart === true ? answer.content : undefined
  const isNew = isContent && part === undefined && before === undefined
  const isKept = before !== undefined || (isNew && (yield* keepContent(open, keptOf(open, answer))))
  const failed = verified as Exclude<typeof verified, { readonly _tag: "Settled" }>
  const transaction = failed._tag === "Unknown" ? failed.transaction : undefined
  yield* Effect.ignore(
    (yield* BudgetStore).move(open.identifier, {
      state: "unknown",
      ...(transaction === undefined ? {} : { transaction })
    })
  )
  return yield* yield* errorOf(open, failed, isKept, part)
})

/** The content of a released payment, if any came: the agent gets it for free. */
const released = (open: OpenPayment, { content, misfits }: KeptContent) =>
  withReceipt(open, content, { status: "released", transaction: undefined, source: "ledger", misfits })

/**
 * The outcome of a payment signed earlier, here or elsewhere. Undefined if the ledger shows that it can never be spent
 * and no content came: the call may then be paid for, and only that payment counts.
 */
export const resumePayment = Effect.fnUntraced(function* (
  open: OpenPayment,
  { state, transaction: named }: Reservation,
  connect: Effect.Effect<Seller, ToolError>
): Effect.fn.Return<
  Output | undefined,
  ToolError,
  BudgetStore | Config | PaymentPolicyCheck | PaymentSeal | Effect.Services<typeof spelled>
> {
  const store = yield* BudgetStore
  const verify = yield* PaymentPolicyCheck
  const kept = yield* Effect.mapError(store.kept(open.identifier), () => storeUnavailable)
  const content = yield* contentOf(open, kept.content)
  if (state === "released") return content === undefined ? undefined : yield* released(open, content)
  const isOnLedger = state === "spent" || state === "acknowledged"
  if (isOnLedger && content !== undefined) return yield* withReceipt(open, content.content, provenOf(content, named))
  const fate = yield* verify.fate(open, named)
  if (fate._tag === "Dead") {
    yield* Effect.mapError(store.move(open.identifier, { state: "released" }), () => storeUnavailable)
    return content === undefined ? undefined : yield* released(open, content)
  }
  if (content !== undefined) {
    const proof = fate._tag === "Paid" ? fate.proof : yield* verify.find(open, named)
    if (proof !== undefined) return yield* deliver(open, content, provenOf(content, proof.transaction))
  }
  const seller = yield* Effect.catch(connect, ({ message: why }) =>
    Effect.flatMap(errorOf(open, { _tag: "Unknown", why, transaction: named }, content !== undefined), Effect.fail)
  )
  return yield* Effect.ensuring(sendPayment(open, seller, { content }), seller.close)
})
