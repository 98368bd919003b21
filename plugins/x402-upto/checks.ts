// The rules of an `upto` payment as a list of named checks, in the order in which they run: structure, terms, amounts,
// safety, authorization, window, signatures. They only need the payload, the terms and the ledger's time; no RPC. Each
// returns the reason and the sentence of its refusal, or undefined. The payer's signed maximum is the ceiling: the
// settled amount is checked against it, never the other way round.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Option } from "effect"
import { verifyEd25519 } from "../../kernel/ledger/Ed25519.ts"
import { latestExpiry } from "../../kernel/ledger/latestExpiry.ts"
import type { LedgerTime } from "../../kernel/ledger/LedgerClock.ts"
import type { Terms } from "../../kernel/payment/Payment.ts"
import type { Crypto } from "../../kernel/platform/Crypto.ts"
import { addressesIn } from "../../kernel/stellar/Address.ts"
import {
  type AuthEntry,
  credentialsOf,
  type Invocation,
  keySignatures,
  signedPayload
} from "../../kernel/stellar/AuthEntry.ts"
import { sameBytes } from "../../kernel/stellar/Envelope.ts"
import { addressOf, i128Of, isVoid, u32Of } from "../../kernel/stellar/Value.ts"
import { checkExpiry, firstLedgerOf, lastLedgerOf, lastSecondOf } from "./authorizationWindow.ts"
import type { CheckError } from "./refusals.ts"
import { askedFor, type OfferedContract, positionIn } from "./profiles.ts"
import {
  contractCallOf,
  encodeValues,
  type SettleArgs,
  type SettleCall,
  signedValues,
  type UptoPayload
} from "./UptoWire.ts"

/** Whether a payment is verified before the seller's work, against its maximum, or after it, with the actual amount. */
type Stage = "verify" | "settle"

export interface Subject {
  readonly stage: Stage
  /** The seller's terms: the maximum at verify, the settled amount at settle. */
  readonly terms: Terms
  /** The amount that the buyer accepted: always the maximum. */
  readonly accepted: Terms
  readonly payload: UptoPayload
  /** The settlement contracts of this network, ours first, each with its profile. */
  readonly offered: ReadonlyArray<OfferedContract>
  /** Whether an authorization may name this address as the facilitator. */
  readonly isFacilitator: (address: string) => boolean
  readonly isOurs: (address: string) => boolean
  readonly time: LedgerTime
  readonly networkId: Uint8Array
  readonly paymentMax: bigint
  readonly expiryToleranceLedgers: number
  readonly crypto: Crypto["Service"]
}

interface Check {
  readonly name: string
  readonly find: (subject: Subject, call: SettleCall, args: SettleArgs) => CheckError
}

/** Whether terms name the contract, by the draft's member or by ours. */
const namesContract = ({ extra }: Terms, contract: string): boolean =>
  (extra["settlementContract"] ?? extra["uptoContract"]) === contract

const signatureHolds = (subject: Subject, entry: AuthEntry): boolean => {
  const payload = signedPayload(subject.crypto, subject.networkId, entry)
  const credentials = credentialsOf(entry)
  const signatures = credentials === undefined ? undefined : keySignatures(credentials.signature)
  return (
    payload !== undefined &&
    signatures !== undefined &&
    signatures.length > 0 &&
    signatures.every(({ key, signature }) => verifyEd25519(subject.crypto, key, payload, signature))
  )
}

/** Whether an invocation is `approve(payer, contract, amount, lastLedger)` of the token, and nothing below it. */
const isApproval = (
  invocation: Invocation | undefined,
  { args, contract }: SettleCall,
  amount: bigint | undefined,
  lastLedger: number | undefined
): boolean => {
  const call = invocation === undefined ? undefined : contractCallOf(invocation)
  const [from, spender, value, until] = call?.args ?? []
  return (
    invocation?.subInvocations.length === 0 &&
    call?.contract === args.token &&
    call?.functionName === "approve" &&
    call.args.length === 4 &&
    addressOf(from) === args.payer &&
    addressOf(spender) === contract &&
    i128Of(value) === amount &&
    u32Of(until) === lastLedger
  )
}

