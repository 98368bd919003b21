// Verifies one payment: the offline checks, then one enforcing simulation with the amount of the stage. During verify
// the facilitator is the source of the simulation, so it needs no signature: nothing that could settle exists before
// the seller has named an amount. During settle both signatures are in place, and the simulated bytes go to the ledger.
import { Effect, Option, Result } from "effect"
import { Limits } from "../../kernel/config/Limits.ts"
import { Network } from "../../kernel/config/Network.ts"
import { LedgerClock, type LedgerTime } from "../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc, LedgerUnavailable } from "../../kernel/ledger/LedgerRpc.ts"
import type { Payment } from "../../kernel/payment/Payment.ts"
import { explainHoldings } from "../../kernel/payment/explainHoldings.ts"
import { refusedAuthorization } from "../../kernel/payment/readSimulation.ts"
import { type Refusal, refusal } from "../../kernel/payment/Refusal.ts"
import type { Stage, Verified } from "../../kernel/payment/Scheme.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { Signer } from "../../kernel/signer/Signer.ts"
import { accountOf } from "../../kernel/stellar/Address.ts"
import { encodeOperation } from "../../kernel/stellar/ContractCall.ts"
import { networkIdOf, simulationEnvelope } from "../../kernel/stellar/Envelope.ts"
import { authorizationOf } from "./authorizations.ts"
import { firstLedgerOf, lastLedgerOf, lastSecondOf } from "./authorizationWindow.ts"
import { closesAllowance, firstFailure, type Subject } from "./checks.ts"
import { type OfferedContract, positionIn, registeredAs } from "./profiles.ts"
import type { CheckError } from "./refusals.ts"
import { ownAuthorizationStroops, type Settlement, checkSimulation } from "./simulationChecks.ts"
import {
  callWithAmount,
  type decodePayload,
  type SettleCall,
  sourceAuthorization,
  type UptoPayload
} from "./UptoWire.ts"

export const scheme = "upto"

/** Data for rebuilding the settlement's transaction. */
export interface State {
  readonly operationXdr: Uint8Array
  readonly sorobanDataXdr: Uint8Array
  /** The last second of the authorization's window, if it also has a window in seconds. */
  readonly lastSecond?: bigint
}

/** A failure that a fresh read of the ledger may clear: the buyer may have seen newer ledgers than this node. */
const mayBeOurs = (error: CheckError): boolean =>
  error?.[0] === "invalid_upto_ledger_expiration_too_far" ||
  error?.[0] === "invalid_upto_ledger_settlement_not_yet_valid"

export const subjectOf = Effect.fnUntraced(function* (
  offered: ReadonlyArray<OfferedContract>,
  payment: Payment,
  payload: UptoPayload,
  stage: Stage
) {
  const network = yield* Network
  const signer = yield* Signer
  const crypto = yield* Crypto
  const subject: Subject = {
    stage,
    terms: payment.requirements,
    accepted: payment.accepted,
    payload,
    offered,
    isFacilitator: (address) => signer.sponsors.includes(address),
    isOurs: signer.isOurs,
    time: yield* (yield* LedgerClock).now,
    networkId: networkIdOf(crypto, network.passphrase),
    paymentMax: network.assets.get(payment.requirements.asset)?.paymentMax ?? 0n,
    expiryToleranceLedgers: (yield* Limits).expiryToleranceLedgers,
    crypto
  }
  return subject
})

/** Ledgers that a buyer's node may be ahead of ours, a minute of the public network's. */
const aheadMax = 12

/** An authorization that begins within a few ledgers is not refused as too early: the node may be behind. */
const notYetKnown = (operation: string, begins: number, newest: number) =>
  new LedgerUnavailable({ operation, message: `the authorization begins at ledger ${begins}, the newest is ${newest}` })

const beginsOf = ({ payload, time }: Subject): number =>
  payload.call === undefined ? 0 : firstLedgerOf(payload.call.args, time)

/** The first failure of the offline checks. It reads the ledger again if the cached reading may be too old. */
const offlineError = Effect.fnUntraced(function* (subject: Subject) {
  const first = firstFailure(subject)
  if (!mayBeOurs(first)) return first
  const time = yield* (yield* LedgerClock).fresh
  const error = firstFailure({ ...subject, time })
  const begins = beginsOf({ ...subject, time })
  return error?.[0] === "invalid_upto_ledger_settlement_not_yet_valid" && begins <= time.sequence + aheadMax
    ? yield* notYetKnown("getLatestLedger", begins, time.sequence)
    : error
})

