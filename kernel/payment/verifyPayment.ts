// The steps of one verify: look up stored settlements (only for a payment with an identifier, or if this process has
// seen its authorization end), check settle's admission, then run the scheme's verification. Its answer agrees with
// settle's: a settled payment with an undelivered success is valid for its owner. It stores nothing. A new payment
// without an identifier costs no database read. The answer that the budget is used up costs one. A refusal as spent or
// expired costs one too, and a second one after a search of the ledger. Without a stored record of a spent
// authorization, verify searches the ledger like settle.
import { Effect, Option } from "effect"
import { Limits } from "../config/Limits.ts"
import { Outcomes } from "../settlement/follower/Outcomes.ts"
import { Sponsor } from "../settlement/sponsor/Sponsor.ts"
import type { VerifyAnswer } from "./Answer.ts"
import { refuseObjection, unadopted, unclaimed } from "./answers.ts"
import { cannotSettle } from "./paymentErrors.ts"
import type { Payment } from "./Payment.ts"
import { isRefusal, type Refusal } from "./Refusal.ts"
import { formerKeysOf, type Scheme } from "./Scheme.ts"
import { Adoption } from "./settle/Adoption.ts"
import { makeAdmission, type Objection } from "./settle/admit.ts"
import { verifyWithScheme } from "./settle/verifyWithScheme.ts"
import { findQuery, makeFindRecords, verifyKnown } from "./settle/existing.ts"

/** A refusal because of the authorization's state: the records show whether the payment's own settlement caused it. */
const isOver = ({ authorizationExpiresLedger, authorizationSpent }: Refusal): boolean =>
  authorizationSpent === true || authorizationExpiresLedger !== undefined

const validFor = ({ payer }: Refusal): VerifyAnswer => ({ _tag: "Valid", payer: Option.getOrElse(payer, () => "") })

/** The verify operation, with its services resolved once. */
export const makeVerifyPayment = Effect.gen(function* () {
  const admission = yield* makeAdmission
  const adoption = yield* Adoption
  const limits = yield* Limits
  const outcomes = yield* Outcomes
  const sponsor = yield* Sponsor
  const read = yield* makeFindRecords

  /**
   * The stored records of a payment, before any check. This process's memory only decides whether to read; it is not an
   * answer.
   */
  const readKnown = (payment: Payment, scheme: Scheme) =>
    Option.isSome(payment.identifier) || outcomes.hasEnded(findQuery(payment, scheme))
      ? read(payment, scheme)
      : Effect.succeed([])

  /** A used-up budget refuses only new payments: settle first reads the stored records of this one. */
  const answerObjected = Effect.fnUntraced(function* (
    payment: Payment,
    scheme: Scheme,
    objection: Objection,
    payer = Option.getOrUndefined(scheme.authorization(payment))?.payer
  ) {
    const refused = refuseObjection(objection, payer)
    if (objection._tag === "Busy") return refused
    const existing = verifyKnown(payment, yield* read(payment, scheme))
    return existing === "New" ? refused : existing === "Open" ? validFor(refused) : existing
  })

  return Effect.fnUntraced(function* (payment: Payment, scheme: Scheme) {
    const already = verifyKnown(payment, yield* readKnown(payment, scheme))
    if (already !== "New" && already !== "Open") {
      // Settle delivers a success once, and must record that.
      const unrecordable = already._tag === "Valid" ? yield* sponsor.unrecordable : Option.none()
      return Option.isSome(unrecordable) ? cannotSettle(unrecordable.value) : already
    }
    const taken = yield* Effect.scoped(admission.admit(payment, scheme, "verify", limits.settleTimeout))
    if (taken._tag !== "Admitted") return yield* answerObjected(payment, scheme, taken)
    const checked = yield* verifyWithScheme(payment, scheme, "verify")
    if (!isRefusal(checked)) {
      const objection = yield* admission.objectToCost(payment, scheme, checked.resourceFeeStroops)
      if (objection !== undefined) return yield* answerObjected(payment, scheme, objection, checked.payer)
      return { _tag: "Valid", payer: checked.payer, extra: checked.extra } as VerifyAnswer
    }
    const isRepeatable = formerKeysOf(scheme, payment).length > 0
    if (!isOver(checked) && !isRepeatable) return checked
    const existing = verifyKnown(payment, yield* read(payment, scheme))
    if (existing !== "New") return existing === "Open" ? validFor(checked) : existing
    if (!isOver(checked)) return checked
    const lost = yield* adoption.find(payment, scheme, checked)
    // Another request may have stored it while this one searched.
    const stored = verifyKnown(payment, yield* read(payment, scheme))
    if (stored !== "New") return stored === "Open" ? validFor(checked) : stored
    if (lost?._tag === "Ours") return validFor(checked)
    return lost?._tag === "Unclaimed"
      ? { ...unclaimed(checked), transaction: lost.transaction }
      : unadopted(checked, lost)
  })
})
