// The rules of `batch-settlement` that need no ledger, as lists of named checks in the order in which they run: the
// accepted terms equal the required ones, the channel's terms match the requirements, its id matches its configuration,
// and a deposit's authorization is exactly one call with one transfer below it. Each returns the reason and the
// sentence of its refusal, or undefined.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Option } from "effect"
import { verifyEd25519 } from "../../kernel/ledger/Ed25519.ts"
import { latestExpiry } from "../../kernel/ledger/latestExpiry.ts"
import type { LedgerTime } from "../../kernel/ledger/LedgerClock.ts"
import type { Payment } from "../../kernel/payment/Payment.ts"
import { type Refusal, refusal } from "../../kernel/payment/Refusal.ts"
import type { Crypto } from "../../kernel/platform/Crypto.ts"
import { addressesIn, addressText } from "../../kernel/stellar/Address.ts"
import {
  type AuthEntry,
  authorizedCall,
  credentialsOf,
  keySignatures,
  signedPayload
} from "../../kernel/stellar/AuthEntry.ts"
import { encodeInvoked, type InvokeArgs } from "../../kernel/stellar/ContractCall.ts"
import { sameBytes } from "../../kernel/stellar/Envelope.ts"
import { encodeValue, isVoid, symbolText, type Value, vecValue } from "../../kernel/stellar/Value.ts"
import { type BatchContract, type ChannelConfig, withdrawDelayMax, withdrawDelayMin } from "./batchCodec.ts"
import type { SentCall, Voucher } from "./BatchWire.ts"
import { type CheckError, refuse } from "./refusals.ts"
import type { Vouchers } from "./Vouchers.ts"

/** The members of `extra` that must be equal in both copies and in the channel's terms. */
const binding = ["receiverAuthorizer", "withdrawDelay", "batchContract"] as const

const mismatch = (message: string): Refusal => refusal("requirements_mismatch", message)

/** True if the accepted terms equal the required ones. A settle may ask for less than the buyer accepted. */
export const acceptedRefusal = (
  { accepted, requirements }: Payment,
  contract: string,
  isLessAllowed: boolean
): Refusal | undefined => {
  const [most, asked] = [Option.getOrUndefined(accepted.amount), Option.getOrUndefined(requirements.amount)]
  if (most === undefined || asked === undefined) return mismatch("an amount is not an integer")
  if (isLessAllowed ? asked > most : asked !== most) return mismatch("the accepted amount is not the required one")
  if (binding.some((name) => accepted.extra[name] !== requirements.extra[name]))
    return mismatch(`accepted and requirements differ in one of extra's ${binding.join(", ")}`)
  const named = requirements.extra["batchContract"]
  return named === undefined || named === contract
    ? undefined
    : refuse("channel_id_mismatch", "requirements.extra.batchContract is not the contract of this facilitator")
}

/** The first mismatch between a channel and a seller's terms; the id is compared last, since it costs a hash. */
export const channelError = (
  { requirements }: Payment,
  config: ChannelConfig,
  channelId: string,
  vouchers: Vouchers,
  isOurs: (address: string) => boolean
): CheckError => {
  const { asset, extra, payTo } = requirements
  if (config.receiver !== payTo) return ["receiver_mismatch", "the channel's receiver is not payTo"]
  if (config.receiverAuthorizer !== extra["receiverAuthorizer"])
    return ["receiver_authorizer_mismatch", "the channel's receiverAuthorizer is not requirements.extra's"]
  if (config.token !== asset) return ["token_mismatch", "the channel's token is not the asset"]
  if (config.withdrawDelay !== extra["withdrawDelay"])
    return ["withdraw_delay_mismatch", "the channel's withdrawDelay is not requirements.extra's"]
  return ownTermsError(config, channelId, vouchers, isOurs)
}

/** The first problem of a channel's terms, independent of a seller. */
export const ownTermsError = (
  config: ChannelConfig,
  channelId: string,
  vouchers: Vouchers,
  isOurs: (address: string) => boolean
): CheckError => {
  const { payer, payerAuthorizer, receiver, withdrawDelay } = config
  if (withdrawDelay < withdrawDelayMin || withdrawDelay > withdrawDelayMax)
    return ["withdraw_delay_out_of_range", `withdrawDelay is not within ${withdrawDelayMin} and ${withdrawDelayMax}`]
  if ([payer, payerAuthorizer, receiver].some(isOurs))
    return ["facilitator_is_party", "an account of the facilitator is a party of the channel"]
  return vouchers.isOf(config, channelId)
    ? undefined
    : ["channel_id_mismatch", "the channel's id is not that of its configuration, network and contract"]
}

export const voucherError = (config: ChannelConfig, voucher: Voucher, vouchers: Vouchers): CheckError =>
  vouchers.isSigned(config, voucher)
    ? undefined
    : ["voucher_signature", "the voucher is not signed by the channel's payerAuthorizer"]

/** The expected call of the contract: its name, its arguments, and the token's transfer below it. */
export interface ExpectedCall {
  readonly functionName: string
  readonly args: ReadonlyArray<Value>
  readonly below: { readonly contract: string; readonly args: ReadonlyArray<Value> } | undefined
}

