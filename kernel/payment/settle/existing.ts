// Idempotency: the existing records of a payment, and the answer that its caller may receive. One payment releases one
// resource, to the principal that settled it (rules 2). It takes one read, and writes only the claim of an undelivered
// success. A delivered success is repeated only for the seller's own credential: the `Idempotency-Key` of the call that
// received it. The buyer chooses the payment identifier, so the identifier links, finds and conflicts, but never
// repeats a success.
//
// A settlement belongs to the principal that settled it first, regardless of any unsigned field. Its owner receives its
// state; under other terms the owner receives a conflict, with state and hash. Any other caller that sends the same
// authorization, under the same terms or others, learns only that it is used: never a success, never a conflict. Once
// it is settled, that answer includes the hash, so that a seller can find the money on the ledger if another caller
// settled for its buyer. A payment that failed or expired is reported as such to all. All keyless callers are one
// owner.
//
// Verify answers from the same records as settle (`verifyKnown`). A settled payment with an undelivered success is
// valid for its owner, since settle then delivers it, once. A delivered one is refused with its hash, so that a seller
// that verifies first does not release twice, unless the call has the key of its delivery.
import { Effect, Option } from "effect"
import { noteRequest } from "../../http/RequestNotes.ts"
import { Deliveries } from "../../settlement/delivery/Deliveries.ts"
import { Outcomes } from "../../settlement/follower/Outcomes.ts"
import { isOpen } from "../../settlement/state/Settlement.ts"
import { type FindQuery, type SettlementRecord, Settlements } from "../../settlement/store/Settlements.ts"
import type { SettleAnswer, VerifyAnswer } from "../Answer.ts"
import { answerConflict, answerFinal, answerOthers, beingDelivered, outcomeUnknown } from "../answers.ts"
import type { Payment } from "../Payment.ts"
import { formerKeysOf, type Scheme, type Stage } from "../Scheme.ts"
import type { Flight } from "./SingleFlight.ts"
import { makeWaitForOutcome, type RequestStart } from "./waitForOutcome.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"

export interface SettleRequest {
  readonly payment: Payment
  readonly scheme: Scheme
  readonly startedAt: RequestStart
  /** Its twins in this process wait for this flight. */
  readonly flight: Flight
}

type Existing =
  | { readonly _tag: "New" }
  | { readonly _tag: "Answer"; readonly answer: SettleAnswer }
  | { readonly _tag: "Open"; readonly record: SettlementRecord }
  /** Settled, but not delivered yet: one caller may claim it; the others receive `otherwise`. */
  | { readonly _tag: "Undelivered"; readonly record: SettlementRecord; readonly otherwise: SettleAnswer }
  /** A process is sending the success to another request. */
  | { readonly _tag: "Given"; readonly record: SettlementRecord; readonly answer: SettleAnswer }

/**
 * Whether a record belongs to this very payment. If the seller sets the used amount only at settle, it called verify
 * with the maximum: then the record has the same terms except for the required amount.
 */
const isSame = (payment: Payment, { amount, fingerprint }: SettlementRecord, stage: Stage): boolean =>
  fingerprint === payment.fingerprint ||
  (stage === "verify" &&
    payment.accepted.amountText === payment.requirements.amountText &&
    fingerprint === payment.fingerprintFor(amount))

/** A record of the payment's own principal under other terms. */
const conflictWith = (
  payment: Payment,
  records: ReadonlyArray<SettlementRecord>,
  stage: Stage
): SettlementRecord | undefined =>
  records.find((record) => record.principal === payment.principal.owner && !isSame(payment, record, stage))

/** The state of a payment by its stored records. Pure. */
export const existingFrom = (
  payment: Payment,
  records: ReadonlyArray<SettlementRecord>,
  stage: Stage = "settle"
): Existing => {
  const conflict = conflictWith(payment, records, stage)
  if (conflict !== undefined) return { _tag: "Answer", answer: answerConflict(conflict) }
  const [record] = records
  if (record === undefined) return { _tag: "New" }
  if (record.principal !== payment.principal.owner) return { _tag: "Answer", answer: answerOthers(record) }
  if (isOpen(record.state)) return { _tag: "Open", record }
  if (record.state !== "settled") return { _tag: "Answer", answer: answerFinal(record, false) }
  const another = beingDelivered(record)
  if (record.delivery === "undelivered") return { _tag: "Undelivered", record, otherwise: another }
  if (hasKeyOf(payment, record)) return { _tag: "Answer", answer: answerFinal(record, true) }
  return record.delivery === "given"
    ? { _tag: "Given", record, answer: another }
    : { _tag: "Answer", answer: answerFinal(record, false) }
}

