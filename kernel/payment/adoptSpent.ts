// A payment that the ledger calls spent and that we have no record of: the settlement code is asked whether a
// transaction of ours did it, in the terms of the payment's scheme. A scheme that cannot tell adopts nothing.
import { Effect, Option } from "effect"
import { makeAdopter } from "../settlement/adopt.ts"
import type { Payment } from "./Payment.ts"
import type { Scheme } from "./Scheme.ts"

/** True when the payment was ours and is stored again. `newId` gives settlement ids. */
export const makeAdoptSpent = Effect.fnUntraced(function* (newId: () => string) {
  const adopt = yield* makeAdopter
  return Effect.fnUntraced(function* (payment: Payment, scheme: Scheme, payer: Option.Option<string>) {
    const { adoption } = scheme
    const { amount, asset, network, payTo } = payment.requirements
    const key = scheme.authorizationKey(payment)
    if (adoption === undefined || Option.isNone(key) || Option.isNone(payer) || Option.isNone(amount)) return false
    const promise = { payer: payer.value, payTo, asset, amount: amount.value }
    return yield* adopt({
      settlement: {
        ...promise,
        id: newId(),
        network,
        scheme: scheme.scheme,
        authorizationKey: key.value,
        fingerprint: payment.fingerprint,
        principal: payment.principal,
        identifier: payment.identifier,
        resourceUrl: payment.resourceUrl
      },
      usedIn: adoption.usedIn(key.value),
      keysIn: adoption.keysIn,
      moved: (executed) => {
        const checked = scheme.checkExecuted(promise, executed)
        return checked._tag === "Moved" ? checked.amount : undefined
      }
    })
  })
})
