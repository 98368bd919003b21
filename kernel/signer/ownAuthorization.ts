// The sponsor may occur in a payment only as one argument of one contract call, with a separate authorization for
// exactly that call. A scheme's plugin declares the call and the position when it starts. The signer then signs such an
// authorization and no other. A settlement with such an authorization is recognized by the sponsor's own signature in
// it. So it can be signed again after a restart, with or without the scheme's plugin. Pure; nothing here signs.
import { StrKey } from "@stellar/stellar-sdk/base"
import { verifyEd25519 } from "../ledger/Ed25519.ts"
import type { Crypto } from "../platform/Crypto.ts"
import { addressText, encodeAddress } from "../stellar/Address.ts"
import {
  addressEntry,
  type AuthEntry,
  authorizedCall,
  credentialsOf,
  encodeEntry,
  invocationOf,
  invokedInstead,
  keySignatures,
  signedPayload
} from "../stellar/AuthEntry.ts"
import {
  authOf,
  callOperation,
  encodeInvoked,
  encodeOperation,
  type InvokeArgs,
  invokedBy
} from "../stellar/ContractCall.ts"
import { type Operation, sameBytes } from "../stellar/Envelope.ts"
import { addressOf, symbolText, type Value, voidValue } from "../stellar/Value.ts"

/** The single call that may contain the sponsor, and the position of its argument, from 0. */
export interface SponsoredCall {
  /** Contract address, C… */
  readonly contract: string
  readonly functionName: string
  readonly position: number
}

const isAddress = (value: Value | undefined, address: string): boolean => addressOf(value) === address

/** The same call with an empty value at one position. */
const without = (call: InvokeArgs, position: number): InvokeArgs => ({
  ...call,
  args: call.args.map((argument, index) => (index === position ? voidValue : argument))
})

/** The first four bytes of a key, as one number. */
const beginningOf = (key: Uint8Array): number => (key[0]! | (key[1]! << 8) | (key[2]! << 16) | (key[3]! << 24)) >>> 0

/** Our keys by their first bytes, computed once for each list: there may be hundreds. */
const byBeginning = new WeakMap<ReadonlyArray<Uint8Array>, ReadonlyMap<number, ReadonlyArray<Uint8Array>>>()

const keysByBeginning = (keys: ReadonlyArray<Uint8Array>) => {
  const keysOfBeginning = byBeginning.get(keys) ?? Map.groupBy(keys, beginningOf)
  byBeginning.set(keys, keysOfBeginning)
  return keysOfBeginning
}

/**
 * Whether `bytes` contain the 32 bytes of one of `keys` anywhere, by one scan. It is coarse on purpose: no structure
 * can hide a key.
 */
export const holdsAny = (bytes: Uint8Array, keys: ReadonlyArray<Uint8Array>): boolean => {
  const byFirstBytes = keysByBeginning(keys)
  let four = 0
  for (let end = 0; end < bytes.length; end++) {
    four = ((four >>> 8) | (bytes[end]! << 24)) >>> 0
    const at = end - 3
    if (at < 0 || at + 32 > bytes.length) continue
    if (byFirstBytes.get(four)?.some((key) => sameBytes(bytes.subarray(at, at + 32), key)) === true) return true
  }
  return false
}

/**
 * Another party's authorization, without the argument that may be the sponsor in the same function. A function may have
 * others sign fewer arguments, or in another order: then the only argument that equals the sponsor is left out.
 */
const othersBytes = (entry: AuthEntry, call: InvokeArgs, position: number): Uint8Array => {
  const authorized = authorizedCall(entry.rootInvocation)
  const same =
    authorized !== undefined &&
    sameBytes(encodeAddress(authorized.contractAddress), encodeAddress(call.contractAddress)) &&
    symbolText(authorized.functionName) === symbolText(call.functionName)
  if (!same) return encodeEntry(entry)
  const sponsor = addressOf(call.args[position]) ?? ""
  const isThere = isAddress(authorized.args[position], sponsor)
  const signedPosition = isThere ? position : authorized.args.findIndex((argument) => isAddress(argument, sponsor))
  const { rootInvocation } = entry
  const instead = invokedInstead(without(authorized, signedPosition))
  return encodeEntry({ ...entry, rootInvocation: { ...rootInvocation, ...instead } })
}

