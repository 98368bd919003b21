// The steps of one settle: the stored records of the payment, a place in the queue for a channel, the scheme's
// verification, adoption if the ledger calls it spent, the work, and the wait for its outcome. Each step is a separate
// file in this folder.
import { Clock, Deferred, Duration, Effect, Option } from "effect"
import { Limits } from "../../config/Limits.ts"
import { noteRequest } from "../../http/RequestNotes.ts"
import {
  answerObjection,
  answerUnclaimed,
  busy,
  busyFor,
  internalError,
  makeUnavailable,
  refuse,
  unadopted
} from "../answers.ts"
import { isRefusal, type Refusal } from "../Refusal.ts"
import { Adoption } from "./Adoption.ts"
import { verifyWithinTimeout } from "./verifyWithScheme.ts"
import { makeRespondFromExisting, type SettleRequest } from "./existing.ts"
import { makeAdmission } from "./admit.ts"
import { makeWaitForOutcome, timeLeft } from "./waitForOutcome.ts"
import { type WorkerReport, SettlementWorker } from "./SettlementWorker.ts"

/** Settles a payment, with the steps' services resolved once. */
export const makeSettlePayment = Effect.gen(function* () {
  const adoption = yield* Adoption
  const limits = yield* Limits
  const worker = yield* SettlementWorker
  const admission = yield* makeAdmission
  const respondFromExisting = yield* makeRespondFromExisting
  const waitForOutcome = yield* makeWaitForOutcome
  const unavailable = yield* makeUnavailable

  /** A payment that the scheme refuses: spent and expired authorizations may have been settled by us. */
  const answerRefused = Effect.fnUntraced(function* (request: SettleRequest, refused: Refusal) {
    // A twin may have been recorded and even have landed in between: then we caused the ledger's refusal ourselves.
    const twin = yield* respondFromExisting(request)
    const isOver = refused.authorizationSpent === true || refused.authorizationExpiresLedger !== undefined
    if (twin !== undefined || !isOver) return twin ?? refuse(refused)
    const adopted = yield* adoption.adopt(request.payment, request.scheme, refused)
    // Another request may have adopted or recorded it concurrently.
    const found = yield* respondFromExisting(request)
    if (found !== undefined) return found
    // A transaction of this service may still land after its record was lost.
    if (adopted?._tag === "Alive")
      return busyFor("the authorization expires too soon", Option.getOrUndefined(refused.payer))
    if (adopted?._tag === "Unclaimed") return answerUnclaimed(refused, adopted.transaction)
    return adopted?._tag === "Ours" ? busy() : refuse(unadopted(refused, adopted))
  })

  const answerReport = Effect.fnUntraced(function* (request: SettleRequest, payer: string, started: WorkerReport) {
    switch (started._tag) {
      case "Recorded":
        yield* noteRequest({ settlement: started.id })
        return yield* waitForOutcome({ ...started, payer }, request.payment, request.startedAt)
      case "Answer":
        return started.answer._tag === "Failed" && started.answer.refusal.authorizationExpiresLedger !== undefined
          ? yield* answerRefused(request, started.answer.refusal)
          : started.answer
      case "Known":
        return (yield* respondFromExisting(request)) ?? busy(payer)
      case "Died":
        return (yield* respondFromExisting(request)) ?? refuse(internalError)
    }
  })

  return Effect.fnUntraced(function* (request: SettleRequest) {
    const { flight, payment, scheme, startedAt } = request
    const already = yield* respondFromExisting(request)
    if (already !== undefined) return already
    const taken = yield* admission.admit(payment, scheme, "settle", Duration.millis(yield* timeLeft(startedAt, limits)))
    if (taken._tag !== "Admitted") return answerObjection(taken)
    const { keep, ticket } = taken
    const checked = yield* verifyWithinTimeout(payment, scheme, "settle", limits)
    if (isRefusal(checked)) {
      yield* ticket.leave
      return yield* answerRefused(request, checked)
    }
    const objection = yield* admission.objectToCost(payment, scheme, checked.resourceFeeStroops)
    if (objection !== undefined) return answerObjection(objection, checked.payer)
    const verifiedAt = yield* Clock.currentTimeMillis
    const settling = { payment, scheme, verified: checked, ticket, startedAt, verifiedAt }
    const report = yield* worker.start(settling, flight)
    keep()
    // The work continues in the background; a request without a report in time is retried and finds its result.
    const started = yield* Effect.timeoutOption(Deferred.await(report), yield* timeLeft(startedAt, limits))
    return Option.isNone(started)
      ? yield* unavailable(checked.payer)
      : yield* answerReport(request, checked.payer, started.value)
  }, Effect.scoped)
})
