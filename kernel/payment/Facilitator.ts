// The facilitator: verify and settle as the house's own operations, free of HTTP. `verify` decides and stores nothing
// (`verifyPayment.ts`). `settle` finds what is already known of the payment, verifies it again, and hands it to a fiber
// of its own; the caller only waits (`settle/settlePayment.ts`). Of identical requests in one process one settles. The
// answers are values; it never fails and never dies on a payment's account.
import { Clock, Context, Effect, Layer, Option } from "effect"
import { Budget } from "../budget/Budget.ts"
import { Limits } from "../config/Limits.ts"
import { Network } from "../config/Network.ts"
import type { Principal } from "../http/Principal.ts"
import { ChannelPool } from "../settlement/channels/ChannelPool.ts"
import { Outcomes } from "../settlement/Outcomes.ts"
import { type SettlementRecord, Settlements } from "../settlement/Settlements.ts"
import { Sponsor } from "../settlement/Sponsor.ts"
import type { SettleAnswer, VerifyAnswer } from "./Answer.ts"
import { busy, noScheme, refuse } from "./answers.ts"
import { logFault, unavailable } from "./faults.ts"
import type { Payment } from "./Payment.ts"
import { Schemes } from "./Scheme.ts"
import { Adoption } from "./settle/Adoption.ts"
import { answerTwin } from "./settle/known.ts"
import * as SchemeAuthorizations from "./settle/SchemeAuthorizations.ts"
import { SettlementFollower } from "./settle/SettlementFollower.ts"
import { settlePayment } from "./settle/settlePayment.ts"
import { Work } from "./settle/Work.ts"
import { verifyPayment } from "./verifyPayment.ts"

export class Facilitator extends Context.Service<
  Facilitator,
  {
    readonly verify: (payment: Payment) => Effect.Effect<VerifyAnswer>
    readonly settle: (payment: Payment) => Effect.Effect<SettleAnswer>
    /**
     * A principal's own settlements, newest first, by payment identifier or transaction hash; None when the database
     * cannot be asked.
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
      const services = yield* Effect.context<
        Adoption | Budget | ChannelPool | Limits | Network | Outcomes | Settlements | Sponsor | Work
      >()
      const inFlight = new Set<string>()

      const verify = Effect.fn("Facilitator.verify")(
        function* (payment: Payment) {
          const scheme = schemes.find(payment.requirements.scheme)
          return Option.isNone(scheme) ? noScheme : yield* verifyPayment(payment, scheme.value)
        },
        (effect) => Effect.catch(effect, (fault) => Effect.as(logFault(fault), unavailable(fault))),
        Effect.provideContext(services)
      )

      const settle = Effect.fn("Facilitator.settle")(
        function* (payment: Payment) {
          const scheme = schemes.find(payment.requirements.scheme)
          if (Option.isNone(scheme)) return refuse(noScheme)
          const startedAt = yield* Clock.currentTimeMillis
          const flight = `${payment.principal.owner} ${payment.requirements.network} ${payment.fingerprint}`
          if (inFlight.has(flight)) return (yield* answerTwin(payment, scheme.value)) ?? busy()
          inFlight.add(flight)
          return yield* settlePayment(payment, scheme.value, startedAt).pipe(
            Effect.ensuring(Effect.sync(() => inFlight.delete(flight)))
          )
        },
        (effect) => Effect.catch(effect, (fault) => Effect.as(logFault(fault), busy())),
        Effect.provideContext(services)
      )

      return Facilitator.of({
        verify,
        settle,
        lookup: (principal, by) =>
          Effect.matchEffect(settlements.lookup(principal.owner, by), {
            onFailure: (fault) => Effect.as(logFault(fault), Option.none()),
            onSuccess: (records) => Effect.succeedSome(records)
          })
      })
    })
  )

  /** With the steps that have a life of their own: work in flight, the follower, and the memory of adoption. */
  static readonly layer = Facilitator.layerNoDeps.pipe(
    Layer.provide(Work.layer),
    Layer.provide(Layer.merge(SettlementFollower.layer, Adoption.layer)),
    Layer.provide(SchemeAuthorizations.layer)
  )
}