const hasEveryArgument = ({ args, profile }: SettleCall): boolean =>
  profile.arguments.every((name) => args[name] !== undefined) && args.settlementId?.length === 32

/** Whether the allowance ends with the call: always, never, or as the payer signed. */
export const closesAllowance = ({ args, profile }: SettleCall): boolean =>
  profile.revokes === "always" || (profile.revokes === "as signed" && args.autoRevoke === true)

/** True if an account of the facilitator appears anywhere but in its one argument. */
const namesUs = (entry: AuthEntry, { profile }: SettleCall, isOurs: (address: string) => boolean): boolean => {
  const call = contractCallOf(entry.rootInvocation)
  const others = (call?.args ?? []).filter((_, position) => position !== profile.signed.indexOf("facilitator"))
  const elsewhere = [entry.credentials, entry.rootInvocation.subInvocations, others]
  return elsewhere.some((part) => [...addressesIn(part)].some(isOurs))
}

const named = (finds: Readonly<Record<string, Check["find"]>>): ReadonlyArray<Check> =>
  Object.entries(finds).map(([name, find]) => ({ name, find }))

export const checks: ReadonlyArray<Check> = named({
  "no source of ours": ({ isOurs, payload }, { operation }) => {
    const source = operation.sourceAccount
    const sources = [payload.source, ...(source == null ? [] : addressesIn(source))]
    return sources.some(isOurs)
      ? ["invalid_upto_ledger_payload_unsafe_tx_or_op_source", "an account of the facilitator is a source"]
      : undefined
  },
  "the contract is this network's settlement contract": (subject, call) =>
    call.contract === askedFor(subject)?.contract
      ? undefined
      : [
          "invalid_upto_ledger_payload_wrong_contract",
          "the contract called is not this network's upto contract of the profile asked for"
        ],
  "the terms name this contract": ({ accepted, terms }, { contract, profile }) =>
    !profile.boundsTerms || [accepted, terms].every((one) => namesContract(one, contract))
      ? undefined
      : ["invalid_upto_ledger_payload_wrong_contract", "the terms name another settlement contract"],
  "the terms say that fees are sponsored": ({ accepted, terms }, { profile }) =>
    !profile.boundsTerms || [accepted, terms].every(({ extra }) => extra["areFeesSponsored"] === true)
      ? undefined
      : ["invalid_upto_ledger_fees_not_sponsored", "extra.areFeesSponsored is not true in both copies of the terms"],
  "the profile's function with all its arguments": (_, call) =>
    call.functionName === call.profile.functionName && call.values.length === call.profile.arguments.length
      ? undefined
      : ["invalid_upto_ledger_payload_wrong_function_name", "the call is not the profile's, with all its arguments"],
  "plain addresses": ({ terms }, _, { muxed }) =>
    muxed || terms.payTo.startsWith("M")
      ? ["invalid_upto_ledger_payload_muxed_address", "muxed addresses are not supported"]
      : undefined,
  "every argument has its type": (_, call) =>
    hasEveryArgument(call)
      ? undefined
      : ["invalid_upto_ledger_payload_wrong_arguments", "an argument of the call is of another type"],
  "the token is the asset": ({ terms }, _, { token }) =>
    token === terms.asset
      ? undefined
      : ["invalid_upto_ledger_payload_wrong_asset", "the token of the call is not the asset"],
  "the facilitator is this one": ({ isFacilitator }, { profile }, { facilitator }) =>
    positionIn(profile, "facilitator") < 0 || (facilitator !== undefined && isFacilitator(facilitator))
      ? undefined
      : ["invalid_upto_ledger_payload_wrong_facilitator", "the authorization names another facilitator"],
  "the facilitator is not the payer": ({ isOurs }, _, { payer }) =>
    payer !== undefined && isOurs(payer)
      ? ["invalid_upto_ledger_payload_facilitator_is_payer", "an account of the facilitator is the payer"]
      : undefined,
  "the facilitator receives nothing": ({ isOurs, terms }, _, { payTo }) =>
    isOurs(terms.payTo) || (payTo !== undefined && isOurs(payTo))
      ? ["invalid_upto_ledger_payload_facilitator_is_recipient", "an account of the facilitator is the recipient"]
      : undefined,
  "the recipient is payTo": ({ terms }, _, { payTo }) =>
    payTo === terms.payTo ? undefined : ["invalid_upto_ledger_payload_wrong_recipient", "the recipient is not payTo"],
  "payer and recipient differ": ({ terms }, _, { payer }) =>
    payer === terms.payTo
      ? ["invalid_upto_ledger_payload_self_payment", "payer and recipient are the same"]
      : undefined,
  "the signed maximum is the accepted amount, above zero, within the asset's bound": (
    { accepted, paymentMax },
    _,
    { actual, max = 0n }
  ) => {
    if (max <= 0n || Option.getOrUndefined(accepted.amount) !== max || actual !== max) {
      return [
        "invalid_upto_ledger_payload_invalid_max_amount",
        "the signed maximum is not the accepted amount, or not above zero"
      ]
    }
    return max > paymentMax
      ? ["invalid_upto_ledger_payload_invalid_max_amount", "the maximum is above this asset's largest payment"]
      : undefined
  },
  "the amount to settle is within the signed maximum": ({ stage, terms }, _, { max = 0n }) => {
    if (Option.isNone(terms.amount)) {
      return /^-[0-9]+$/.test(terms.amountText)
        ? ["invalid_upto_ledger_settlement_negative_amount", "the amount to settle is negative"]
        : ["invalid_upto_ledger_settlement_invalid_amount", "the amount to settle is not an integer"]
    }
    if (terms.amount.value > max) {
      return ["invalid_upto_ledger_settlement_exceeds_amount", "the amount to settle is above the signed maximum"]
    }
    return stage === "verify" && terms.amount.value !== max
      ? ["invalid_upto_ledger_payload_invalid_max_amount", "what is verified is the maximum itself"]
      : undefined
  },
  "authorized by entries": (_, { auth }) =>
    auth.length === 0 ? ["invalid_upto_ledger_payload_no_auth_entries", "there is no authorization entry"] : undefined,
  "address credentials only": (_, { auth }) =>
    auth.some((entry) => credentialsOf(entry) === undefined)
      ? ["invalid_upto_ledger_payload_unsupported_credential_type", "credentials of this kind are not accepted"]
      : undefined,
  "the facilitator appears in its argument alone": ({ isOurs }, call) =>
    call.auth.some((entry) => namesUs(entry, call, isOurs))
      ? ["invalid_upto_ledger_payload_facilitator_in_auth", "an account of the facilitator appears in an authorization"]
      : undefined,
  "exactly the payer authorizes, once": (_, { auth: [entry, ...others] }, { payer }) => {
    const address = credentialsOf(entry!)?.address
    if (address === undefined || [...addressesIn(address)][0] !== payer) {
      return ["invalid_upto_ledger_payload_missing_payer_signature", "the authorization is not the payer's"]
    }
    return others.length > 0
      ? ["invalid_upto_ledger_payload_unexpected_pending_signatures", "there are further authorization entries"]
      : undefined
  },
  "the payer authorizes this very call, all but its amount": (_, call) => {
    const authorized = contractCallOf(call.auth[0]!.rootInvocation)
    const same =
      authorized?.contract === call.contract &&
      authorized.functionName === call.profile.functionName &&
      sameBytes(encodeValues(authorized.args), encodeValues(signedValues(call)))
    return same
      ? undefined
      : ["invalid_upto_ledger_payload_missing_payer_signature", "the authorization is for another call"]
  },
  "below it the allowance and its end": (_, call, { deadline, max }) => {
    const [opened, ...others] = call.auth[0]!.rootInvocation.subInvocations
    const closes = closesAllowance(call)
    const endLedger = call.profile.revokedUntil === "zero" ? 0 : deadline
    return others.length === (closes ? 1 : 0) &&
      isApproval(opened, call, max, deadline) &&
      (!closes || isApproval(others[0], call, 0n, endLedger))
      ? undefined
      : [
          "invalid_upto_ledger_payload_wrong_subinvocations",
          "below the call are other calls than approve(payer, contract, max) and the allowance's end as signed"
        ]
  },
  signed: (_, { auth: [entry] }) =>
    isVoid(credentialsOf(entry!)!.signature)
      ? ["invalid_upto_ledger_payload_missing_payer_signature", "the authorization is not signed"]
      : undefined,
  "the window has not ended": ({ time }, call) => checkExpiry(lastLedgerOf(call), lastSecondOf(call), time),
  "the window has begun": ({ time }, _, args) => {
    const first = firstLedgerOf(args, time)
    return first > time.sequence
      ? [
          "invalid_upto_ledger_settlement_not_yet_valid",
          `the authorization begins at ledger ${first}, the newest is ${time.sequence}`
        ]
      : undefined
  },
  "the window is within the timeout": ({ accepted, stage, time }, { profile }, { beginsAt, endsAt }) => {
    if (!profile.boundsTerms || beginsAt === undefined || endsAt === undefined) return undefined
    const seconds = BigInt(accepted.maxTimeoutSeconds)
    const isFar = stage === "verify" && endsAt > BigInt(time.closedAtSeconds) + seconds
    return isFar || endsAt - beginsAt > seconds
      ? ["invalid_upto_ledger_expiration_too_far", `the window ends at second ${endsAt}, beyond the timeout`]
      : undefined
  },
  "allowance and signature end together": (_, { args, auth: [entry], profile }) =>
    !profile.boundsTerms || credentialsOf(entry!)?.signatureExpirationLedger === args.deadline
      ? undefined
      : [
          "invalid_upto_ledger_payload_wrong_expiration",
          "the last ledger of the signature is not the last ledger of the allowance"
        ],
  "not too far in the future": (subject, { args, auth: [entry], profile }) => {
    const ends = Math.max(args.deadline ?? 0, credentialsOf(entry!)?.signatureExpirationLedger ?? 0)
    const tolerance = profile.boundsTerms ? 0 : subject.expiryToleranceLedgers
    const latest = latestExpiry(subject.time, subject.accepted.maxTimeoutSeconds, tolerance)
    return ends > latest
      ? ["invalid_upto_ledger_expiration_too_far", `the authorization ends at ledger ${ends}, beyond ledger ${latest}`]
      : undefined
  },
  "signatures by listed keys verify": (subject, { auth: [entry] }, { payer }) =>
    !StrKey.isValidEd25519PublicKey(payer ?? "") || signatureHolds(subject, entry!)
      ? undefined
      : ["invalid_upto_ledger_account_authentication", "a signature does not verify"]
})

const ofSignatures = new Set(["signed", "signatures by listed keys verify"])

/** Those that hold before anything is signed. */
export const unsignedChecks: ReadonlyArray<Check> = checks.filter(({ name }) => !ofSignatures.has(name))

/** The first failure, by the first check that finds one; `among` is all of them, in order. */
export const firstFailure = (subject: Subject, among: ReadonlyArray<Check> = checks): CheckError => {
  const { call } = subject.payload
  if (call === undefined)
    return ["invalid_upto_ledger_payload_wrong_operation", "the transaction is not exactly one contract call"]
  for (const check of among) {
    const error = check.find(subject, call, call.args)
    if (error !== undefined) return error
  }
  return undefined
}