/** The error of an operation that names one of our accounts anywhere else than at that argument and its copies. */
const namingError = (
  call: InvokeArgs,
  others: ReadonlyArray<AuthEntry>,
  position: number,
  ourKeys: ReadonlyArray<Uint8Array>
): string | undefined => {
  const rest = [encodeInvoked(without(call, position)), ...others.map((entry) => othersBytes(entry, call, position))]
  return rest.some((bytes) => holdsAny(bytes, ourKeys))
    ? "an authorization of a call that uses one of our accounts elsewhere"
    : undefined
}

/** The sponsor that shall authorize this operation's call, or the error in the request. */
export const checkAuthorization = (
  operation: Operation,
  allowed: ReadonlyArray<SponsoredCall>,
  sponsors: ReadonlyArray<string>,
  ourKeys: ReadonlyArray<Uint8Array>
): { readonly sponsor: string } | { readonly problem: string } => {
  const call = invokedBy(operation)
  if (operation.sourceAccount != null || call === undefined)
    return { problem: "the authorization is not for a contract call" }
  const contract = addressText(call.contractAddress)
  const rule = allowed.find(
    (candidate) => candidate.contract === contract && candidate.functionName === symbolText(call.functionName)
  )
  if (rule === undefined) return { problem: "the authorization is for a call that no scheme declares" }
  const sponsor = sponsors.find((one) => isAddress(call.args[rule.position], one))
  if (sponsor === undefined) return { problem: "the authorization is for a call without the sponsor" }
  const error = namingError(call, authOf(operation), rule.position, ourKeys)
  return error === undefined ? { sponsor } : { problem: error }
}

/** The sponsor's authorization of an operation's whole call, and of nothing below it. */
export const ownEntry = (
  operation: Operation,
  own: { readonly sponsor: string; readonly nonce: bigint; readonly expiresLedger: number; readonly signature: Value }
): AuthEntry =>
  addressEntry(
    {
      address: own.sponsor,
      nonce: own.nonce,
      signatureExpirationLedger: own.expiresLedger,
      signature: own.signature
    },
    invocationOf(invokedBy(operation)!)
  )

/** The operation with a further authorization after the existing ones. */
export const withEntry = (operation: Operation, entry: AuthEntry): Operation =>
  callOperation(invokedBy(operation)!, [...authOf(operation), entry])

/**
 * Whether an entry is the sponsor's own: its credentials, its single signature, the whole call and nothing below it.
 */
const isOwn = (
  entry: AuthEntry,
  call: InvokeArgs,
  sponsor: string,
  crypto: Crypto["Service"],
  networkId: Uint8Array
): boolean => {
  const credentials = credentialsOf(entry)
  const authorized = authorizedCall(entry.rootInvocation)
  if (credentials?.kind !== "address" || authorized === undefined) return false
  const [signed, ...others] = keySignatures(credentials.signature) ?? []
  const payload = signedPayload(crypto, networkId, entry)
  return (
    addressText(credentials.address) === sponsor &&
    entry.rootInvocation.subInvocations.length === 0 &&
    sameBytes(encodeInvoked(authorized), encodeInvoked(call)) &&
    signed !== undefined &&
    others.length === 0 &&
    payload !== undefined &&
    verifyEd25519(crypto, StrKey.decodeEd25519PublicKey(sponsor), payload, signed.signature)
  )
}

/** The error of a settlement's operation that names one of our accounts, if any. */
export const settlementNamingIssue = (
  operation: Operation,
  sponsors: ReadonlyArray<string>,
  ourKeys: ReadonlyArray<Uint8Array>,
  crypto: Crypto["Service"],
  networkId: Uint8Array
): string | undefined => {
  const named = "a settlement that uses one of our accounts"
  if (!holdsAny(encodeOperation(operation), ourKeys)) return undefined
  const call = invokedBy(operation)
  if (call === undefined) return named
  const entries = authOf(operation)
  const position = call.args.findIndex((argument) => sponsors.some((sponsor) => isAddress(argument, sponsor)))
  const sponsor = sponsors.find((one) => isAddress(call.args[position], one)) ?? ""
  const own = entries.filter((entry) => isOwn(entry, call, sponsor, crypto, networkId))
  if (own.length !== 1 || position < 0) return named
  const others = entries.filter((entry) => !own.includes(entry))
  return namingError(call, others, position, ourKeys) === undefined ? undefined : named
}
