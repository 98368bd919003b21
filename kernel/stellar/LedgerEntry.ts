// The ledger entries that we read: their keys, and the content of an account's entry.
import { xdr } from "@stellar/stellar-sdk/base"
import { Base64, Hex } from "effect/encoding"
import { contractAddressOf, publicKeyOf, publicKeyText } from "./Address.ts"
import { changeKind, durability, entryKind, executableKind, valueKind } from "./kinds.ts"
import type { Value } from "./Value.ts"

/** An account, decoded from its entry. */
export interface LedgerAccount {
  /** Address, G… */
  readonly address: string
  readonly balanceStroops: bigint
  /** The part of the balance that the ledger reserves: for the account's entries, and for its open offers to sell. */
  readonly reserveStroops: bigint
  readonly sequence: bigint
}

/** Reserve for each entry of an account; every account counts two. */
const baseReserveStroops = 5_000_000n

/** The key of an account's entry, base64. */
export const accountKey = (address: string): string =>
  Base64.encode(
    xdr.LedgerKey.schema.encode({
      type: entryKind.account,
      account: { accountId: publicKeyOf(address) }
    } as never)
  )

/** The key of the entry that keeps an authorization's nonce, base64. */
export const nonceKey = (address: string, nonce: bigint): string =>
  Base64.encode(
    xdr.LedgerKey.schema.encode({
      type: entryKind.contractData,
      contractData: {
        contract: contractAddressOf(address),
        key: { type: valueKind.nonceKey, nonceKey: { nonce } },
        durability: durability.temporary
      }
    } as never)
  )

/** The key of the entry with the code that a contract runs, base64. */
export const instanceKey = (contract: string): string =>
  Base64.encode(
    xdr.LedgerKey.schema.encode({
      type: entryKind.contractData,
      contractData: {
        contract: contractAddressOf(contract),
        key: { type: valueKind.instanceKey },
        durability: durability.persistent
      }
    } as never)
  )

/** The key of a contract's persistent data entry, base64. */
export const contractDataKey = (contract: string, key: Value): string =>
  Base64.encode(
    xdr.LedgerKey.schema.encode({
      type: entryKind.contractData,
      contractData: { contract: contractAddressOf(contract), key, durability: durability.persistent }
    } as never)
  )

/** The sha256, hex, of the code that a contract's entry names; undefined for an entry of any other kind. */
export const readCodeHash = (data: xdr.LedgerEntryDataWire): string | undefined => {
  if (data.type !== entryKind.contractData || data.contractData.val.type !== valueKind.contractInstance)
    return undefined
  const { executable } = data.contractData.val.instance
  return executable.type === executableKind.wasm ? Hex.encode(executable.wasmHash as Uint8Array) : undefined
}

/** An entry in its state before the transaction; undefined for a change that does not show it. */
export const foundEntry = (change: xdr.LedgerEntryChangeWire): xdr.LedgerEntryDataWire | undefined => {
  switch (change.type) {
    case changeKind.state:
      return change.state.data
    case changeKind.restored:
      return change.restored.data
    default:
      return undefined
  }
}

/** A contract's data entry: its key, base64, and its value; undefined for an entry of any other kind. */
export const readContractData = (
  data: xdr.LedgerEntryDataWire
): { readonly key: string; readonly value: Value } | undefined => {
  if (data.type !== entryKind.contractData) return undefined
  const { contract, durability, key, val: value } = data.contractData
  const named = { type: entryKind.contractData, contractData: { contract, key, durability } }
  return { key: Base64.encode(xdr.LedgerKey.schema.encode(named as never)), value }
}

/** The content of an account's entry; undefined for an entry of any other kind. */
export const readAccount = (data: xdr.LedgerEntryDataWire): LedgerAccount | undefined => {
  if (data.type !== entryKind.account) return undefined
  const { account } = data
  // Each version of the entry is an extension of the previous one.
  const v1 = account.ext.v === 1 ? account.ext.v1 : undefined
  const v2 = v1 !== undefined && v1.ext.v === 2 ? v1.ext.v2 : undefined
  return {
    address: publicKeyText(account.accountId),
    balanceStroops: account.balance,
    reserveStroops:
      baseReserveStroops * BigInt(2 + account.numSubEntries + (v2?.numSponsoring ?? 0) - (v2?.numSponsored ?? 0)) +
      (v1?.liabilities.selling ?? 0n),
    sequence: account.seqNum
  }
}
