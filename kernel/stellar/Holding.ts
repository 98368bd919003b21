// An account's or contract's balance of a network asset: the asset behind a contract, by the name in its instance; the
// key of the entry with the balance; and the amounts that the entry can still spend and receive.
import { StrKey, xdr } from "@stellar/stellar-sdk/base"
import { Base64 } from "effect/encoding"
import { contractAddressOf, publicKeyOf } from "./Address.ts"
import { durability, entryKind, valueKind } from "./kinds.ts"
import { accountKey, readAccount } from "./LedgerEntry.ts"
import { boolOf, fieldsOf, i128Of, symbolOf, symbolText, type Value } from "./Value.ts"

/** The asset of a contract: the network's own coin, or one of an issuer. */
type HeldAsset =
  | { readonly _tag: "Native" }
  | { readonly _tag: "Issued"; readonly code: string; readonly issuer: string }

export interface Holding {
  /** Spendable amount, atomic units: without amounts promised elsewhere or kept as the reserve. */
  readonly spendable: bigint
  /** Amount that it can still receive, atomic units. */
  readonly room: bigint
  /** Whether the issuer allows it to hold and move the asset. */
  readonly isAuthorized: boolean
}

const int64Max = 9_223_372_036_854_775_807n
const i128Max = (1n << 127n) - 1n
/** Flag of a trustline: full authorization. */
const authorizedFlag = 1

/** Discriminants of an asset on a trustline, by the length of its code. */
const assetKindOf = (code: string) => (code.length <= 4 ? 1 : 2)

const stringText = (value: Value | undefined): string | undefined =>
  value !== undefined && "str" in value ? symbolText(value.str) : undefined

/** The asset in a contract's instance; undefined for a contract that is not an asset of the network. */
export const readHeldAsset = (data: xdr.LedgerEntryDataWire): HeldAsset | undefined => {
  if (data.type !== entryKind.contractData || data.contractData.val.type !== valueKind.contractInstance)
    return undefined
  const storage = data.contractData.val.instance.storage ?? []
  const metadata = storage.find(({ key }) => symbolOf(key) === "METADATA")?.val
  const name = stringText(fieldsOf(metadata)?.get("name"))
  if (name === "native") return { _tag: "Native" }
  const [, code, issuer] = /^([A-Za-z0-9]{1,12}):(G[A-Z2-7]{55})$/.exec(name ?? "") ?? []
  return code === undefined || !StrKey.isValidEd25519PublicKey(issuer!)
    ? undefined
    : { _tag: "Issued", code, issuer: issuer! }
}

const encoded = (key: unknown): string => Base64.encode(xdr.LedgerKey.schema.encode(key as never))

const trustlineKey = (address: string, code: string, issuer: string): string => {
  const kind = assetKindOf(code)
  const assetCode = new Uint8Array(kind === 1 ? 4 : 12)
  assetCode.set(new TextEncoder().encode(code))
  const named = { assetCode, issuer: publicKeyOf(issuer) }
  const asset = kind === 1 ? { type: kind, alphaNum4: named } : { type: kind, alphaNum12: named }
  return encoded({ type: entryKind.trustline, trustLine: { accountId: publicKeyOf(address), asset } })
}

/**
 * The key of the entry that holds the asset for an address, base64; undefined for the issuer, because it needs no
 * entry.
 */
export const holdingKey = (contract: string, asset: HeldAsset, address: string): string | undefined => {
  if (StrKey.isValidContract(address)) {
    const vec = [
      { type: valueKind.symbol, sym: "Balance" },
      { type: valueKind.address, address: contractAddressOf(address) }
    ]
    const key = { type: valueKind.vec, vec }
    const data = { contract: contractAddressOf(contract), key, durability: durability.persistent }
    return encoded({ type: entryKind.contractData, contractData: data })
  }
  if (asset._tag === "Native") return accountKey(address)
  return address === asset.issuer ? undefined : trustlineKey(address, asset.code, asset.issuer)
}

/** The balance in an entry of such a key; undefined for any other entry. */
export const readHolding = (data: xdr.LedgerEntryDataWire): Holding | undefined => {
  if (data.type === entryKind.trustline) {
    const { balance, ext, flags, limit } = data.trustLine
    const { buying, selling } = ext.v === 1 ? ext.v1.liabilities : { buying: 0n, selling: 0n }
    return {
      spendable: balance - selling,
      room: limit - buying - balance,
      isAuthorized: (flags & authorizedFlag) === authorizedFlag
    }
  }
  if (data.type === entryKind.contractData) {
    const fields = fieldsOf(data.contractData.val)
    const amount = i128Of(fields?.get("amount"))
    if (amount === undefined) return undefined
    return { spendable: amount, room: i128Max - amount, isAuthorized: boolOf(fields?.get("authorized")) ?? true }
  }
  const account = readAccount(data)
  return account === undefined
    ? undefined
    : {
        spendable: account.balanceStroops - account.reserveStroops,
        room: int64Max - account.balanceStroops,
        isAuthorized: true
      }
}
