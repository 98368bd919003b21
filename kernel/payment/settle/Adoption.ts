// A payment that the ledger calls spent and that we have no record of: the settlement code is asked whether a
// transaction of ours did it, in the terms of the payment's scheme.
import { Context, Effect, Layer, Option } from "effect"
import type { SqlError } from "effect/sql"
import type { LedgerUnavailable } from "../../ledger/LedgerUnavailable.ts"
import { Crypto } from "../../platform/Crypto.ts"
import { makeAdopter } from "../../settlement/adopt.ts"
import type { Payment } from "../Payment.ts"
import type { Scheme } from "../Scheme.ts"
import { newId } from "./newId.ts"

export class Adoption extends Context.Service<
  Adoption,
  {
    /** True when the payment was ours and is stored, by this request or another. */
    readonly adopt: (
      payment: Payment,
      scheme: Scheme,
      payer: Option.Option<string>
    ) => Effect.Effect<boolean, LedgerUnavailable | SqlError.SqlError>
  }
>()("tollkeeper/payment/Adoption") {
  static readonly layer = Layer.effect(
    Adoption,
    Effect.gen(function* () {
      const adoptSpent = yield* makeAdopter
      const crypto = yield* Crypto
      const adopt = Effect.fnUntraced(function* (payment: Payment, scheme: Scheme, payer: Option.Option<string>) {
        const { amount, asset, network, payTo } = payment.requirements
        const key = Option.map(scheme.authorization(payment), ({ key }) => key)
        if (Option.isNone(key) || Option.isNone(payer) || Option.isNone(amount)) return false
        const answer = yield* adoptSpent({
          id: newId(crypto),
          network,
          scheme: scheme.scheme,
          authorizationKey: key.value,
          fingerprint: payment.fingerprint,
          principal: payment.principal,
          identifier: payment.identifier,
          resourceUrl: payment.resourceUrl,
          payer: payer.value,
          payTo,
          asset,
          amount: amount.value
        })
        return answer !== undefined
      })
      return Adoption.of({ adopt })
    })
  )
}