interface CallSubject {
  readonly at: BatchContract
  readonly sent: SentCall
  readonly expected: ExpectedCall
  /** The address that authorizes the call. */
  readonly signer: string
  readonly maxTimeoutSeconds: number
  readonly time: LedgerTime
  readonly expiryToleranceLedgers: number
  readonly isOurs: (address: string) => boolean
  readonly crypto: Crypto["Service"]
}

/** Ledgers that must remain for a transaction to be built, sent and included. */
const ledgersLeftMin = 2

export const checkExpiry = (expiresLedger: number, latestLedger: number): CheckError =>
  expiresLedger < latestLedger + ledgersLeftMin
    ? ["payload_authorization_valid_before", `the authorization ends before ledger ${latestLedger + ledgersLeftMin}`]
    : undefined

const sameValues = (a: ReadonlyArray<Value>, b: ReadonlyArray<Value>): boolean =>
  sameBytes(encodeValue(vecValue(a)), encodeValue(vecValue(b)))

const isCall = (invoked: InvokeArgs | undefined, contract: string, name: string, args: ReadonlyArray<Value>): boolean =>
  invoked !== undefined &&
  addressText(invoked.contractAddress) === contract &&
  symbolText(invoked.functionName) === name &&
  sameValues(invoked.args, args)

const hasBelow = ({ rootInvocation }: AuthEntry, { below }: ExpectedCall): boolean => {
  const [first, ...others] = rootInvocation.subInvocations
  if (below === undefined) return first === undefined
  return (
    first !== undefined &&
    others.length === 0 &&
    first.subInvocations.length === 0 &&
    isCall(authorizedCall(first), below.contract, "transfer", below.args)
  )
}

const signatureHolds = ({ at, crypto, signer }: CallSubject, entry: AuthEntry): boolean => {
  // Only the ledger can verify a contract's signature.
  if (!StrKey.isValidEd25519PublicKey(signer)) return true
  const payload = signedPayload(crypto, at.networkId, entry)
  const signatures = keySignatures(credentialsOf(entry)!.signature)
  return (
    payload !== undefined &&
    signatures !== undefined &&
    signatures.length > 0 &&
    signatures.every(({ key, signature }) => verifyEd25519(crypto, key, payload, signature))
  )
}

/** The first problem in the form of a call and its authorization, except its signature and lifetime. */
const formError = ({ at, expected, isOurs, sent, signer }: CallSubject): CheckError => {
  const { call, source } = sent
  if (call === undefined) return ["deposit_authorization", "the transaction is not exactly one contract call"]
  const operationSource = call.operation.sourceAccount
  if (isOurs(source) || (operationSource != null && [...addressesIn(operationSource)].some(isOurs)))
    return ["facilitator_is_party", "an account of the facilitator is a source"]
  if (!isCall(call.invoked, at.address, expected.functionName, expected.args))
    return [
      "deposit_authorization",
      `the call is not ${expected.functionName} of the contract with the payload's terms`
    ]
  const [entry, ...others] = call.auth
  if (entry === undefined || others.length > 0)
    return ["deposit_authorization", "there is not exactly one authorization entry"]
  const credentials = credentialsOf(entry)
  if (credentials === undefined || addressText(credentials.address) !== signer)
    return ["deposit_authorization", "the authorization is not of the address that the call names"]
  const authorized = authorizedCall(entry.rootInvocation)
  if (authorized === undefined || !sameBytes(encodeInvoked(authorized), encodeInvoked(call.invoked)))
    return ["deposit_authorization", "the authorization is for another call"]
  if (!hasBelow(entry, expected))
    return ["deposit_authorization", "below the call is other than the transfer of the deposit to the contract"]
  return [...addressesIn(entry)].some(isOurs)
    ? ["facilitator_is_party", "an account of the facilitator appears in the authorization"]
    : undefined
}

const lifeError = ({ expiryToleranceLedgers, maxTimeoutSeconds, time }: CallSubject, expiresLedger: number) => {
  const latest = latestExpiry(time, maxTimeoutSeconds, expiryToleranceLedgers)
  const late: CheckError =
    expiresLedger > latest
      ? [
          "payload_authorization_valid_after",
          `the authorization ends at ledger ${expiresLedger}, beyond ledger ${latest}`
        ]
      : undefined
  return checkExpiry(expiresLedger, time.sequence) ?? late
}

/** The first failure of a call that a depositor or payer is to authorize, before it is signed. */
export const unsignedCallError = (subject: CallSubject): CheckError => {
  const form = formError(subject)
  if (form !== undefined) return form
  return lifeError(subject, credentialsOf(subject.sent.call!.auth[0]!)!.signatureExpirationLedger)
}

/** The first failure of a call that a depositor or payer authorized. */
export const callError = (subject: CallSubject): CheckError => {
  const form = formError(subject)
  if (form !== undefined) return form
  const entry = subject.sent.call!.auth[0]!
  const { signature, signatureExpirationLedger } = credentialsOf(entry)!
  if (isVoid(signature)) return ["receive_authorization_signature", "the authorization is not signed"]
  const error = lifeError(subject, signatureExpirationLedger)
  if (error !== undefined) return error
  return signatureHolds(subject, entry) ? undefined : ["receive_authorization_signature", "a signature does not verify"]
}