/** The call has the key of the call that received the success: it is the same sale of the same seller. */
const hasKeyOf = ({ idempotencyKey }: Payment, { deliveredKey }: SettlementRecord): boolean =>
  idempotencyKey !== undefined && idempotencyKey === deliveredKey

/**
 * Verify's answer from the stored records, equal to settle's. `Open`: settle waits for the outcome, so the payment
 * stays valid even if its own transaction has used its authorization by now. Pure.
 */
export const verifyKnown = (
  payment: Payment,
  records: ReadonlyArray<SettlementRecord>
): VerifyAnswer | "New" | "Open" => {
  const existing = existingFrom(payment, records, "verify")
  switch (existing._tag) {
    case "New":
    case "Open":
      return existing._tag
    case "Undelivered":
      return { _tag: "Valid", payer: existing.record.payer }
    case "Given":
    case "Answer":
      return verifyAnswerOf(existing.answer)
  }
}

const verifyAnswerOf = (answer: SettleAnswer): VerifyAnswer => {
  switch (answer._tag) {
    case "Settled":
      return { _tag: "Valid", payer: answer.payer }
    case "Pending":
      return outcomeUnknown(answer)
    case "Failed":
      return Option.match(answer.transaction, {
        onNone: () => answer.refusal,
        onSome: (transaction) => ({ ...answer.refusal, transaction })
      })
  }
}

export const findQuery = (payment: Payment, scheme: Scheme): FindQuery => {
  const authorization = scheme.authorization(payment)
  return {
    network: payment.requirements.network,
    scheme: scheme.scheme,
    authorizationKey: Option.map(authorization, ({ key }) => key),
    principal: payment.principal.owner,
    payTo: Option.getOrUndefined(authorization)?.moves?.payTo ?? payment.requirements.payTo,
    payer: Option.map(authorization, ({ payer }) => payer),
    identifier: payment.identifier
  }
}

/**
 * Whether a record under a former key of the payment still belongs to its caller: its success was not delivered, or was
 * delivered under this call's `Idempotency-Key`.
 */
const isRepeated = (payment: Payment, record: SettlementRecord): boolean =>
  payment.principal.owner === record.principal &&
  payment.fingerprint === record.fingerprint &&
  record.state !== "failed" &&
  record.state !== "expired" &&
  (record.delivery !== "confirmed" || hasKeyOf(payment, record))

/** Reads the stored records of a payment: by one read, and for a possible repetition also by its former keys. */
export const makeFindRecords = Effect.gen(function* () {
  const { asOfNow } = yield* Deliveries
  const outcomes = yield* Outcomes
  const settlements = yield* Settlements

  return Effect.fnUntraced(function* (payment: Payment, scheme: Scheme) {
    const query = findQuery(payment, scheme)
    const find = (query: FindQuery) => Effect.map(settlements.find(query), (records) => records.map(asOfNow))
    let records = yield* find(query).pipe(withSpanIfSampled("payment.find"))
    for (const key of records.length > 0 ? [] : formerKeysOf(scheme, payment)) {
      const candidates = yield* find({ ...query, authorizationKey: Option.some(key) })
      records = candidates.filter((record) => isRepeated(payment, record))
      if (records.length > 0) break
    }
    yield* outcomes.complete(records)
    return records
  })
})

/**
 * The answer to an existing payment; undefined for a new one. The waiters of this request's flight receive pending
 * before it waits.
 */
export const makeRespondFromExisting = Effect.gen(function* () {
  const deliveries = yield* Deliveries
  const outcomes = yield* Outcomes
  const waitForOutcome = yield* makeWaitForOutcome
  const findRecords = yield* makeFindRecords

  const find = Effect.fnUntraced(function* (payment: Payment, scheme: Scheme) {
    const records = yield* findRecords(payment, scheme)
    const [record] = records
    if (record !== undefined) yield* noteRequest({ settlement: record.id })
    return existingFrom(payment, records)
  })

  return Effect.fnUntraced(function* ({ flight, payment, scheme, startedAt: began }: SettleRequest) {
    const existing = yield* find(payment, scheme)
    switch (existing._tag) {
      case "New":
        return undefined
      case "Given":
      case "Answer":
        return existing.answer
      case "Undelivered": {
        const { otherwise, record } = existing
        const claimed = yield* deliveries.claim(record, payment.idempotencyKey)
        return claimed ? answerFinal(record, true) : otherwise
      }
      case "Open": {
        const { id, innerHash, payer } = existing.record
        const pending: SettleAnswer = { _tag: "Pending", payer, transaction: innerHash }
        flight.publish(pending)
        return outcomes.isAwaited(id) ? pending : yield* waitForOutcome(existing.record, payment, began)
      }
    }
  })
})