/** For an authorization refused for its age: a settlement with a lost record may have used it. */
export const endOfLife = (
  authorizationExpiresLedger: number,
  lastSecond: bigint | undefined,
  { closedAtSeconds, sequence }: LedgerTime
): Pick<Refusal, "authorizationExpiresLedger" | "authorizationEndedLedger"> => ({
  authorizationExpiresLedger,
  ...(lastSecond !== undefined && lastSecond < BigInt(closedAtSeconds) ? { authorizationEndedLedger: sequence } : {})
})

const expiredAuthorization = ([reason]: NonNullable<CheckError>, { payload: { call }, time }: Subject) =>
  reason === "invalid_upto_ledger_settlement_expired" && call !== undefined
    ? endOfLife(lastLedgerOf(call), lastSecondOf(call), time)
    : {}

const operationOf = Effect.fnUntraced(function* (call: SettleCall, amount: bigint, stage: Stage) {
  const alone = callWithAmount(call, amount, call.auth)
  // Without a facilitator argument in the profile, only the payer authorizes.
  if (positionIn(call.profile, "facilitator") < 0) return encodeOperation(alone)
  if (stage === "verify")
    return encodeOperation(callWithAmount(call, amount, [...call.auth, sourceAuthorization(alone)]))
  const request = { operationXdr: encodeOperation(alone), expiresLedger: lastLedgerOf(call) }
  return yield* (yield* Signer)
    .signAuthorization(request)
    .pipe(Effect.catchTag("SignerRefused", (refused) => Effect.die(refused)))
})

/**
 * Whether the contract runs the code that its profile is registered under. Code of a registered contract never changes,
 * so it is read once.
 */
const hasRegisteredCode = Effect.fnUntraced(function* ({ contract, profile }: OfferedContract, proven: Set<string>) {
  if (proven.has(contract)) return true
  const code = yield* (yield* LedgerRpc).codeHash(contract)
  const holds = registeredAs(Option.getOrUndefined(code))?.name === profile.name
  if (holds) proven.add(contract)
  return holds
})

/** Verifies a payment for the settlement contracts of this network. `proven`: contracts whose code has been read. */
export const verifyPayment = Effect.fnUntraced(function* (
  offered: ReadonlyArray<OfferedContract>,
  proven: Set<string>,
  payment: Payment,
  decoded: ReturnType<typeof decodePayload>,
  stage: Stage
) {
  if (Result.isFailure(decoded)) return refusal("invalid_upto_ledger_payload_malformed", decoded.failure.reason)
  const payload = decoded.success
  const payer = Option.fromUndefinedOr(payload.call?.args.payer)
  const subject = yield* subjectOf(offered, payment, payload, stage)
  const error = yield* offlineError(subject)
  if (error !== undefined)
    return {
      ...refusal(error[0], error[1], payer),
      ...expiredAuthorization(error, subject)
    }
  const call = payload.call!
  const { contract, profile } = call
  if (!(yield* hasRegisteredCode({ contract, profile }, proven)))
    return refusal(
      "invalid_upto_ledger_payload_wrong_contract",
      "the contract's code is not the one registered for the profile",
      payer
    )
  const settlement: Settlement = {
    contract,
    profile,
    closes: closesAllowance(call),
    payer: call.args.payer!,
    payTo: payment.requirements.payTo,
    asset: payment.requirements.asset,
    max: call.args.max!,
    amount: Option.getOrThrow(payment.requirements.amount)
  }
  const operationXdr = yield* operationOf(call, settlement.amount, stage)
  const rpc = yield* LedgerRpc
  const simulated = yield* rpc.simulate(
    simulationEnvelope(accountOf(call.args.facilitator ?? (yield* Signer).sponsor), operationXdr)
  )
  if (simulated._tag === "Refused" && simulated.latestLedger < beginsOf(subject))
    return yield* notYetKnown("simulateTransaction", beginsOf(subject), simulated.latestLedger)
  const ceilings = (yield* Network).feeCeilings(scheme)
  const added = stage === "verify" && call.args.facilitator !== undefined ? ownAuthorizationStroops : 0n
  const whose = yield* explainHoldings(rpc, simulated, settlement)
  const refused = checkSimulation(simulated, settlement, ceilings, added, whose)
  if (refused !== undefined || simulated._tag !== "Simulated") {
    const [reason, message] = refused ?? ["invalid_upto_ledger_simulation_failed", "the simulation gave no result"]
    return { ...refusal(reason, message, payer), ...refusedAuthorization(simulated, lastLedgerOf(call)) }
  }
  const lastSecond = lastSecondOf(call)
  const state: State = {
    operationXdr,
    sorobanDataXdr: simulated.sorobanDataXdr,
    ...(lastSecond === undefined ? {} : { lastSecond })
  }
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
