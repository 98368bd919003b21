// Verifies a payload that the ledger settles: first offline checks, including signatures, then the state of its
// channels with one read, then one simulation of exactly the submitted call. Claims of many channels are one call. A
// refusal identifies the invalid claim by its position. If claims do not fit one transaction, the refusal has that
// reason, so that their sender splits them.
import { Clock, Effect, Option } from "effect"
import { Limits } from "../../kernel/config/Limits.ts"
import { Network } from "../../kernel/config/Network.ts"
import { LedgerClock, type LedgerTime } from "../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc, type LedgerUnavailable } from "../../kernel/ledger/LedgerRpc.ts"
import { resetAfter } from "../../kernel/budget/Budget.ts"
import { overBudget } from "../../kernel/payment/answers.ts"
import type { Payment } from "../../kernel/payment/Payment.ts"
import { refusedAuthorization } from "../../kernel/payment/readSimulation.ts"
import type { Refusal } from "../../kernel/payment/Refusal.ts"
import type { Stage, Verified } from "../../kernel/payment/Scheme.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { Signer } from "../../kernel/signer/Signer.ts"
import { accountOf, contractAddressOf } from "../../kernel/stellar/Address.ts"
import { credentialsOf } from "../../kernel/stellar/AuthEntry.ts"
import { callOperation, encodeOperation, type InvokeArgs } from "../../kernel/stellar/ContractCall.ts"
import { simulationEnvelope } from "../../kernel/stellar/Envelope.ts"
import type { BatchContract } from "./batchCodec.ts"
import type { LedgerPayload } from "./BatchWire.ts"
import { depositMinError } from "./depositTerms.ts"
import { ChannelStates } from "./ChannelStates.ts"
import { behind } from "./proveState.ts"
import { acceptedRefusal, callError } from "./checks.ts"
import { type DelegateSign, withDelegate } from "./Delegates.ts"
import { callOfPayload, expectedCall, partiesOf, settleKey, signerOf, stretchLedgers } from "./ledgerCalls.ts"
import { type Offline, payloadError } from "./payloadChecks.ts"
import { type CheckError, refuse } from "./refusals.ts"
import { movedBetween, readSimulation, type Shown } from "./simulationChecks.ts"
import { booksOf, channelsOf, depositStateError, raisedBy, readStateError, unknownChannel } from "./stateChecks.ts"
import { channelStateExtra, priceOf } from "./verifyVoucher.ts"
import type { Vouchers } from "./Vouchers.ts"

export const scheme = "batch-settlement"

/** Data for rebuilding the settlement's transaction. */
export interface State {
  readonly operationXdr: Uint8Array
  readonly sorobanDataXdr: Uint8Array
}

interface CallContext {
  readonly at: BatchContract
  readonly vouchers: Vouchers
  /** Signs for callers if this facilitator holds their authorizers' keys. */
  readonly sign: DelegateSign
  /** The minimum deposit, atomic units. */
  readonly depositMin: bigint
  /** True if the caller's deposits of today may cost this much more, stroops. */
  readonly fitsBudget: (source: string, stroops: bigint) => Effect.Effect<boolean, LedgerUnavailable>
  /** True if the receiver can be paid this amount of a token. */
  readonly receiverError: (
    receiver: string,
    token: string,
    amount: bigint
  ) => Effect.Effect<CheckError, LedgerUnavailable>
  /** The identity of a payment's authorization, before the ledger is asked. Undefined for a settle. */
  readonly keyOf: (payment: Payment) => string | undefined
  /** Records the earlier keys of a settle that finds nothing left, in case it repeats one of them. */
  readonly noteSwept: (payment: Payment, keys: ReadonlyArray<string>) => void
}

