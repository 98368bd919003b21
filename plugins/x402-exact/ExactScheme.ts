// The `exact` scheme on Stellar: the buyer signs one transfer of a fixed amount, and the facilitator submits exactly
// that call. Offline checks come first; then one enforcing simulation serves as proof, event check, fee check and
// source of the resource data with which the transaction is rebuilt. Of the client's envelope only the operation is
// used.
import { Effect, Layer, Option, Result } from "effect"
import { memoizePerObject } from "../../kernel/cache/objectSlot.ts"
import { Limits } from "../../kernel/config/Limits.ts"
import { Network } from "../../kernel/config/Network.ts"
import { LedgerClock } from "../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc } from "../../kernel/ledger/LedgerRpc.ts"
import type { Payment, Terms } from "../../kernel/payment/Payment.ts"
import { explainHoldings } from "../../kernel/payment/explainHoldings.ts"
import { refusedAuthorization } from "../../kernel/payment/readSimulation.ts"
import { refusal } from "../../kernel/payment/Refusal.ts"
import { unsignedEnvelope, type Unsigned, unsignedEntry, type UnsignedOrder } from "../../kernel/payment/Unsigned.ts"
import {
  type Authorization,
  type NonceReader,
  type Scheme,
  Schemes,
  type Verified
} from "../../kernel/payment/Scheme.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { Signer } from "../../kernel/signer/Signer.ts"
import { addressText, contractAddressOf } from "../../kernel/stellar/Address.ts"
import { credentialsOf, invocationOf } from "../../kernel/stellar/AuthEntry.ts"
import { authorizationKeyOf, haveOneNonce, readAuthorizationKey } from "../../kernel/stellar/AuthorizationKey.ts"
import {
  authOf,
  callOf,
  callOfOperation,
  decodeOperation,
  encodeOperation,
  type InvokeArgs
} from "../../kernel/stellar/ContractCall.ts"
import { networkIdOf, type Operation, simulationEnvelope } from "../../kernel/stellar/Envelope.ts"
import { checkExpiry, checks, firstFailure, type Subject, unsignedChecks } from "./checks.ts"
import { decodePayload, type ExactPayload, transferArgs } from "./ExactWire.ts"
import { refusals } from "./refusals.ts"
import { movedAsPromised, checkSimulation } from "./simulationChecks.ts"
import { withSpanIfSampled } from "../../kernel/effect/withSpanIfSampled.ts"
import { addressValue, i128Value } from "../../kernel/stellar/Value.ts"

// The data that the payer of an `exact` payment signs: a single call `transfer(payer, payTo, amount)` of the asset,
// without sub-invocations. Pure.

/** The terms' addresses are valid, and their asset is a contract. */
const unsignedTransfer = ({ amount, asset, payTo }: Terms, order: UnsignedOrder): Unsigned => {
  const invoked = {
    contractAddress: contractAddressOf(asset),
    functionName: "transfer",
    args: [addressValue(order.payer), addressValue(payTo), i128Value(Option.getOrElse(amount, () => 0n))]
  } as unknown as InvokeArgs
  return { invoked, entry: unsignedEntry(order, invocationOf(invoked)), chosen: {} }
}

const scheme = "exact"

/** Verify's result, as `prepare` uses it. */
interface State {
  readonly operationXdr: Uint8Array
  readonly sorobanDataXdr: Uint8Array
}

/** Payer, nonce and expiry: the ledger's own identity of an authorization. */
const authorizationOf = (payload: ExactPayload): Option.Option<Authorization> => {
  const [entry] = callOf(payload.tx)?.auth ?? []
  const credentials = entry === undefined ? undefined : credentialsOf(entry)
  const payer = credentials === undefined ? undefined : addressText(credentials.address)
  const key = entry === undefined ? undefined : authorizationKeyOf(entry)
  return key === undefined || payer === undefined ? Option.none() : Option.some({ key, payer })
}

/** How an operation uses an authorization's nonce: exactly as this transfer, or otherwise. */
const useIn: NonceReader["useIn"] = (key, promise, operationXdr) => {
  const operation = decodeOperation(operationXdr)
  const keys = authOf(operation).flatMap((entry) => authorizationKeyOf(entry) ?? [])
  if (!keys.some((one) => haveOneNonce(one, key))) return "none"
  const call = callOfOperation(operation)
  const { amount, from, to } = transferArgs(call?.args ?? [])
  const isSame =
    keys.length === 1 &&
    keys[0] === key &&
    call?.contract === promise.asset &&
    call.functionName === "transfer" &&
    call.args.length === 3 &&
    from === promise.payer &&
    to === promise.payTo &&
    amount === promise.amount
  return isSame ? "same" : "other"
}

/** Only the operation. An operation without a source stays unchanged, so that its original bytes are sent. */
const withoutSource = (operation: Operation): Operation =>
  operation.sourceAccount === null ? operation : { ...operation, sourceAccount: null }

interface PayloadReader {
  readonly payloadOf: (payment: Payment) => Decoded
  readonly authorizationOf: (payload: ExactPayload) => Option.Option<Authorization>
}

type Decoded = Result.Result<ExactPayload, { readonly reason: string }>

/** Memoizes a payment's decoded transaction and its authorization's key: both are needed before and after verify. */
const makeReading = (): PayloadReader => {
  const decoded = memoizePerObject((payload: Payment["payload"]): Decoded => decodePayload(payload))
  return {
    payloadOf: ({ payload }: Payment): Decoded => decoded(payload),
    authorizationOf: memoizePerObject(authorizationOf)
  }
}

