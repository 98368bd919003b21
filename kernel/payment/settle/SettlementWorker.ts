// Lease, record, submit, in a fiber that the process owns: a request only waits, so a client that hangs up changes
// nothing. The fiber reports once it has decided whether a settlement exists, and continues in the background. Work in
// flight ends with the process's Scope.
import { Context, Deferred, Effect, FiberSet, Layer, Option } from "effect"
import { Budget } from "../../budget/Budget.ts"
import { CrashPoints } from "../../settlement/CrashPoints.ts"
import { makeSubmitAttempt } from "../../settlement/follower/submitAttempt.ts"
import type { SettleAnswer } from "../Answer.ts"
import { busy, makeUnavailable, overBudget, refuse } from "../answers.ts"
import { logPaymentError } from "../paymentErrors.ts"
import { isRefusal } from "../Refusal.ts"
import { makeAcquireChannel } from "./acquireChannel.ts"
import type { Flight } from "./SingleFlight.ts"
import { makeRecordSettlement, type SettlementContext } from "./recordSettlement.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"
import { startWatch } from "../../settlement/follower/watchFailed.ts"
import { startFollower } from "../../settlement/follower/reconcileSettlements.ts"

/**
 * The follower of open settlements. It runs as long as the process. Each ledger wakes it, and so does a record that
 * was sent after its own ledger. The watch of failed settlements runs in parallel.
 */
export class SettlementFollower extends Context.Service<
  SettlementFollower,
  {
    /** Requests a turn soon. Never waits, never fails. */
    readonly wake: Effect.Effect<void>
  }
>()("tollkeeper/payment/SettlementFollower") {
  static readonly layer = Layer.effect(
    SettlementFollower,
    Effect.map(Effect.andThen(startWatch, startFollower), (follower) => SettlementFollower.of(follower))
  )
}

export type WorkerReport =
  | { readonly _tag: "Recorded"; readonly id: string; readonly innerHash: string }
  | { readonly _tag: "Answer"; readonly answer: SettleAnswer }
  /** A concurrent request recorded it first: read it again. */
  | { readonly _tag: "Known" }
  /** The work has died, before or after the record: read it again. */
  | { readonly _tag: "Died" }

type Report = (started: WorkerReport) => Effect.Effect<unknown>

/** Nothing was recorded: the answer, with the channel released. */
const answered = (answer: SettleAnswer) => ({ _tag: "Answer", answer }) as const

/** Lease to record. The channel is released unless the record holds it. */
const makeLease = Effect.gen(function* () {
  const budget = yield* Budget
  const acquireChannel = yield* makeAcquireChannel
  const recordSettlement = yield* makeRecordSettlement
  const unavailable = yield* makeUnavailable

  return Effect.fnUntraced(function* (settling: SettlementContext) {
    const { payer } = settling.verified
    const channel = yield* acquireChannel(settling.ticket)
    if (Option.isNone(channel)) return answered(yield* unavailable(payer))
    const built = yield* recordSettlement(settling, channel.value.lease)
    if (isRefusal(built)) return answered(refuse(built))
    const { attempt, id, recorded } = built
    switch (recorded._tag) {
      case "Recorded":
        channel.value.keep()
        return { _tag: "Recorded", id, attempt } as const
      case "Known":
        return { _tag: "Known" } as const
      case "BudgetExceeded":
        return answered(refuse(overBudget(yield* budget.resets, Option.some(payer))))
      case "FenceLost":
      case "TooManyOpen":
        return answered(busy(payer))
    }
  }, Effect.scoped)
})

/** Lease to submit. */
const makeWork = Effect.gen(function* () {
  const follower = yield* SettlementFollower
  const reached = yield* CrashPoints
  const lease = yield* makeLease
  const submitAttempt = yield* makeSubmitAttempt

  return Effect.fnUntraced(function* (settling: SettlementContext, report: Report) {
    const leased = yield* lease(settling)
    if (leased._tag !== "Recorded") return yield* report(leased)
    const { attempt, id } = leased
    yield* reached("afterRecord")
    yield* report({ _tag: "Recorded", id, innerHash: attempt.innerHash })
    const sentLedger = yield* submitAttempt(id, attempt)
    yield* reached("afterSubmit")
    // In the ledger of its record a settlement cannot have an outcome yet, and the next ledger wakes the follower.
    if (sentLedger > attempt.recordedLedger) yield* follower.wake
  })
})

export class SettlementWorker extends Context.Service<
  SettlementWorker,
  {
    /** Starts the work. Its report can be awaited, and is shared with the flight's other requests. */
    readonly start: (settling: SettlementContext, flight: Flight) => Effect.Effect<Deferred.Deferred<WorkerReport>>
  }
>()("tollkeeper/payment/SettlementWorker") {
  static readonly layer = Layer.effect(
    SettlementWorker,
    Effect.gen(function* () {
      const work = yield* makeWork
      const unavailable = yield* makeUnavailable
      const running = yield* FiberSet.make<void, never>()
      const start = Effect.fnUntraced(function* (settling: SettlementContext, flight: Flight) {
        const report = yield* Deferred.make<WorkerReport>()
        const { payer } = settling.verified
        flight.hold()
        let held = true
        const letGo = () => {
          if (held) flight.release()
          held = false
        }
        const notify: Report = (started) =>
          Effect.suspend(() => {
            if (started._tag === "Recorded") flight.publish({ _tag: "Pending", payer, transaction: started.innerHash })
            if (started._tag === "Answer") flight.publish(started.answer)
            letGo()
            return Deferred.succeed(report, started)
          })
        const run = work(settling, notify).pipe(
          Effect.catch((error) =>
            Effect.flatMap(Effect.andThen(logPaymentError(error), unavailable(payer)), (answer) =>
              notify(answered(answer))
            )
          ),
          Effect.catchCause((cause) =>
            Effect.andThen(Effect.logError("settling a payment failed with a defect", cause), notify({ _tag: "Died" }))
          ),
          Effect.asVoid,
          Effect.ensuring(Effect.sync(letGo)),
          withSpanIfSampled("payment.settle", { attributes: { scheme: settling.scheme.scheme } })
        )
        yield* FiberSet.run(running, run)
        return report
      })
      return SettlementWorker.of({ start })
    })
  )
}
