// Authorizations of contract calls: their account, the covered calls, the bytes that signatures sign, and the place of
// an account's signatures. Pure; nothing here signs or verifies.
import { xdr } from "@stellar/stellar-sdk/base"
import type { Crypto } from "../platform/Crypto.ts"
import { contractAddressOf, encodeAddress } from "./Address.ts"
import { authorizedKind, credentialsKind, preimageKind } from "./kinds.ts"
import { joinedBytes } from "./joinBytes.ts"
import { bytesRead, int64Bytes, readXdr, uint32Bytes } from "./readXdr.ts"
import { bytesOf, bytesValue, entriesOf, mapValue, type Value, vecOf, vecValue } from "./Value.ts"

export type AuthEntry = xdr.SorobanAuthorizationEntryWire
export type Invocation = xdr.SorobanAuthorizedInvocationWire

/** The address credentials of an entry, for the two kinds that a payment may carry. */
export const credentialsOf = (entry: AuthEntry) => {
  const { credentials } = entry
  switch (credentials.type) {
    case credentialsKind.address:
      return { kind: "address" as const, ...credentials.address }
    case credentialsKind.addressV2:
      return { kind: "address-v2" as const, ...credentials.addressV2 }
    default:
      return undefined
  }
}

/** Whether an entry has the credentials of the transaction's own source, and therefore no separate signature. */
export const actsAsSource = ({ credentials }: AuthEntry): boolean => credentials.type === credentialsKind.sourceAccount

/** The contract call that an invocation authorizes; undefined for any other kind. */
export const authorizedCall = ({ function: fn }: Invocation): xdr.InvokeContractArgsWire | undefined =>
  fn.type === authorizedKind.contractFunction ? fn.contractFn : undefined

/** The part of an invocation that names its call. */
export const invokedInstead = (call: xdr.InvokeContractArgsWire): Pick<Invocation, "function"> =>
  ({ function: { type: authorizedKind.contractFunction, contractFn: call } }) as unknown as Invocation

/** The authorization of one whole call, and of nothing below it. */
export const invocationOf = (call: xdr.InvokeContractArgsWire): Invocation =>
  ({ ...invokedInstead(call), subInvocations: [] }) as unknown as Invocation

/** Throws on anything other than one entry. */
export const decodeEntry = (bytes: Uint8Array): AuthEntry => readXdr(xdr.SorobanAuthorizationEntry.schema, bytes)

export const encodeEntry = (entry: AuthEntry): Uint8Array => xdr.SorobanAuthorizationEntry.schema.encode(entry)

/** An entry that acts as the transaction's source: useful only in a simulation. */
export const sourceEntry = (invocation: Invocation): AuthEntry =>
  ({ credentials: { type: credentialsKind.sourceAccount }, rootInvocation: invocation }) as unknown as AuthEntry

interface SignedTerms {
  /** The authorizing account or contract. */
  readonly address: string
  readonly nonce: bigint
  readonly signatureExpirationLedger: number
  readonly signature: Value
}

/** An entry with an address's credentials. */
export const addressEntry = (signed: SignedTerms, invocation: Invocation): AuthEntry =>
  ({
    credentials: {
      type: credentialsKind.address,
      address: { ...signed, address: contractAddressOf(signed.address) }
    },
    rootInvocation: invocation
  }) as unknown as AuthEntry

/**
 * Preimage of an entry's signed payload: a signature signs its sha256. Undefined for credentials other than an
 * address's.
 */
export const signedPreimage = (networkId: Uint8Array, entry: AuthEntry): Uint8Array | undefined => {
  const credentials = credentialsOf(entry)
  if (credentials === undefined) return undefined
  const { nonce, signatureExpirationLedger } = credentials
  const isPlain = credentials.kind === "address"
  return joinedBytes(
    uint32Bytes(isPlain ? preimageKind.sorobanAuthorization : preimageKind.sorobanAuthorizationWithAddress),
    networkId,
    int64Bytes(nonce),
    uint32Bytes(signatureExpirationLedger),
    ...(isPlain ? [] : [encodeAddress(credentials.address)]),
    encodeInvocation(entry.rootInvocation)
  )
}

/** The signed payload of an entry: 32 bytes; undefined for credentials other than an address's. */
export const signedPayload = (
  crypto: Crypto["Service"],
  networkId: Uint8Array,
  entry: AuthEntry
): Uint8Array | undefined => {
  const preimage = signedPreimage(networkId, entry)
  return preimage === undefined ? undefined : crypto.sha256(preimage)
}

/** If it was read, the bytes that it was read from: the ledger hashes those. */
const encodeInvocation = (invocation: Invocation): Uint8Array =>
  bytesRead(invocation) ?? xdr.SorobanAuthorizedInvocation.schema.encode(invocation)

interface KeySignature {
  readonly key: Uint8Array
  readonly signature: Uint8Array
}

/** Maximum signatures of a classic account by the ledger's rules. */
const signaturesMax = 20

/**
 * The listed key signatures of a classic account; undefined when the signature value has any other form, or more of
 * them than the ledger accepts: each costs a caller nothing and its check a fraction of a millisecond.
 */
export const keySignatures = (value: Value): ReadonlyArray<KeySignature> | undefined => {
  const items = vecOf(value)
  if (items !== undefined && items.length > signaturesMax) return undefined
  const read = (items ?? []).flatMap((item) => {
    const [first, second] = entriesOf(item) ?? []
    const [key, signature] = [bytesOf(first?.val), bytesOf(second?.val)]
    return key === undefined || signature === undefined ? [] : [{ key, signature }]
  })
  return items === undefined || read.length < items.length ? undefined : read
}

/** The signature value of an account with one key. */
export const signatureValue = ({ key, signature }: KeySignature): Value =>
  vecValue([
    mapValue([
      ["public_key", bytesValue(key)],
      ["signature", bytesValue(signature)]
    ])
  ])

// The credentials of an authorization that we write. Since protocol 27 (CAP-71) the signed bytes include the address
// too (version 2), so that a signature is valid for one account even if another shares its key. Earlier protocols have
// only the first version; both are read everywhere.

/** The first protocol that accepts credentials of version 2. */
const ADDRESS_V2_SINCE = 27

/** The credentials in the newest version that a network with this protocol accepts. */
export const addressCredentials = (
  credentials: xdr.SorobanAddressCredentials,
  protocolVersion: number
): xdr.SorobanCredentials =>
  protocolVersion >= ADDRESS_V2_SINCE
    ? xdr.SorobanCredentials.sorobanCredentialsAddressV2(credentials)
    : xdr.SorobanCredentials.sorobanCredentialsAddress(credentials)
