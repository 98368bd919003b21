// Typed access to XDR as plain "wire" objects: the form in which the embedded ledger stores all data and computes with
// it. Wire objects decode about twice as fast as the SDK's classes and may be spread into a changed copy; by convention
// they are never mutated once another object can see them. Decoding throws on malformed input; callers at the edge
// catch. Text and bytes convert through one latin-1 pair, so strings compare in the same order as their bytes.
import * as xdr from "@stellar/stellar-sdk/xdr"
import { AddressType } from "./types.ts"
import { codecOf } from "./reusedWriter.ts"
import { decodeStrKey, encodeStrKey, type StrKeyKind } from "./StrKey.ts"

export type ScVal = xdr.ScValWire
export type ScMapEntry = xdr.ScMapEntryWire
export type ScAddress = xdr.ScAddressWire
export type ScError = xdr.ScErrorWire
export type PublicKey = xdr.PublicKeyWire
export type Asset = xdr.AssetWire
export type TrustLineAsset = xdr.TrustLineAssetWire
export type LedgerEntry = xdr.LedgerEntryWire
export type LedgerEntryData = xdr.LedgerEntryDataWire
export type LedgerKey = xdr.LedgerKeyWire
export type AccountEntry = xdr.AccountEntryWire
export type TrustLineEntry = xdr.TrustLineEntryWire
export type OfferEntry = xdr.OfferEntryWire
export type ContractCodeEntry = xdr.ContractCodeEntryWire
export type ContractInstance = xdr.ScContractInstanceWire
export type ContractExecutable = xdr.ContractExecutableWire
export type ContractEvent = xdr.ContractEventWire
export type DiagnosticEvent = xdr.DiagnosticEventWire
export type HostFunction = xdr.HostFunctionWire
export type ContractIdPreimage = xdr.ContractIdPreimageWire
export type SorobanAuthorizationEntry = xdr.SorobanAuthorizationEntryWire
export type SorobanAuthorizedFunction = xdr.SorobanAuthorizedFunctionWire
export type SorobanAuthorizedInvocation = xdr.SorobanAuthorizedInvocationWire
export type SorobanAddressCredentials = xdr.SorobanAddressCredentialsWire
export type SorobanDelegateSignature = xdr.SorobanDelegateSignatureWire
export type SorobanResources = xdr.SorobanResourcesWire
export type SorobanTransactionData = xdr.SorobanTransactionDataWire
export type LedgerFootprint = xdr.LedgerFootprintWire
export type TransactionEnvelope = xdr.TransactionEnvelopeWire
export type Transaction = xdr.TransactionWire
export type ConfigSettingEntry = xdr.ConfigSettingEntryWire

/**
 * The codecs by type name: `codec.LedgerEntry.encode(wire)`, `codec.LedgerEntry.decode(bytes)`. Both throw `XdrError`
 * on a mismatch.
 */
export const codec = {
  ScVal: codecOf(xdr.ScVal.schema),
  ScAddress: codecOf(xdr.ScAddress.schema),
  LedgerEntry: codecOf(xdr.LedgerEntry.schema),
  LedgerEntryData: codecOf(xdr.LedgerEntryData.schema),
  LedgerKey: codecOf(xdr.LedgerKey.schema),
  ContractEvent: codecOf(xdr.ContractEvent.schema),
  DiagnosticEvent: codecOf(xdr.DiagnosticEvent.schema),
  HostFunction: codecOf(xdr.HostFunction.schema),
  HashIdPreimage: codecOf(xdr.HashIdPreimage.schema),
  InvokeHostFunctionSuccessPreImage: codecOf(xdr.InvokeHostFunctionSuccessPreImage.schema),
  SorobanAuthorizationEntry: codecOf(xdr.SorobanAuthorizationEntry.schema),
  SorobanAuthorizedFunction: codecOf(xdr.SorobanAuthorizedFunction.schema),
  SorobanResources: codecOf(xdr.SorobanResources.schema),
  SorobanTransactionData: codecOf(xdr.SorobanTransactionData.schema),
  TransactionEnvelope: codecOf(xdr.TransactionEnvelope.schema),
  TransactionResult: codecOf(xdr.TransactionResult.schema),
  TransactionMeta: codecOf(xdr.TransactionMeta.schema),
  TransactionEvent: codecOf(xdr.TransactionEvent.schema),
  TransactionSignaturePayload: codecOf(xdr.TransactionSignaturePayload.schema)
} as const

