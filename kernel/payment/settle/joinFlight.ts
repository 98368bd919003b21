// Joins a settle request to the flight of its twins: it leads and settles, or waits for the leader's answer. Either way
// it is answered within the settle timeout: pending if the payment is recorded by then; otherwise busy, since nothing
// is decided. If no settlement can be recorded, the answer names the cause.
import { Clock, Effect, Exit } from "effect"
import { Limits } from "../../config/Limits.ts"
import { monotonicMillis } from "../../time/monotonicMillis.ts"
import type { SettleAnswer } from "../Answer.ts"
import { logPaymentError } from "../paymentErrors.ts"
import type { Payment } from "../Payment.ts"
import type { Scheme } from "../Scheme.ts"
import { type DeadlineOptions, withDeadline } from "../../effect/withDeadline.ts"
import { type Joined, SingleFlight, type FlightResult } from "./SingleFlight.ts"
import { makeSettlePayment } from "./settlePayment.ts"
import { makeUnavailable } from "../answers.ts"
import { type RequestStart, timeLeft } from "./waitForOutcome.ts"

const decided = (answer: SettleAnswer): FlightResult => ({ _tag: "Decided", answer })

export const makeJoinFlight = Effect.fnUntraced(function* ({
  scope: owner,
  cancelOn: until
}: Pick<DeadlineOptions<unknown, unknown, unknown>, "scope" | "cancelOn">) {
  const flights = yield* SingleFlight
  const limits = yield* Limits
  const settlePayment = yield* makeSettlePayment
  const unavailable = yield* makeUnavailable

  return Effect.fnUntraced(function* (payment: Payment, scheme: Scheme) {
    const began: RequestStart = { at: yield* Clock.currentTimeMillis, elapsed: yield* monotonicMillis }
    const name = `${payment.principal.owner} ${payment.requirements.network} ${payment.fingerprint}`
    let last: Joined | undefined

    const lead = ({ flight }: Joined) =>
      Effect.map(
        Effect.catch(settlePayment({ payment, scheme, startedAt: began, flight }), (error) =>
          Effect.andThen(logPaymentError(error), unavailable())
        ),
        decided
      )
    const fly = Effect.acquireUseRelease(
      Effect.sync(() => (last = flights.join(name))),
      (boarded) => (boarded.isLeader ? lead(boarded) : boarded.flight.result),
      ({ flight, isLeader }, exit) =>
        Effect.sync(() => {
          if (!isLeader) return
          if (Exit.isSuccess(exit) && exit.value._tag === "Decided") flight.publish(exit.value.answer)
          flight.release()
        })
    )
    const answer: Effect.Effect<SettleAnswer> = Effect.flatMap(fly, (received) =>
      received._tag === "Decided" ? Effect.succeed(received.answer) : answer
    )

    return yield* withDeadline(answer, {
      timeout: yield* timeLeft(began, limits),
      scope: owner,
      ...(until === undefined ? {} : { cancelOn: until }),
      onTimeout: Effect.map(unavailable(), (undecided) => {
        const late = last?.flight.answer ?? undecided
        if (last?.isLeader === true) {
          last.flight.publish(late)
          last.flight.end()
        }
        return late
      })
    })
  })
})
