// The facilitator: verify and settle as operations of this program, free of HTTP. `verify` decides and stores nothing
// (`verifyPayment.ts`). `settle` looks up the existing records of the payment, verifies it again, and settles it in a
// separate fiber; the caller only waits (`settle/settlePayment.ts`). Among identical requests in one process only one
// settles (`settle/SingleFlight.ts`). The answers are values, returned within the settle timeout even if a dependency
// does not answer; a payment never makes `settle` fail.
import { Context, Duration, Effect, Layer, Option } from "effect"
import { Limits } from "../config/Limits.ts"
import { Lane } from "../database/Connections.ts"
import { ListenAt } from "../http/ListenAt.ts"
import { shutdownFrom, withDeadline } from "../effect/withDeadline.ts"
import type { Principal } from "../http/Authentication.ts"
import { Sponsor } from "../settlement/sponsor/Sponsor.ts"
import { type SettlementRecord, Settlements } from "../settlement/store/Settlements.ts"
import type { SettleAnswer, VerifyAnswer } from "./Answer.ts"
import { makeUnavailable, refuse, unsupportedScheme } from "./answers.ts"
import { cannotSettle, logPaymentError, type PaymentError, verifyTimedOut, unavailable } from "./paymentErrors.ts"
import type { Payment } from "./Payment.ts"
import { isRefusal, type Refusal } from "./Refusal.ts"
import { type CoverCheck, type Covered, type Scheme, Schemes, type Stage } from "./Scheme.ts"
import { Adoption } from "./settle/Adoption.ts"
import { SingleFlight } from "./settle/SingleFlight.ts"
import * as SchemeAuthorizations from "./settle/SchemeAuthorizations.ts"
import { SettlementFollower, SettlementWorker } from "./settle/SettlementWorker.ts"
import { makeJoinFlight } from "./settle/joinFlight.ts"
import { makeVerifyPayment } from "./verifyPayment.ts"
import { withSpanIfSampled } from "../effect/withSpanIfSampled.ts"

/**
 * Graceful shutdown: how long work in flight continues after SIGTERM. Longer than the wait for an outcome during
 * shutdown, and shorter than the listener waits.
 */
const stoppingWait = Duration.millis(2_500)

/** Ends after the process is asked to stop and work in flight has had its time. */
const shutdownDeadline = Effect.map(ListenAt, ({ closing }) => Effect.andThen(closing, Effect.sleep(stoppingWait)))

/** A refusal to settle names the payer. If no check has found one, it is the address that claims to have signed. */
const withPayer = (refused: Refusal, payment: Payment, scheme: Scheme): Refusal =>
  Option.isSome(refused.payer)
    ? refused
    : { ...refused, payer: Option.map(scheme.authorization(payment), ({ payer }) => payer) }

/** The check of a payment that a deposit covers; undefined for one that the ledger settles. */
const coverIn = (scheme: Scheme, payment: Payment, stage: Stage): CoverCheck | undefined =>
  scheme.kind === "channel" ? scheme.cover(payment, stage) : undefined

const validCovered = (covered: Covered | Refusal): VerifyAnswer =>
  isRefusal(covered) ? covered : { _tag: "Valid", payer: covered.payer, extra: covered.extra }

/** The answer to a payment that the scheme's own check settles; an unavailable ledger has decided nothing. */
const settleCovered = (covered: CoverCheck, undecided: Effect.Effect<SettleAnswer>): Effect.Effect<SettleAnswer> =>
  covered.pipe(
    Effect.map((result): SettleAnswer =>
      isRefusal(result)
        ? refuse(result)
        : { _tag: "Settled", payer: result.payer, transaction: "", extra: result.extra }
    ),
    Effect.catch((error) => Effect.andThen(logPaymentError(error), undecided))
  )

