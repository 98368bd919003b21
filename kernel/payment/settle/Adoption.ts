// Adoption of a payment without a record that the ledger calls spent, or with an expired authorization: the settlement
// code searches for a transaction of this service that paid it, in the terms of the payment's scheme.
import { Context, Effect, Layer, Option } from "effect"
import type { SqlError } from "effect/sql"
import { Limits } from "../../config/Limits.ts"
import { latestExpiry } from "../../ledger/latestExpiry.ts"
import { LedgerClock } from "../../ledger/LedgerClock.ts"
import type { LedgerUnavailable } from "../../ledger/LedgerRpc.ts"
import { Crypto, newId } from "../../platform/Crypto.ts"
import { type AdoptionResult, makeAdopter } from "../../settlement/follower/adopt.ts"
import type { Payment } from "../Payment.ts"
import type { Refusal } from "../Refusal.ts"
import type { Scheme } from "../Scheme.ts"

/** Tolerance in ledgers: the close interval may have been different when the payment was signed. */
const paceChangeLedgers = 24

type Answer = Effect.Effect<AdoptionResult | undefined, LedgerUnavailable | SqlError.SqlError>

export class Adoption extends Context.Service<
  Adoption,
  {
    /**
     * The use of a refused payment's authorization. `Ours` if it is stored, by this request or another; `Unclaimed` if
     * it was ours and we cannot show that the caller owns it. None if the use cannot be found.
     */
    readonly adopt: (payment: Payment, scheme: Scheme, refused: Refusal) => Answer
    /** The same for verify: it stores nothing, and `Ours` means that settle would store it. */
    readonly find: (payment: Payment, scheme: Scheme, refused: Refusal) => Answer
  }
>()("tollkeeper/payment/Adoption") {
  static readonly layer = Layer.effect(
    Adoption,
    Effect.gen(function* () {
      const adopter = yield* makeAdopter
      const clock = yield* LedgerClock
      const crypto = yield* Crypto
      const limits = yield* Limits
      const read = Effect.fnUntraced(function* (payment: Payment, scheme: Scheme, refused: Refusal) {
        const { amount, asset, maxTimeoutSeconds, network, payTo } = payment.requirements
        const { authorizationEndedLedger: endedLedger, authorizationExpiresLedger: expiresLedger, payer } = refused
        const authorization = Option.getOrUndefined(scheme.authorization(payment))
        const moved = authorization?.moves?.amount ?? Option.getOrUndefined(amount)
        if (authorization === undefined || Option.isNone(payer) || moved === undefined) return undefined
        const time = yield* clock.now
        const longest = latestExpiry(time, maxTimeoutSeconds, limits.expiryToleranceLedgers) - time.sequence
        const isAlive = endedLedger === undefined && expiresLedger !== undefined && expiresLedger > time.sequence
        const expired =
          expiresLedger === undefined
            ? undefined
            : { expiresLedger, endedLedger, isAlive, lifeLedgers: longest + paceChangeLedgers }
        const request = {
          id: newId(crypto),
          network,
          scheme: scheme.scheme,
          authorizationKey: authorization.key,
          fingerprint: payment.fingerprint,
          principal: payment.principal,
          identifier: payment.identifier,
          resourceUrl: payment.resourceUrl,
          payer: payer.value,
          payTo: authorization.moves?.payTo ?? payTo,
          asset,
          amount: moved
        }
        return { request, expired }
      })
      return Adoption.of({
        adopt: Effect.fnUntraced(function* (payment, scheme, refused) {
          const lost = yield* read(payment, scheme, refused)
          return lost && (yield* adopter.adopt(lost.request, lost.expired))
        }),
        find: Effect.fnUntraced(function* (payment, scheme, refused) {
          const lost = yield* read(payment, scheme, refused)
          return lost && (yield* adopter.find(lost.request, lost.expired, payment.fingerprintFor.bind(payment)))
        })
      })
    })
  )
}