/** Bytes as a string of the same length, one character per byte. */
export const latin1 = (bytes: Uint8Array): string => {
  const length = bytes.length
  if (length <= 2048) return String.fromCharCode.apply(null, bytes as unknown as number[])
  let text = ""
  for (let at = 0; at < length; at += 2048) text += latin1(bytes.subarray(at, at + 2048))
  return text
}

/** The inverse of `latin1`. Characters above 255 lose their high bits. */
export const fromLatin1 = (text: string): Uint8Array => {
  const bytes = new Uint8Array(text.length)
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i)
  return bytes
}

/** Byte-wise order, shorter first on a common prefix: negative, 0 or positive. */
export const compareBytes = (a: Uint8Array, b: Uint8Array): number => {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const difference = a[i]! - b[i]!
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

export const equalBytes = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && compareBytes(a, b) === 0

/** A wire string (symbol, string, home domain) of a text, encoded as UTF-8. */
export const xdrText = (text: string): xdr.XdrString => new xdr.XdrString(text)

/** A wire string's content, one character per byte: enough for symbols, which are ASCII. */
export const textOf = (text: xdr.XdrString): string => latin1(text.bytes)

export const accountAddress = (accountId: PublicKey): ScAddress => ({ type: 0, accountId })
export const contractAddress = (contractId: Uint8Array): ScAddress => ({ type: 1, contractId })
export const publicKey = (ed25519: Uint8Array): PublicKey => ({ type: 0, ed25519 })

/** A cheap unique string of an address, for map keys and equality. */
export const addressString = (address: ScAddress): string => {
  switch (address.type) {
    case AddressType.account:
      return "\0\0\0\0\0\0\0\0" + latin1(address.accountId.ed25519)
    case AddressType.contract:
      return "\0\0\0\x01" + latin1(address.contractId)
    default:
      return latin1(codec.ScAddress.encode(address))
  }
}

export const equalAddress = (a: ScAddress, b: ScAddress): boolean => {
  if (a.type !== b.type) return false
  if (a.type === AddressType.account && b.type === AddressType.account)
    return equalBytes(a.accountId.ed25519, b.accountId.ed25519)
  if (a.type === AddressType.contract && b.type === AddressType.contract) return equalBytes(a.contractId, b.contractId)
  return addressString(a) === addressString(b)
}

/** The StrKey of an address: `G…`, `C…`, `M…`; other kinds as `type:hex`-like text. */
export const addressStrKey = (address: ScAddress): string => {
  switch (address.type) {
    case AddressType.account:
      return encodeStrKey("account", address.accountId.ed25519)
    case AddressType.contract:
      return encodeStrKey("contract", address.contractId)
    case AddressType.muxedAccount: {
      const bytes = new Uint8Array(40)
      bytes.set(address.muxedAccount.ed25519)
      new DataView(bytes.buffer).setBigUint64(32, address.muxedAccount.id)
      return encodeStrKey("muxedAccount", bytes)
    }
    default:
      return xdr.ScAddress.fromXdrObject(address).toXdr("base64")
  }
}

const payloadOf = (kind: StrKeyKind, text: string): Uint8Array => {
  const payload = decodeStrKey(kind, text)
  if (payload === undefined) throw new Error(`not the address of a ${kind}`)
  return payload
}

/** `G…` or `C…` to an address. Throws on anything else. */
export const addressOfStrKey = (text: string): ScAddress =>
  text.startsWith("C") ? contractAddress(payloadOf("contract", text)) : accountAddress(accountOfStrKey(text))

/** `G…`, `C…` or `M…` to an address. Throws on anything else. */
export const muxedAddressOfStrKey = (text: string): ScAddress => {
  if (!text.startsWith("M")) return addressOfStrKey(text)
  const bytes = payloadOf("muxedAccount", text)
  const id = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(32)
  return { type: 2, muxedAccount: { id, ed25519: bytes.slice(0, 32) } }
}

export const accountStrKey = (id: PublicKey): string => encodeStrKey("account", id.ed25519)
export const accountOfStrKey = (text: string): PublicKey => publicKey(payloadOf("account", text))

/** Codec of an asset, as in the argument of a new asset contract's initialization. */
export const codecAsset = xdr.Asset.schema

/** A `G…` or `C…` address as the account or contract it names; undefined for anything else. */
export const decodeHolder = (text: string): ScAddress | undefined => {
  const account = decodeStrKey("account", text)
  if (account !== undefined) return accountAddress(publicKey(account))
  const contract = decodeStrKey("contract", text)
  return contract && contractAddress(contract)
}
