// Ledger keys: constructors, and the string form that the store uses. `keyString(key)` is the key's XDR with one
// character per byte; the kinds that a payment touches are assembled directly, which costs a fraction of an encode.
// Because of that identity a key string can be hashed (a TTL entry's key is the hash of the key it guards) and decoded
// again.
import { AddressType, AssetType, EntryType, ScType } from "../xdr/types.ts"
import { INSTANCE_KEY } from "../xdr/ScVal.ts"
import {
  type Asset,
  codec,
  fromLatin1,
  latin1,
  type LedgerEntry,
  type LedgerKey,
  type PublicKey,
  type ScAddress,
  type ScVal,
  type TrustLineAsset
} from "../xdr/Xdr.ts"

export type KeyString = string

export const Durability = { temporary: 0, persistent: 1 } as const
export type Durability = 0 | 1

export const accountKey = (accountId: PublicKey): LedgerKey => ({ type: 0, account: { accountId } })
export const trustLineKey = (accountId: PublicKey, asset: TrustLineAsset): LedgerKey => ({
  type: 1,
  trustLine: { accountId, asset }
})
export const contractDataKey = (contract: ScAddress, key: ScVal, durability: Durability): LedgerKey => ({
  type: 6,
  contractData: { contract, key, durability }
})
export const contractInstanceKey = (contract: ScAddress): LedgerKey =>
  contractDataKey(contract, INSTANCE_KEY, Durability.persistent)
export const contractCodeKey = (hash: Uint8Array): LedgerKey => ({ type: 7, contractCode: { hash } })

const ACCOUNT_PREFIX = "\0\0\0\0\0\0\0\0"
const TRUST_PREFIX = "\0\0\0\x01\0\0\0\0"
const INSTANCE_XDR = "\0\0\0\x14"
const CODE_PREFIX = "\0\0\0\x07"
const TTL_PREFIX = "\0\0\0\x09"

const assetXdr = (asset: Asset | TrustLineAsset): string | undefined => {
  switch (asset.type) {
    case AssetType.native:
      return "\0\0\0\0"
    case AssetType.alphaNum4:
      return `\0\0\0\x01${latin1(asset.alphaNum4.assetCode)}\0\0\0\0${latin1(asset.alphaNum4.issuer.ed25519)}`
    case AssetType.alphaNum12:
      return `\0\0\0\x02${latin1(asset.alphaNum12.assetCode)}\0\0\0\0${latin1(asset.alphaNum12.issuer.ed25519)}`
    default:
      return undefined
  }
}

const addressXdr = (address: ScAddress): string => {
  switch (address.type) {
    case AddressType.account:
      return ACCOUNT_PREFIX + latin1(address.accountId.ed25519)
    case AddressType.contract:
      return "\0\0\0\x01" + latin1(address.contractId)
    default:
      return latin1(codec.ScAddress.encode(address))
  }
}

export const accountKeyString = (accountId: PublicKey): KeyString => ACCOUNT_PREFIX + latin1(accountId.ed25519)

/** The key's XDR, one character per byte. */
export const keyString = (key: LedgerKey): KeyString => {
  switch (key.type) {
    case EntryType.account:
      return ACCOUNT_PREFIX + latin1(key.account.accountId.ed25519)
    case EntryType.trustLine: {
      const asset = assetXdr(key.trustLine.asset)
      return asset === undefined
        ? latin1(codec.LedgerKey.encode(key))
        : TRUST_PREFIX + latin1(key.trustLine.accountId.ed25519) + asset
    }
    case EntryType.contractData: {
      const { contract, durability, key: value } = key.contractData
      const valueXdr =
        value.type === ScType.ledgerKeyContractInstance ? INSTANCE_XDR : latin1(codec.ScVal.encode(value))
      return `\0\0\0\x06${addressXdr(contract)}${valueXdr}\0\0\0${durability === 1 ? "\x01" : "\0"}`
    }
    case EntryType.contractCode:
      return CODE_PREFIX + latin1(key.contractCode.hash)
    case EntryType.ttl:
      return TTL_PREFIX + latin1(key.ttl.keyHash)
    default:
      return latin1(codec.LedgerKey.encode(key))
  }
}

/** The key back from its string. Throws when the string is not a key. */
export const keyOfString = (text: KeyString): LedgerKey => codec.LedgerKey.decode(fromLatin1(text))

/** True for contract data and contract code, the two kinds that have a time to live. */
export const hasTtl = (key: LedgerKey): boolean =>
  key.type === EntryType.contractData || key.type === EntryType.contractCode

/** True when the entry is read from disk and metered as such: everything but contract data, code and TTLs. */
export const isDiskKey = (key: LedgerKey): boolean =>
  key.type !== EntryType.contractData && key.type !== EntryType.contractCode && key.type !== EntryType.ttl

interface Sha256 {
  readonly sha256: (bytes: Uint8Array) => Uint8Array
}

/** The hash under which the TTL of the entry `key` is kept. */
export const ttlHash = (crypto: Sha256, key: KeyString): Uint8Array => crypto.sha256(fromLatin1(key))

/** The key string of the TTL entry that guards `key`. */
export const ttlKeyString = (crypto: Sha256, key: KeyString): KeyString => TTL_PREFIX + latin1(ttlHash(crypto, key))

export const ttlEntry = (
  keyHash: Uint8Array,
  liveUntilLedgerSeq: number,
  lastModifiedLedgerSeq: number
): LedgerEntry => ({
  lastModifiedLedgerSeq,
  data: { type: 9, ttl: { keyHash, liveUntilLedgerSeq } },
  ext: { v: 0 }
})

export const keyOfEntry = (entry: LedgerEntry): LedgerKey => {
  const data = entry.data
  switch (data.type) {
    case EntryType.account:
      return accountKey(data.account.accountId)
    case EntryType.trustLine:
      return trustLineKey(data.trustLine.accountId, data.trustLine.asset)
    case EntryType.offer:
      return { type: 2, offer: { sellerId: data.offer.sellerId, offerId: data.offer.offerId } }
    case EntryType.data:
      return { type: 3, data: { accountId: data.data.accountId, dataName: data.data.dataName } }
    case EntryType.claimableBalance:
      return { type: 4, claimableBalance: { balanceId: data.claimableBalance.balanceId } }
    case EntryType.liquidityPool:
      return { type: 5, liquidityPool: { liquidityPoolId: data.liquidityPool.liquidityPoolId } }
    case EntryType.contractData:
      return contractDataKey(
        data.contractData.contract,
        data.contractData.key,
        data.contractData.durability as Durability
      )
    case EntryType.contractCode:
      return contractCodeKey(data.contractCode.hash)
    case EntryType.configSetting:
      return { type: 8, configSetting: { configSettingId: data.configSetting.configSettingID } }
    case EntryType.ttl:
      return { type: 9, ttl: { keyHash: data.ttl.keyHash } }
  }
}

/** An asset in the form of trustlines (everything except pool shares is the same on the wire). */
export const trustLineAsset = (asset: Asset): TrustLineAsset => asset
