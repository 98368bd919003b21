// The `upto` scheme on Stellar: the buyer signs a maximum, the facilitator puts the amount that the seller measured on
// the ledger, at most that maximum, through the network's settlement contract. What a payment is judged by stands in
// `judgePayment.ts`; here the scheme is offered, where the network has a contract for it.
import { Effect, Layer, Option, Result } from "effect"
import { readOnce } from "../../kernel/noted.ts"
import { Limits } from "../../kernel/config/Limits.ts"
import { Network } from "../../kernel/config/Network.ts"
import { LedgerClock } from "../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc } from "../../kernel/ledger/LedgerRpc.ts"
import type { Payment } from "../../kernel/payment/Payment.ts"
import { refusal } from "../../kernel/payment/Refusal.ts"
import { type Scheme, Schemes } from "../../kernel/payment/Scheme.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { Signer } from "../../kernel/signer/Signer.ts"
import { readAuthorizationKey } from "../../kernel/stellar/AuthorizationKey.ts"
import { authorizationOf, useIn } from "./authorizations.ts"
import { expiryFault } from "./checks.ts"
import { uptoKeys } from "./Config.ts"
import { movedAsPromised } from "./executedChecks.ts"
import { judgePayment, scheme, type State } from "./judgePayment.ts"
import { refusals } from "./refusals.ts"
import { decodePayload, facilitatorPosition } from "./UptoWire.ts"

/** A payment is looked up before and after it is judged; its transaction is decoded once for all of them. */
const makePayloadOf = () => {
  const decoded = readOnce((payload: Payment["payload"]) => decodePayload(payload))
  return ({ payload }: Payment) => decoded(payload)
}

/** The scheme over one settlement contract. */
const makeScheme = Effect.fnUntraced(function* (contract: string) {
  const services = yield* Effect.context<Crypto | LedgerClock | LedgerRpc | Limits | Network | Signer>()
  const clock = yield* LedgerClock
  const signer = yield* Signer
  const payloadOf = makePayloadOf()
  const upto: Scheme = {
    scheme,
    refusals,
    supportedExtra: () => Option.some({ uptoContract: contract, facilitatorAddress: signer.sponsor }),
    authorization: (payment) => Option.flatMap(Result.getSuccess(payloadOf(payment)), authorizationOf),
    verify: (payment, stage) =>
      judgePayment(contract, payment, payloadOf(payment), stage).pipe(
        Effect.withSpan("x402-upto.verify"),
        Effect.provideContext(services)
      ),
    prepare: Effect.fnUntraced(function* (_payment, verified) {
      const { authorizationExpiresLedger, payer, state } = verified
      const fault = expiryFault(authorizationExpiresLedger, (yield* clock.now).sequence)
      return fault === undefined
        ? (state as State)
        : { ...refusal(fault[0], fault[1], Option.some(payer)), authorizationExpiresLedger }
    }),
    nonces: {
      nonceOf: readAuthorizationKey,
      useIn: (key, promise, operationXdr) => useIn(contract, key, promise, operationXdr)
    },
    checkExecuted: (promise, executed) =>
      movedAsPromised(executed, contract, promise)
        ? { _tag: "Moved", amount: promise.amount }
        : { _tag: "NotMoved", message: "the executed transaction does not show the promised settlement" }
  }
  return upto
})

/** Registers the scheme for as long as the plugin lives, where the network has a settlement contract. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const schemes = yield* Schemes
    const { upto_contract: contract = "" } = (yield* Network).keys(uptoKeys)
    if (contract === "") return yield* Effect.logInfo("upto is not offered: no contract is configured")
    yield* (yield* Signer).allowAuthorization({ contract, functionName: "settle", position: facilitatorPosition })
    yield* schemes.register(yield* makeScheme(contract))
  })
)