/** The offline checks: their subject, and the first failure. */
const makeOfflineChecks = Effect.gen(function* () {
  const clock = yield* LedgerClock
  const network = yield* Network
  const limits = yield* Limits
  const signer = yield* Signer
  const crypto = yield* Crypto
  const networkId = networkIdOf(crypto, network.passphrase)
  return Effect.fnUntraced(function* (terms: Payment["requirements"], payload: ExactPayload, among = checks) {
    const call = callOf(payload.tx)
    const subject: Subject = {
      terms,
      payload,
      call,
      transfer: transferArgs(call?.args ?? []),
      time: yield* clock.now,
      networkId,
      isOurs: signer.isOurs,
      paymentMax: network.assets.get(terms.asset)?.paymentMax ?? 0n,
      expiryToleranceLedgers: limits.expiryToleranceLedgers,
      crypto
    }
    let error = firstFailure(subject, among)
    // The buyer may have seen newer ledgers than our last poll, so we decide "too far" on a fresh ledger only.
    if (error?.[0] === "invalid_exact_ledger_signature_expiration_too_far")
      error = firstFailure({ ...subject, time: yield* clock.fresh }, among)
    return { subject, error }
  })
})

const makeVerify = Effect.fnUntraced(function* ({ authorizationOf, payloadOf }: PayloadReader) {
  const rpc = yield* LedgerRpc
  const ceilings = (yield* Network).feeCeilings(scheme)
  const checkOffline = yield* makeOfflineChecks
  return Effect.fnUntraced(function* (payment: Payment) {
    const terms = payment.requirements
    if (payment.accepted.amountText !== terms.amountText)
      return refusal("requirements_mismatch", "the accepted amount is not the required one")
    const decoded = payloadOf(payment)
    if (Result.isFailure(decoded)) return refusal("invalid_exact_ledger_payload_malformed", decoded.failure.reason)
    const payload = decoded.success
    const { error, subject } = yield* checkOffline(terms, payload)
    const { call, transfer } = subject
    const payer = Option.fromUndefinedOr(transfer.from)
    const [entry] = call?.auth ?? []
    const expiresLedger = (entry === undefined ? undefined : credentialsOf(entry))?.signatureExpirationLedger ?? 0
    if (error !== undefined)
      return {
        ...refusal(error[0], error[1], payer),
        // A settlement whose record was lost may have used it.
        ...(error[0] === "invalid_ledger_auth_expired" ? { authorizationExpiresLedger: expiresLedger } : {})
      }
    const operationXdr = encodeOperation(withoutSource(call!.operation))
    const promise = { payer: transfer.from!, payTo: terms.payTo, asset: terms.asset, amount: transfer.amount! }
    const simulated = yield* rpc.simulate(simulationEnvelope(payload.tx.sourceAccount, operationXdr))
    const whose = yield* explainHoldings(rpc, simulated, promise)
    const refused = checkSimulation(simulated, promise, ceilings, whose)
    if (refused !== undefined || simulated._tag !== "Simulated") {
      const [reason, message] = refused ?? [
        "invalid_ledger_enforcing_simulation_failed",
        "the simulation gave no result"
      ]
      return { ...refusal(reason, message, payer), ...refusedAuthorization(simulated, expiresLedger) }
    }
    const state: State = { operationXdr, sorobanDataXdr: simulated.sorobanDataXdr }
    const verified: Verified = {
      _tag: "Verified",
      ...promise,
      amountMax: promise.amount,
      authorizationKey: Option.getOrThrow(authorizationOf(payload)).key,
      authorizationExpiresLedger: expiresLedger,
      resourceFeeStroops: simulated.resourceFeeStroops,
      state
    }
    return verified
  }, withSpanIfSampled("x402-exact.verify"))
})

/** The data that a payer signs. It passes the checks of `verify` that need no signature. */
const makeUnsigned = Effect.gen(function* () {
  const checkOffline = yield* makeOfflineChecks
  const unsigned: Scheme["unsigned"] = Effect.fnUntraced(function* ({ requirements }, order) {
    const laidOut = unsignedTransfer(requirements, order)
    const transaction = unsignedEnvelope(laidOut.invoked, [laidOut.entry])
    const payload = Result.getOrThrow(decodePayload({ transaction }))
    const { error } = yield* checkOffline(requirements, payload, unsignedChecks)
    return error === undefined ? laidOut : refusal(error[0], error[1], Option.some(order.payer))
  })
  return unsigned
})

const makeScheme = Effect.gen(function* () {
  const clock = yield* LedgerClock
  const reading = makeReading()
  const exact: Scheme = {
    kind: "ledger",
    scheme,
    refusals,
    supportedExtra: () => Option.some({}),
    authorization: (payment) => Option.flatMap(Result.getSuccess(reading.payloadOf(payment)), reading.authorizationOf),
    verify: yield* makeVerify(reading),
    unsigned: yield* makeUnsigned,
    prepare: Effect.fnUntraced(function* (_payment, verified) {
      const { authorizationExpiresLedger, payer, state } = verified
      const error = checkExpiry(authorizationExpiresLedger, (yield* clock.now).sequence)
      return error === undefined
        ? (state as State)
        : { ...refusal(error[0], error[1], Option.some(payer)), authorizationExpiresLedger }
    }),
    nonces: { nonceOf: readAuthorizationKey, useIn },
    checkExecuted: (promise, { transfers }) =>
      Option.isNone(transfers) || movedAsPromised(transfers.value, promise)
        ? { _tag: "Moved", amount: promise.amount }
        : { _tag: "NotMoved", message: "the executed transaction does not show the expected transfer" }
  }
  return exact
})

/** Registers the scheme until the plugin's Scope closes. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const schemes = yield* Schemes
    yield* schemes.register(yield* makeScheme)
  })
)
