// Addresses, from the ledger's XDR to text and back. An account may occur as a source, as an address of a contract
// call, or as a bare key; the text is the same.
import { StrKey, xdr } from "@stellar/stellar-sdk/base"
import { addressKind, keyKind } from "./kinds.ts"
import { joinedBytes } from "./joinBytes.ts"
import { readXdr, uint32Bytes } from "./readXdr.ts"
import { LruCache } from "../cache/LruCache.ts"

/** Maximum number of cached texts: a payment contains each of its addresses several times, and payers return. */
const textsMax = 4_096

/** The text of an address encodes its 32 bytes and a checksum. The most recent texts are cached by those bytes. */
const textsOf = (name: string, encode: (bytes: Uint8Array) => string): ((bytes: Uint8Array) => string) => {
  const texts = new LruCache<string, string>({ name, capacity: textsMax })
  return (bytes) => {
    const id = String.fromCharCode.apply(undefined, bytes as unknown as Array<number>)
    const cachedText = texts.get(id)
    if (cachedText !== undefined) return cachedText
    const made = encode(bytes)
    texts.set(id, made)
    return made
  }
}

export const accountTextOf = textsOf("account-texts", (key) => StrKey.encodeEd25519PublicKey(key))
export const contractTextOf = textsOf("contract-texts", (id) => StrKey.encodeContract(id))

/** The account behind a source, muxed or not. */
export const accountText = (account: xdr.MuxedAccountWire): string =>
  accountTextOf((account.type === keyKind.ed25519 ? account.ed25519 : account.med25519.ed25519) as Uint8Array)

/** Whether a source carries a number in addition to the account. */
export const isMuxedAccount = (account: xdr.MuxedAccountWire): boolean => account.type !== keyKind.ed25519

const keyBytes = (key: xdr.PublicKeyWire): Uint8Array => (key as { readonly ed25519: Uint8Array }).ed25519

export const publicKeyText = (key: xdr.PublicKeyWire): string => accountTextOf(keyBytes(key))

/** An address as text; None for kinds that cannot hold a balance. */
export const addressText = (address: xdr.ScAddressWire): string | undefined => {
  switch (address.type) {
    case addressKind.account:
      return publicKeyText(address.accountId)
    case addressKind.contract:
      return contractTextOf(address.contractId as Uint8Array)
    default:
      return undefined
  }
}

/** Whether an address carries a number in addition to the account. */
export const isMuxedAddress = (address: xdr.ScAddressWire): boolean =>
  (address.type as number) === addressKind.muxedAccount

export const accountOf = (address: string): xdr.MuxedAccountWire => ({
  type: keyKind.ed25519,
  ed25519: StrKey.decodeEd25519PublicKey(address)
})

export const publicKeyOf = (address: string): xdr.PublicKeyWire => ({
  type: keyKind.ed25519,
  ed25519: StrKey.decodeEd25519PublicKey(address)
})

/** The 32 bytes of a contract's address, C…; throws for any other address. */
export const contractIdOf = (address: string): Uint8Array => StrKey.decodeContract(address)

/** The address of an account or a contract, in the form that contracts use. */
export const contractAddressOf = (address: string): xdr.ScAddressWire =>
  (StrKey.isValidContract(address)
    ? { type: addressKind.contract, contractId: StrKey.decodeContract(address) }
    : { type: addressKind.account, accountId: publicKeyOf(address) }) as xdr.ScAddressWire

export const encodeAddress = (address: xdr.ScAddressWire): Uint8Array => {
  switch (address.type) {
    case addressKind.account:
      return joinedBytes(uint32Bytes(addressKind.account), uint32Bytes(keyKind.ed25519), keyBytes(address.accountId))
    case addressKind.contract:
      return joinedBytes(uint32Bytes(addressKind.contract), address.contractId as Uint8Array)
    default:
      return xdr.ScAddress.schema.encode(address)
  }
}
export const decodeAddress = (bytes: Uint8Array): xdr.ScAddressWire => readXdr(xdr.ScAddress.schema, bytes)

export const encodeMuxed = (account: xdr.MuxedAccountWire): Uint8Array =>
  account.type === keyKind.ed25519
    ? joinedBytes(uint32Bytes(keyKind.ed25519), account.ed25519 as Uint8Array)
    : xdr.MuxedAccount.schema.encode(account)

/** Every address in an XDR value, at any depth. */
export const addressesIn = (value: unknown, found: Set<string> = new Set()): Set<string> => {
  const pending: Array<unknown> = [value]
  while (pending.length > 0) {
    const next = pending.pop()
    if (typeof next !== "object" || next === null || next instanceof Uint8Array) continue
    for (const [name, field] of Object.entries(next)) {
      if (!(field instanceof Uint8Array)) pending.push(field)
      else if (name === "ed25519") found.add(accountTextOf(field))
      else if (name === "contractId") found.add(contractTextOf(field))
    }
  }
  return found
}

/** The 32-byte key of an account (G…); undefined for anything else. */
export const accountKeyOf = (address: string): Uint8Array | undefined =>
  StrKey.isValidEd25519PublicKey(address) ? StrKey.decodeEd25519PublicKey(address) : undefined
