// The `upto` scheme on Stellar: the buyer signs a maximum, the facilitator puts the amount that the seller measured on
// the ledger, at most that maximum, through the network's settlement contract. Verifying simulates the maximum with
// the facilitator as the source of the simulation, which needs no signature of it: nothing that could settle exists
// before the seller has named an amount. Settling simulates the amount itself, with both signatures in place, and that
// very operation goes to the ledger.
import { xdr } from "@stellar/stellar-sdk/base"
import { Effect, Layer, Option, Result } from "effect"
import { Hex } from "effect/encoding"
import { Limits } from "../../kernel/config/Limits.ts"
import { Network } from "../../kernel/config/Network.ts"
import { networkIdOf } from "../../kernel/ledger/Envelope.ts"
import { LedgerClock } from "../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc } from "../../kernel/ledger/LedgerRpc.ts"
import { addressText } from "../../kernel/ledger/TransferEvents.ts"
import type { Payment } from "../../kernel/payment/Payment.ts"
import { refusal } from "../../kernel/payment/Refusal.ts"
import {
  type Authorization,
  type Promise,
  type Scheme,
  Schemes,
  type Stage,
  type Verified
} from "../../kernel/payment/Scheme.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import type { NonceUse } from "../../kernel/settlement/Authorizations.ts"
import { Signer } from "../../kernel/signer/Signer.ts"
import { expiryFault, firstFault, lastLedgerOf, type Subject } from "./checks.ts"
import { movedAsPromised } from "./executedChecks.ts"
import { type Fault, refusals } from "./refusals.ts"
import { isSpent, ownAuthorizationStroops, type Settlement, simulationFault } from "./simulationChecks.ts"
import {
  type AuthEntry,
  callWithAmount,
  callIn,
  credentialsOf,
  decodePayload,
  facilitatorPosition,
  entriesOf,
  simulationEnvelope,
  sourceAuthorization,
  type UptoPayload
} from "./UptoWire.ts"

export const scheme = "upto"

/** What `prepare` needs of `verify`. */
interface State {
  readonly operationXdr: Uint8Array
  readonly sorobanDataXdr: Uint8Array
}

/** Payer, nonce and expiry: what the ledger itself keeps an authorization apart by. */
const keyOf = (entry: AuthEntry): string | undefined => {
  const credentials = credentialsOf(entry)
  if (credentials === undefined) return undefined
  const address = Hex.encode(xdr.ScAddress.schema.encode(credentials.address))
  return `${address}:${credentials.nonce}:${credentials.signatureExpirationLedger}`
}

const authorizationOf = ({ call }: UptoPayload): Option.Option<Authorization> => {
  const [entry] = call?.auth ?? []
  const credentials = entry === undefined ? undefined : credentialsOf(entry)
  const payer = credentials === undefined ? undefined : addressText(credentials.address)
  const key = entry === undefined ? undefined : keyOf(entry)
  return key === undefined || payer === undefined ? Option.none() : Option.some({ key, payer })
}

/** The address and nonce that a key was made of. */
const readKey = (key: string): { readonly address: string; readonly nonce: bigint } | undefined => {
  const [hex = "", nonce = ""] = key.split(":")
  const bytes = Result.getOrUndefined(Hex.decode(hex))
  const address = bytes === undefined ? undefined : addressText(xdr.ScAddress.schema.decode(bytes))
  return address === undefined ? undefined : { address, nonce: BigInt(nonce) }
}

/** How an operation uses an authorization's nonce: as exactly this settlement, or otherwise. */
const useIn = (contract: string, key: string, promise: Promise, operationXdr: Uint8Array): NonceUse => {
  const keys = entriesOf(operationXdr).flatMap((entry) => keyOf(entry) ?? [])
  // Address and nonce: what the ledger keeps uses apart by. The expiry is what two signatures may differ in.
  const nonceOf = (text: string) => text.slice(0, text.lastIndexOf(":"))
  if (!keys.some((one) => nonceOf(one) === nonceOf(key))) return "none"
  const call = callIn(operationXdr)
  const isSame =
    keys.includes(key) &&
    call?.contract === contract &&
    call.functionName === "settle" &&
    call.args.payer === promise.payer &&
    call.args.payTo === promise.payTo &&
    call.args.token === promise.asset &&
    call.args.actual === promise.amount
  return isSame ? "same" : "other"
}

/** A fault that a look at the ledger of this moment may take back: the buyer may know newer ledgers than we. */
const mayBeOurs = (fault: Fault): boolean =>
  fault?.[0] === "invalid_upto_ledger_expiration_too_far" ||
  fault?.[0] === "invalid_upto_ledger_settlement_not_yet_valid"

