// The walk of one settle: what is known of the payment, a place in the queue for a channel, the scheme's judgement,
// adoption of what the ledger calls spent, the work, and the wait for its outcome. Each step stands in a file of its
// own beside this one.
import { Clock, Deferred, Effect, Option } from "effect"
import { noteRequest } from "../../http/RequestNotes.ts"
import { Sponsor } from "../../settlement/Sponsor.ts"
import { answerUnclaimed, busy, died, refuse, unadopted } from "../answers.ts"
import { isRefusal, type Refusal } from "../Refusal.ts"
import { Adoption } from "./Adoption.ts"
import { judgeInTime } from "./judge.ts"
import { answerKnown, type SettleRequest } from "./known.ts"
import { takePlace } from "./takePlace.ts"
import { timeLeft, waitForOutcome } from "./waitForOutcome.ts"
import { type Started, Work } from "./Work.ts"

/** A payment that the scheme refuses: spent and expired authorizations may have been settled by us. */
const answerRefused = Effect.fnUntraced(function* (request: SettleRequest, refused: Refusal) {
  // A twin may have been recorded and even have landed in between: then the ledger's refusal is our own doing.
  const twin = yield* answerKnown(request, true)
  const isOver = refused.authorizationSpent === true || refused.authorizationExpiresLedger !== undefined
  if (twin !== undefined || !isOver) return twin ?? refuse(refused)
  const adopted = yield* (yield* Adoption).adopt(request.payment, request.scheme, refused)
  // Another request may have adopted it, or recorded it, while this one asked.
  const found = yield* answerKnown(request, false)
  if (found !== undefined) return found
  if (adopted?._tag === "Unclaimed") return answerUnclaimed(refused, adopted.transaction)
  return adopted?._tag === "Ours" ? busy() : refuse(unadopted(refused, adopted))
})

export const settlePayment = Effect.fnUntraced(function* (request: SettleRequest) {
  const { flight, payment, scheme, began } = request
  const already = yield* answerKnown(request, false)
  if (already !== undefined) return already
  // Before anything is asked or lent: what cannot be paid for would hold a channel as long as its authorization lives.
  if (Option.isSome(yield* (yield* Sponsor).unable(scheme.scheme))) return busy()
  const taken = yield* takePlace(payment, scheme, began)
  if (taken._tag === "Refused") return taken.answer
  const { keep, place } = taken
  const checked = yield* judgeInTime(payment, scheme, "settle")
  if (isRefusal(checked)) {
    yield* place.leave
    return yield* answerRefused(request, checked)
  }
  const verifiedAt = yield* Clock.currentTimeMillis
  const settling = { payment, scheme, verified: checked, place, began, verifiedAt }
  const report = yield* (yield* Work).start(settling, flight)
  keep()
  // The work goes on by itself; a request that hears nothing of it in time tries again and finds what came of it.
  const started = Option.getOrElse(
    yield* Effect.timeoutOption(Deferred.await(report), yield* timeLeft(began)),
    (): Started => ({ _tag: "Answer", answer: busy(checked.payer) })
  )
  switch (started._tag) {
    case "Recorded":
      yield* noteRequest({ settlement: started.id })
      return yield* waitForOutcome({ ...started, payer: checked.payer }, payment.principal, began)
    case "Answer":
      return started.answer._tag === "Failed" && started.answer.refusal.authorizationExpiresLedger !== undefined
        ? yield* answerRefused(request, started.answer.refusal)
        : started.answer
    case "Known":
      return (yield* answerKnown(request, true)) ?? busy(checked.payer)
    case "Died":
      return (yield* answerKnown(request, true)) ?? refuse(died)
  }
}, Effect.scoped)