/** The amounts of a call: exact for a deposit, otherwise from the simulation; for a claim the increase. */
const amountsOf = (
  payload: LedgerPayload,
  shown: Shown,
  parties: Parameters<typeof movedBetween>[1],
  raised: bigint
): { readonly amount: bigint } | { readonly error: NonNullable<CheckError> } => {
  const moved = movedBetween(shown, parties)
  if (moved === undefined)
    return { error: ["deposit_simulation_failed", "the simulation moves something else than was asked for"] }
  switch (payload._tag) {
    case "Deposit":
      return moved === payload.amount
        ? { amount: moved }
        : { error: ["deposit_simulation_failed", "the simulation does not move the deposit to the contract"] }
    case "Claim": {
      if (moved !== 0n) return { error: ["claim_simulation_failed", "the simulation of the claim moves money"] }
      const isRaised = shown.own.some((event) => event._tag === "Claimed" && event.channels.length > 0)
      return isRaised
        ? { amount: raised }
        : { error: ["nothing_to_claim", "no claim is above what its channel was claimed before"] }
    }
    default:
      return { amount: moved }
  }
}

const expiryOf = (payload: LedgerPayload): number | undefined => {
  if (payload._tag !== "Deposit" && payload._tag !== "Withdraw") return undefined
  const [entry] = payload.sent.call?.auth ?? []
  return (entry === undefined ? undefined : credentialsOf(entry))?.signatureExpirationLedger ?? 0
}

/** Seconds for which an authorizer's signature must still be valid, so that it can be sent and included. */
const signatureSecondsMin = 15
/** Maximum validity of a signed refund: until then its amount may be paid out, regardless of its state here. */
const refundSecondsMax = 3_600

/** Checks the expiry of an authorizer's signature against the newest ledger's close. */
const signatureLifeError = (payload: LedgerPayload, { closedAtSeconds }: LedgerTime): CheckError => {
  if ((payload._tag !== "Claim" && payload._tag !== "Refund") || payload.expiresAt === undefined) return undefined
  const left = payload.expiresAt - closedAtSeconds
  if (left < signatureSecondsMin)
    return ["payload_authorization_valid_before", `expiresAt is not ${signatureSecondsMin} s after the newest close`]
  return payload._tag === "Refund" && left > refundSecondsMax
    ? ["payload_authorization_valid_after", `a refund's expiresAt is more than ${refundSecondsMax} s ahead`]
    : undefined
}

/** The last ledger for a call that does not carry a ledger authorization. */
const lastLedgerOf = (payload: LedgerPayload, { closedAtSeconds, secondsPerLedger, sequence }: LedgerTime): number => {
  const { expiresAt = Infinity } = payload as { readonly expiresAt?: number }
  return sequence + Math.min(stretchLedgers, Math.floor((expiresAt - closedAtSeconds) / secondsPerLedger))
}

/**
 * Refuses to verify a payload as the payment of a price: it moves nothing of the price, but its settle succeeds. A
 * seller without the scheme's own part would answer it. Only a deposit and a voucher pay.
 */
const unpaidError = (payload: LedgerPayload, price: bigint, stage: Stage): CheckError =>
  stage === "verify" &&
  price > 0n &&
  (payload._tag === "Claim" || payload._tag === "Settle" || payload._tag === "Withdraw")
    ? ["payload_type", `a ${payload._tag.toLowerCase()} pays no price: the required amount must be 0`]
    : undefined

