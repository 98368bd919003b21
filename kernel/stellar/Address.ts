// Addresses, from the ledger's XDR to text and back. An account may stand as the source of something, as an address
// that a contract knows, or as a bare key; the text is the same.
import { StrKey, xdr } from "@stellar/stellar-sdk/base"
import { addressKind, keyKind } from "./kinds.ts"

/** The account behind a source, whatever number it carries. */
export const accountText = (account: xdr.MuxedAccountWire): string =>
  StrKey.encodeEd25519PublicKey(
    (account.type === keyKind.ed25519 ? account.ed25519 : account.med25519.ed25519) as Uint8Array
  )

/** Whether a source carries a number beside the account. */
export const isMuxedAccount = (account: xdr.MuxedAccountWire): boolean => account.type !== keyKind.ed25519

export const publicKeyText = (key: xdr.PublicKeyWire): string =>
  StrKey.encodeEd25519PublicKey((key as { readonly ed25519: Uint8Array }).ed25519)

/** An address as text; None for kinds that hold no balance. */
export const addressText = (address: xdr.ScAddressWire): string | undefined => {
  switch (address.type) {
    case addressKind.account:
      return publicKeyText(address.accountId)
    case addressKind.contract:
      return StrKey.encodeContract(address.contractId as Uint8Array)
    default:
      return undefined
  }
}

/** Whether an address carries a number beside the account. */
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

/** The address of an account or a contract as contracts know it. */
export const contractAddressOf = (address: string): xdr.ScAddressWire =>
  (StrKey.isValidContract(address)
    ? { type: addressKind.contract, contractId: StrKey.decodeContract(address) }
    : { type: addressKind.account, accountId: publicKeyOf(address) }) as xdr.ScAddressWire

export const encodeAddress = (address: xdr.ScAddressWire): Uint8Array => xdr.ScAddress.schema.encode(address)
export const decodeAddress = (bytes: Uint8Array): xdr.ScAddressWire => xdr.ScAddress.schema.decode(bytes)

/** Every address that stands anywhere in a value of the XDR, to any depth. */
export const addressesIn = (value: unknown, found: Set<string> = new Set()): Set<string> => {
  const pending: Array<unknown> = [value]
  while (pending.length > 0) {
    const next = pending.pop()
    if (next instanceof Uint8Array || typeof next !== "object" || next === null) continue
    const record = next as Record<string, unknown>
    if (record["ed25519"] instanceof Uint8Array) found.add(StrKey.encodeEd25519PublicKey(record["ed25519"]))
    if (record["contractId"] instanceof Uint8Array) found.add(StrKey.encodeContract(record["contractId"]))
    pending.push(...Object.values(record))
  }
  return found
}

/** The 32-byte key of an account (G…); undefined for anything else. */
export const accountKeyOf = (address: string): Uint8Array | undefined =>
  StrKey.isValidEd25519PublicKey(address) ? StrKey.decodeEd25519PublicKey(address) : undefined
