// A request to settle, in the flight of its twins: it leads and settles, or waits for what the one that leads is told.
// Either way it is answered within the settle timeout: pending when the payment is known to be recorded by then, else
// busy, for nothing is decided.
import { Clock, Effect, Exit } from "effect"
import { elapsedMillis } from "../../elapsed.ts"
import type { SettleAnswer } from "../Answer.ts"
import { busy } from "../answers.ts"
import { logFault } from "../faults.ts"
import type { Payment } from "../Payment.ts"
import type { Scheme } from "../Scheme.ts"
import { type Patience, within } from "../../within.ts"
import { type Boarded, Flights, type Told } from "./Flights.ts"
import { settlePayment } from "./settlePayment.ts"
import { type Began, timeLeft } from "./waitForOutcome.ts"

const told = (answer: SettleAnswer): Told => ({ _tag: "Told", answer })

export const shareFlight = Effect.fnUntraced(function* (
  payment: Payment,
  scheme: Scheme,
  { owner, until }: Pick<Patience<unknown, unknown, unknown>, "owner" | "until">
) {
  const flights = yield* Flights
  const began: Began = { at: yield* Clock.currentTimeMillis, elapsed: yield* elapsedMillis }
  const name = `${payment.principal.owner} ${payment.requirements.network} ${payment.fingerprint}`
  let last: Boarded | undefined

  const lead = ({ flight }: Boarded) =>
    Effect.map(
      Effect.catch(settlePayment({ payment, scheme, began, flight }), (fault) => Effect.as(logFault(fault), busy())),
      told
    )
  const fly = Effect.acquireUseRelease(
    Effect.sync(() => (last = flights.board(name))),
    (boarded) => (boarded.isLeader ? lead(boarded) : boarded.flight.told),
    ({ flight, isLeader }, exit) =>
      Effect.sync(() => {
        if (!isLeader) return
        if (Exit.isSuccess(exit) && exit.value._tag === "Told") flight.tell(exit.value.answer)
        flight.letGo()
      })
  )
  const answer: Effect.Effect<SettleAnswer, Effect.Error<typeof fly>, Effect.Services<typeof fly>> = Effect.flatMap(
    fly,
    (heard) => (heard._tag === "Told" ? Effect.succeed(heard.answer) : answer)
  )

  return yield* within(answer, {
    longest: yield* timeLeft(began),
    owner,
    ...(until === undefined ? {} : { until }),
    late: Effect.sync(() => {
      const late = last?.flight.answer ?? busy()
      if (last?.isLeader === true) {
        last.flight.tell(late)
        last.flight.end()
      }
      return late
    })
  })
})