/** The offline checks of a payload and of its sent call. */
const offlineRefusal = Effect.fnUntraced(function* (
  context: CallContext,
  payment: Payment,
  payload: LedgerPayload,
  stage: Stage
) {
  const signer = yield* Signer
  const crypto = yield* Crypto
  const payer = "config" in payload ? payload.config.payer : undefined
  const isLessAllowed = stage === "settle" && payload._tag === "Deposit"
  const unaccepted = acceptedRefusal(payment, context.at.address, isLessAllowed)
  if (unaccepted !== undefined) return { ...unaccepted, payer: Option.fromUndefinedOr(payer) }
  const offline: Offline = { payment, context, isOurs: signer.isOurs, crypto }
  const error =
    unpaidError(payload, priceOf(payment), stage) ??
    payloadError(payload, offline) ??
    signatureLifeError(payload, yield* (yield* LedgerClock).now)
  if (error !== undefined) return refuse(error[0], error[1], payer)
  if (payload._tag === "Deposit") {
    const most = (yield* Network).assets.get(payment.requirements.asset)?.paymentMax ?? 0n
    if (payload.amount > most)
      return refuse("deposit_amount", "the deposit is above this asset's largest payment", payer)
    const small = depositMinError(payload.amount, payment.requirements.extra["minDeposit"], context.depositMin)
    if (small !== undefined) return refuse(small[0], small[1], payer)
  }
  return undefined
})

/** Checks the authorization of a sent call; reads the ledger again if the cached reading may be too old. */
const sentRefusal = Effect.fnUntraced(function* (context: CallContext, payment: Payment, payload: LedgerPayload) {
  const expected = expectedCall(payload, context.at.address)
  if (expected === undefined || (payload._tag !== "Deposit" && payload._tag !== "Withdraw")) return undefined
  const clock = yield* LedgerClock
  const signer = yield* Signer
  const subject = {
    at: context.at,
    sent: payload.sent,
    expected,
    signer: payload._tag === "Deposit" ? (signerOf(payload.sent) ?? payload.config.payer) : payload.config.payer,
    maxTimeoutSeconds: payment.accepted.maxTimeoutSeconds,
    time: yield* clock.now,
    expiryToleranceLedgers: (yield* Limits).expiryToleranceLedgers,
    isOurs: signer.isOurs,
    crypto: yield* Crypto
  }
  let error = callError(subject)
  // The buyer may have seen newer ledgers than our last poll.
  if (error?.[0] === "payload_authorization_valid_after") error = callError({ ...subject, time: yield* clock.fresh })
  if (error === undefined) return undefined
  return {
    ...refuse(error[0], error[1], subject.signer),
    // A settlement with a lost record may have used it.
    ...(error[0] === "payload_authorization_valid_before" ? { authorizationExpiresLedger: expiryOf(payload) ?? 0 } : {})
  }
})

const operationOf = (payload: LedgerPayload, contract: string): Uint8Array => {
  const { args, auth, functionName } = callOfPayload(payload, contract)
  const invoked = {
    contractAddress: contractAddressOf(contract),
    functionName,
    args: [...args]
  } as unknown as InvokeArgs
  return encodeOperation(callOperation(invoked, auth))
}

/** Checks a payload against the ledger before the simulation, and returns the identity of a sweep. */
const readLedger = Effect.fnUntraced(function* (
  context: CallContext,
  payment: Payment,
  payload: LedgerPayload,
  sequence: number
) {
  const states = yield* ChannelStates
  const receiving =
    payload._tag === "Deposit"
      ? context.receiverError(payload.config.receiver, payload.config.token, payload.amount)
      : Effect.undefined
  const [read, unpayable] = yield* Effect.all([states.fresh(channelsOf(context.at, payload)), receiving], {
    concurrency: "unbounded"
  })
  const byId = new Map(read.map(({ channelId, state }) => [channelId, state]))
  const error = unpayable ?? readStateError(payload, context.at, byId)
  if (error !== undefined) return { error }
  if (payload._tag !== "Settle") return { states: byId, key: undefined }
  const { receiver, token } = payload
  const swept = yield* states.receiver(receiver, token)
  const keyAt = (ledger: number) => settleKey(receiver, token, swept?.totalClaimed ?? 0n, ledger)
  if (swept !== undefined && swept.totalClaimed <= swept.totalSettled) {
    context.noteSwept(payment, [keyAt(sequence), keyAt(sequence - stretchLedgers)])
    return { error: ["nothing_to_settle", "nothing was claimed that is not settled"] as NonNullable<CheckError> }
  }
  return { states: byId, key: keyAt(sequence) }
})