/** A success with the scheme's additional fields. */
const withExtra = Effect.fnUntraced(function* (
  answer: Extract<SettleAnswer, { readonly _tag: "Settled" }>,
  payment: Payment,
  scheme: Scheme
) {
  if (scheme.kind === "ledger") return answer as SettleAnswer
  const { asset, extra, hasBuyer, payer = answer.payer, transfers } = yield* scheme.answerSettled(payment)
  const amount = transfers === false ? undefined : answer.amount
  return { ...answer, payer, hasBuyer: hasBuyer !== false, amount, asset, extra } as SettleAnswer
})

export class Facilitator extends Context.Service<
  Facilitator,
  {
    readonly verify: (payment: Payment) => Effect.Effect<VerifyAnswer>
    readonly settle: (payment: Payment) => Effect.Effect<SettleAnswer>
    /**
     * A principal's own settlements, newest first, by payment identifier or transaction hash; None if the database does
     * not answer.
     */
    readonly lookup: (
      principal: Principal,
      by: { readonly identifier: string } | { readonly hash: string }
    ) => Effect.Effect<Option.Option<ReadonlyArray<SettlementRecord>>>
  }
>()("tollkeeper/payment/Facilitator") {
  static readonly layerNoDeps = Layer.effect(
    Facilitator,
    Effect.gen(function* () {
      const schemes = yield* Schemes
      const settlements = yield* Settlements
      const limits = yield* Limits
      const scope = yield* Effect.scope
      const cancelOn = yield* shutdownFrom(yield* shutdownDeadline)
      const patience = { scope, timeout: limits.settleTimeout, cancelOn }

      const undecided = yield* makeUnavailable
      const { knownUnrecordable } = yield* Sponsor
      const verifyLate = Effect.map(
        knownUnrecordable,
        Option.match({ onNone: () => verifyTimedOut, onSome: cannotSettle })
      )

      const joinFlight = yield* makeJoinFlight(patience)
      const verifyPayment = yield* makeVerifyPayment
      const verify = Effect.fnUntraced(
        function* (payment: Payment) {
          const scheme = schemes.find(payment.requirements.scheme)
          if (Option.isNone(scheme)) return unsupportedScheme
          const covered = coverIn(scheme.value, payment, "verify")
          const answer =
            covered === undefined ? verifyPayment(payment, scheme.value) : Effect.map(covered, validCovered)
          const verified = Effect.catch(answer, (error: PaymentError) =>
            Effect.as(logPaymentError(error), unavailable(error))
          )
          return yield* withDeadline(verified, { ...patience, onTimeout: verifyLate })
        },
        Effect.provideService(Lane, "payments"),
        withSpanIfSampled("Facilitator.verify")
      )

      const settle = Effect.fnUntraced(
        function* (payment: Payment) {
          const scheme = schemes.find(payment.requirements.scheme)
          if (Option.isNone(scheme)) return refuse(unsupportedScheme)
          const covered = coverIn(scheme.value, payment, "settle")
          if (covered !== undefined) return yield* settleCovered(covered, undecided())
          const answer = yield* joinFlight(payment, scheme.value)
          if (answer._tag === "Pending") return answer
          return answer._tag === "Failed"
            ? { ...answer, refusal: withPayer(answer.refusal, payment, scheme.value) }
            : yield* withExtra(answer, payment, scheme.value)
        },
        Effect.provideService(Lane, "payments"),
        withSpanIfSampled("Facilitator.settle")
      )

      return Facilitator.of({
        verify,
        settle,
        lookup: (principal, by) => {
          const found = Effect.matchEffect(settlements.lookup(principal.owner, by), {
            onFailure: (failure) => Effect.as(logPaymentError(failure), Option.none<ReadonlyArray<SettlementRecord>>()),
            onSuccess: (records) => Effect.succeedSome(records)
          })
          return withDeadline(found, { ...patience, onTimeout: Effect.succeedNone })
        }
      })
    })
  )

  /** Includes the long-lived parts: work in flight, the follower, and the cache of adoption. */
  static readonly layer = Facilitator.layerNoDeps.pipe(
    Layer.provide(SettlementWorker.layer),
    Layer.provide(Layer.mergeAll(SettlementFollower.layer, Adoption.layer, SingleFlight.layer)),
    Layer.provide(SchemeAuthorizations.layer)
  )
}