/** The scheme over one settlement contract. */
const makeScheme = Effect.fnUntraced(function* (contract: string) {
  const rpc = yield* LedgerRpc
  const clock = yield* LedgerClock
  const network = yield* Network
  const limits = yield* Limits
  const signer = yield* Signer
  const crypto = yield* Crypto
  const networkId = networkIdOf(crypto, network.passphrase)
  const ceilings = network.feeCeilings(scheme)
  yield* signer.allowAuthorization({ contract, functionName: "settle", position: facilitatorPosition })

  /** A payment is looked up before and after it is verified; its transaction is decoded once for all of them. */
  const decodedPayloads = new WeakMap<Payment["payload"], ReturnType<typeof decodePayload>>()
  const payloadOf = ({ payload }: Payment) => {
    const known = decodedPayloads.get(payload)
    if (known !== undefined) return known
    const decoded = decodePayload(payload)
    decodedPayloads.set(payload, decoded)
    return decoded
  }

  const subjectOf = Effect.fnUntraced(function* (payment: Payment, payload: UptoPayload, stage: Stage) {
    const subject: Subject = {
      stage,
      terms: payment.requirements,
      accepted: payment.accepted,
      payload,
      contract,
      isFacilitator: (address) => address === signer.sponsor,
      isOurs: signer.isOurs,
      time: yield* clock.now,
      networkId,
      paymentMax: network.assets.get(payment.requirements.asset)?.paymentMax ?? 0n,
      expiryToleranceLedgers: limits.expiryToleranceLedgers,
      crypto
    }
    return subject
  })

  /**
   * The operation to simulate. To verify, the facilitator stands as its source; to settle, it has signed, and the same
   * bytes are submitted.
   */
  const operationOf = Effect.fnUntraced(function* (payload: UptoPayload, amount: bigint, stage: Stage) {
    const call = payload.call!
    const alone = callWithAmount(call, amount, call.auth)
    if (stage === "verify") {
      return xdr.Operation.schema.encode(callWithAmount(call, amount, [...call.auth, sourceAuthorization(alone)]))
    }
    return yield* signer
      .signAuthorization({ operationXdr: xdr.Operation.schema.encode(alone), expiresLedger: lastLedgerOf(call) })
      .pipe(Effect.orDie)
  })

  const verify = Effect.fn("x402-upto.verify")(function* (payment: Payment, stage: Stage) {
    const decoded = payloadOf(payment)
    if (Result.isFailure(decoded)) return refusal("invalid_upto_ledger_payload_malformed", decoded.failure.reason)
    const payload = decoded.success
    const payer = Option.fromUndefinedOr(payload.call?.args.payer)
    const subject = yield* subjectOf(payment, payload, stage)
    let fault = firstFault(subject)
    if (mayBeOurs(fault)) fault = firstFault({ ...subject, time: yield* clock.fresh })
    if (fault !== undefined) return refusal(fault[0], fault[1], payer)
    const call = payload.call!
    const settlement: Settlement = {
      contract,
      payer: call.args.payer!,
      payTo: payment.requirements.payTo,
      asset: payment.requirements.asset,
      max: call.args.max!,
      amount: Option.getOrThrow(payment.requirements.amount)
    }
    const operationXdr = yield* operationOf(payload, settlement.amount, stage)
    const simulated = yield* rpc.simulate(simulationEnvelope(operationXdr, signer.sponsor))
    const refused = simulationFault(simulated, settlement, ceilings, stage === "verify" ? ownAuthorizationStroops : 0n)
    if (refused !== undefined || simulated._tag !== "Simulated") {
      const [reason, message] = refused ?? ["invalid_upto_ledger_simulation_failed", "the simulation gave no result"]
      return {
        ...refusal(reason, message, payer),
        ...(isSpent(simulated) ? { authorizationSpent: true as const } : {})
      }
    }
    const state: State = { operationXdr, sorobanDataXdr: simulated.sorobanDataXdr }
    const verified: Verified = {
      _tag: "Verified",
      payer: settlement.payer,
      payTo: settlement.payTo,
      asset: settlement.asset,
      amountMax: settlement.max,
      amount: settlement.amount,
      authorizationKey: Option.getOrThrow(authorizationOf(payload)).key,
      authorizationExpiresLedger: lastLedgerOf(call),
      resourceFeeStroops: simulated.resourceFeeStroops,
      state
    }
    return verified
  })

  const upto: Scheme = {
    scheme,
    refusals,
    supportedExtra: () => Option.some({ uptoContract: contract, facilitatorAddress: signer.sponsor }),
    authorization: (payment) => Option.flatMap(Result.getSuccess(payloadOf(payment)), authorizationOf),
    verify,
    prepare: Effect.fnUntraced(function* (_payment, verified) {
      const fault = expiryFault(verified.authorizationExpiresLedger, (yield* clock.now).sequence)
      return fault === undefined ? (verified.state as State) : refusal(fault[0], fault[1], Option.some(verified.payer))
    }),
    nonces: {
      nonceOf: readKey,
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
    const { uptoContract } = yield* Network
    if (Option.isNone(uptoContract)) return yield* Effect.logInfo("upto is not offered: no contract is configured")
    yield* schemes.register(yield* makeScheme(uptoContract.value))
  })
)
