// Waits for the outcome of a recorded settlement within the request's remaining time, and claims its success for this
// caller, its owner. An outcome that does not arrive in time, or soon after the process is asked to stop, is answered
// pending, with the hash: never a failure.
import { Duration, Effect, Option } from "effect"
import { Limits } from "../../config/Limits.ts"
import { monotonicMillis } from "../../time/monotonicMillis.ts"
import { ListenAt } from "../../http/ListenAt.ts"
import { Deliveries } from "../../settlement/delivery/Deliveries.ts"
import { Outcomes } from "../../settlement/follower/Outcomes.ts"
import type { SettlementRecord } from "../../settlement/store/Settlements.ts"
import type { SettleAnswer } from "../Answer.ts"
import { answerFinal, beingDelivered } from "../answers.ts"
import type { Payment } from "../Payment.ts"

export interface RequestStart {
  /** Unix milliseconds, for stored values. */
  readonly at: number
  /** The same moment as a reading of `monotonicMillis`, for timeouts. */
  readonly elapsed: number
}

/** The rest of a settle request's time, milliseconds. */
export const timeLeft = (began: RequestStart, { settleTimeout }: Pick<Limits["Service"], "settleTimeout">) =>
  Effect.map(monotonicMillis, (now) => Math.max(0, Duration.toMillis(settleTimeout) - (now - began.elapsed)))

/**
 * Share of the time reserved for claiming a success at the end: a claimed but undelivered success would be lost to its
 * owner.
 */
const claimShare = 0.1
const claimMillisMax = 1_000

/**
 * The end of the wait for an outcome, milliseconds of the clock of the start; a settlement that is still open then is
 * pending for its caller.
 */
export const deadlineOf = (startedAt: number, settleTimeout: Duration.Duration): number => {
  const millis = Duration.toMillis(settleTimeout)
  return startedAt + millis - Math.min(millis * claimShare, claimMillisMax)
}

/**
 * How long we wait for an outcome once the process is asked to stop. Then the payment is pending, and the next process
 * follows it to its outcome.
 */
const stoppingWait = Duration.seconds(2)

export const makeWaitForOutcome = Effect.gen(function* () {
  const outcomes = yield* Outcomes
  const deliveries = yield* Deliveries
  const limits = yield* Limits
  const { closing } = yield* ListenAt

  return Effect.fnUntraced(function* (
    settlement: { readonly id: string; readonly innerHash: string; readonly payer: string },
    payment: Payment,
    began: RequestStart
  ) {
    const { id, innerHash, payer } = settlement
    const deadline = deadlineOf(began.elapsed, limits.settleTimeout)
    const left = Math.max(0, deadline - (yield* monotonicMillis))
    const record = yield* Effect.raceFirst(
      outcomes.await(id, Duration.millis(left)),
      Effect.as(Effect.andThen(closing, Effect.sleep(stoppingWait)), Option.none<SettlementRecord>())
    )
    const pending: SettleAnswer = { _tag: "Pending", payer, transaction: innerHash }
    if (Option.isNone(record)) return pending
    if (record.value.state !== "settled") return answerFinal(record.value, true)
    return (yield* deliveries.claim({ ...record.value, principal: payment.principal.owner }, payment.idempotencyKey))
      ? answerFinal(record.value, true)
      : beingDelivered(record.value)
  })
})
