// The `upto` scheme on Stellar. The buyer signs a maximum. The facilitator settles the amount that the seller measured,
// up to that maximum, through the network's settlement contract. `verifyPayment.ts` verifies a payment; this file
// registers the scheme if the network has a contract for it.
import { Effect, Layer, Option, Result } from "effect"
import { memoizePerObject } from "../../kernel/cache/objectSlot.ts"
import { Limits } from "../../kernel/config/Limits.ts"
import { Network } from "../../kernel/config/Network.ts"
import { LedgerClock } from "../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc } from "../../kernel/ledger/LedgerRpc.ts"
import type { Payment } from "../../kernel/payment/Payment.ts"
import { refusal } from "../../kernel/payment/Refusal.ts"
import { type Scheme, Schemes } from "../../kernel/payment/Scheme.ts"
import { unsignedEnvelope, type UnsignedOrder } from "../../kernel/payment/Unsigned.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { Signer } from "../../kernel/signer/Signer.ts"
import { readAuthorizationKey } from "../../kernel/stellar/AuthorizationKey.ts"
import { authorizationOf, useIn } from "./authorizations.ts"
import { checkExpiry } from "./authorizationWindow.ts"
import { firstFailure, unsignedChecks } from "./checks.ts"
import { uptoKeys } from "./Config.ts"
import { movedAsPromised } from "./executedChecks.ts"
import { endOfLife, subjectOf, verifyPayment, scheme, type State } from "./verifyPayment.ts"
import { refusals } from "./refusals.ts"
import { askedFor, drafts, type OfferedContract, positionIn, profileIn, stateless, tollkeeper } from "./profiles.ts"
import { unsignedSettlement } from "./unsignedSettlement.ts"
import { decodePayload, type ProfileOf } from "./UptoWire.ts"

/** Decodes a payment's transaction once: it is needed before and after verify. */
const makePayloadOf = (profileOf: ProfileOf, statelessContract: string | undefined) => {
  const decoded = memoizePerObject((payload: Payment["payload"]) =>
    decodePayload(payload, profileOf, statelessContract)
  )
  return ({ payload }: Payment) => decoded(payload)
}

/** The facilitator's announcement of a contract. */
const announced = ({ contract, profile }: OfferedContract, sponsor: string) => ({
  uptoContract: contract,
  ...(profile.boundsTerms ? { settlementContract: contract } : {}),
  ...(positionIn(profile, "facilitator") < 0 ? {} : { facilitatorAddress: sponsor })
})

/** The data that a payer signs. It passes the checks of `verify` that need no signature. */
const unsigned = Effect.fnUntraced(function* (
  offered: ReadonlyArray<OfferedContract>,
  payment: Payment,
  order: UnsignedOrder
) {
  const terms = payment.requirements
  const requested = askedFor({ offered, terms })
  const refuse = (reason: string, message: string) => refusal(reason, message, Option.some(order.payer))
  if (requested === undefined)
    return refuse("invalid_upto_ledger_payload_wrong_contract", "the profile asked for is not offered here")
  const laidOut = unsignedSettlement(requested, terms, order, (yield* Signer).sponsor)
  const transaction = unsignedEnvelope(laidOut.invoked, [laidOut.entry])
  const payload = Result.getOrThrow(decodePayload({ transaction }, profileIn(offered)))
  const error = firstFailure(yield* subjectOf(offered, payment, payload, "verify"), unsignedChecks)
  return error === undefined ? laidOut : refuse(error[0], error[1])
})

/** The scheme over the settlement contracts of a network, ours first. */
const makeScheme = Effect.fnUntraced(function* (
  offered: readonly [OfferedContract, ...ReadonlyArray<OfferedContract>]
) {
  const services = yield* Effect.context<Crypto | LedgerClock | LedgerRpc | Limits | Network | Signer>()
  const clock = yield* LedgerClock
  const signer = yield* Signer
  const ofDraft = offered.find(({ profile }) => profile.name === stateless.name)
  const payloadOf = makePayloadOf(profileIn(offered), ofDraft?.contract)
  const proven = new Set<string>()
  const [ours, ...others] = offered
  const upto: Scheme = {
    kind: "ledger",
    scheme,
    refusals,
    supportedExtra: () =>
      Option.some({
        ...announced(ours, signer.sponsor),
        ...(others.length === 0
          ? {}
          : {
              profile: ours.profile.name,
              profiles: offered.map((one) => ({ profile: one.profile.name, ...announced(one, signer.sponsor) }))
            })
      }),
    authorization: (payment) => Option.flatMap(Result.getSuccess(payloadOf(payment)), authorizationOf),
    verify: (payment, stage) =>
      verifyPayment(offered, proven, payment, payloadOf(payment), stage).pipe(
        Effect.withSpan("x402-upto.verify"),
        Effect.provideContext(services)
      ),
    unsigned: (payment, order) => Effect.provideContext(unsigned(offered, payment, order), services),
    prepare: Effect.fnUntraced(function* (_payment, verified) {
      const { authorizationExpiresLedger, payer } = verified
      const state = verified.state as State
      const time = yield* clock.now
      const error = checkExpiry(authorizationExpiresLedger, state.lastSecond, time)
      return error === undefined
        ? state
        : {
            ...refusal(error[0], error[1], Option.some(payer)),
            ...endOfLife(authorizationExpiresLedger, state.lastSecond, time)
          }
    }),
    nonces: {
      nonceOf: readAuthorizationKey,
      useIn: (key, promise, operationXdr) => useIn(offered, key, promise, operationXdr)
    },
    checkExecuted: (promise, executed) =>
      movedAsPromised(executed, offered, promise)
        ? { _tag: "Moved", amount: promise.amount }
        : { _tag: "NotMoved", message: "the executed transaction does not show the expected settlement" }
  }
  return upto
})

/** Registers the scheme until the plugin's Scope closes, if the network has a settlement contract. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const schemes = yield* Schemes
    const { upto_contract: contract = "", upto_profiles: others = {} } = (yield* Network).keys(uptoKeys)
    if (contract === "") return yield* Effect.logInfo("upto is not offered: no contract is configured")
    const unknown = Object.keys(others).find((name) => !drafts.some((profile) => profile.name === name))
    if (unknown !== undefined)
      return yield* Effect.die(new Error(`upto_profiles names ${unknown}; known: ${drafts.map(({ name }) => name)}`))
    const offered: readonly [OfferedContract, ...ReadonlyArray<OfferedContract>] = [
      { contract, profile: tollkeeper },
      ...drafts.flatMap((profile) => {
        const of = others[profile.name]
        return of === undefined ? [] : [{ contract: of, profile }]
      })
    ]
    for (const { contract: address, profile } of offered) {
      const position = positionIn(profile, "facilitator")
      if (position >= 0)
        yield* (yield* Signer).allowAuthorization({ contract: address, functionName: profile.functionName, position })
    }
    yield* schemes.register(yield* makeScheme(offered))
  })
)