/** Verifies a payload for its settlement on the ledger. */
export const verifyCall = Effect.fnUntraced(function* (
  context: CallContext,
  payment: Payment,
  sent: LedgerPayload,
  stage: Stage
): Effect.fn.Return<
  Verified | Refusal,
  Effect.Error<ReturnType<LedgerRpc["Service"]["simulate"]>>,
  ChannelStates | Crypto | LedgerClock | LedgerRpc | Limits | Network | Signer
> {
  const { at } = context
  const time = yield* (yield* LedgerClock).now
  const { sequence } = time
  const payload = withDelegate(sent, at, payment.principal.owner, context.sign, time.closedAtSeconds)
  const refused =
    (yield* offlineRefusal(context, payment, payload, stage)) ?? (yield* sentRefusal(context, payment, payload))
  if (refused !== undefined) return refused
  const payer = "config" in payload ? payload.config.payer : undefined
  const parties = partiesOf(payload, at.address, payment.requirements)
  const expiresLedger = expiryOf(payload)
  const read = yield* readLedger(context, payment, payload, sequence)
  if ("error" in read) return refuse(...read.error, payer)
  const operationXdr = operationOf(payload, at.address)
  const source = accountOf((yield* Signer).sponsor)
  const simulated = yield* (yield* LedgerRpc).simulate(simulationEnvelope(source, operationXdr))
  // A node that does not show the last claim does not show that nothing is left to settle.
  if (payload._tag === "Settle" && simulated._tag === "Refused" && simulated.latestLedger < sequence)
    return yield* behind("simulateTransaction", simulated.latestLedger, sequence)
  const checked = readSimulation(payload, simulated, at.address, (yield* Network).feeCeilings(scheme))
  if ("error" in checked || simulated._tag !== "Simulated") {
    const [word, message] = "error" in checked ? checked.error : (["rpc_read_failed", "no result"] as const)
    return { ...refuse(word, message, payer), ...refusedAuthorization(simulated, expiresLedger ?? 0) }
  }
  if (
    payload._tag === "Deposit" &&
    !(yield* context.fitsBudget(payment.principal.source, simulated.resourceFeeStroops))
  )
    return overBudget(resetAfter(yield* Clock.currentTimeMillis), Option.fromUndefinedOr(payer))
  const raised = payload._tag === "Claim" ? raisedBy(payload.claims, at, read.states) : 0n
  const amounts = amountsOf(payload, checked.shown, parties, raised)
  if ("error" in amounts) return refuse(...amounts.error, payer)
  const [channelId] = channelsOf(at, payload)
  let state = channelId === undefined ? undefined : read.states.get(channelId)
  if (payload._tag === "Deposit") {
    const balance = checked.shown.own.find((event) => event._tag === "Deposited")?.balance ?? 0n
    // The read did not show the channel, but it holds more than the deposit: it was archived, or the node is behind.
    if (state === undefined && balance > amounts.amount)
      state = (yield* (yield* ChannelStates).prove(channelId!, payment.principal)).state
    const error = depositStateError(payload, state, balance, priceOf(payment))
    if (error !== undefined) return refuse(error[0], error[1], payer)
  }
  const verified: Verified = {
    _tag: "Verified",
    ...parties,
    amountMax: amounts.amount,
    amount: amounts.amount,
    authorizationKey: read.key ?? context.keyOf(payment)!,
    authorizationExpiresLedger: expiresLedger ?? lastLedgerOf(payload, time),
    resourceFeeStroops: simulated.resourceFeeStroops,
    state: { operationXdr, sorobanDataXdr: simulated.sorobanDataXdr } satisfies State,
    books: booksOf(at, payload, amounts.amount),
    ...(payload._tag === "Deposit" ? { extra: channelStateExtra(channelId!, state ?? unknownChannel) } : {})
  }
  return verified
})
