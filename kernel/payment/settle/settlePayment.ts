// The walk of one settle: what is known of the payment, a place in the queue for a channel, the scheme's judgement,
// adoption of what the ledger calls spent, the work, and the wait for its outcome. Each step stands in a file of its
// own beside this one.
import { Clock, Deferred, Effect, Option } from "effect"
import { noteRequest } from "../../http/RequestNotes.ts"
import { Sponsor } from "../../settlement/Sponsor.ts"
import { busy, died, refuse, spentElsewhere } from "../answers.ts"
import { isRefusal } from "../Refusal.ts"
import { Adoption } from "./Adoption.ts"
import { judgeInTime } from "./judge.ts"
import { answerKnown, type SettleRequest } from "./known.ts"
import { takePlace } from "./takePlace.ts"
import { timeLeft, waitForOutcome } from "./waitForOutcome.ts"
import { type Started, Work } from "./Work.ts"

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
    // A twin may have been recorded and even have landed in between: then the ledger's refusal is our own doing.
    const twin = yield* answerKnown(request, true)
    if (twin !== undefined || checked.authorizationSpent !== true) return twin ?? refuse(checked)
    const isOurs = yield* (yield* Adoption).adopt(payment, scheme, checked.payer)
    // Another request may have adopted it, or recorded it, while this one looked.
    const found = yield* answerKnown(request, false)
    return found ?? (isOurs ? busy() : refuse(spentElsewhere(checked)))
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
      return started.answer
    case "Known":
      return (yield* answerKnown(request, true)) ?? busy(checked.payer)
    case "Died":
      return (yield* answerKnown(request, true)) ?? refuse(died)
  }
}, Effect.scoped)
