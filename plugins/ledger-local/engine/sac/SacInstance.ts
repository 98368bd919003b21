// The instance of a Stellar Asset Contract: its asset, metadata and administrator, as kept in instance storage. Reading
// is cached by the instance value, since every call needs it and it almost never changes.
import { AssetType, ScType } from "../xdr/types.ts"
import { HostError } from "../host/HostError.ts"
import {
  bytes,
  field,
  readAddress,
  readBytes,
  readMap,
  readVec,
  str,
  structMap,
  sym,
  symbolText,
  u32,
  vec,
  address as addressVal
} from "../xdr/ScVal.ts"
import {
  accountAddress,
  accountStrKey,
  type Asset,
  fromLatin1,
  latin1,
  publicKey,
  type PublicKey,
  type ScAddress,
  type ScMapEntry,
  type ScVal
} from "../xdr/Xdr.ts"
import * as xdr from "@stellar/stellar-sdk/xdr"

export const SAC_DECIMALS = 7

export interface SacInstance {
  readonly asset: Asset
  /** Absent for the native asset. */
  readonly issuer: PublicKey | undefined
  /** String value `CODE:ISSUER` or `native`: the SEP-11 name that events carry. */
  readonly name: ScVal
  readonly symbol: ScVal
  /** Absent for the native asset. */
  readonly admin: ScAddress | undefined
}

const cache = new WeakMap<ReadonlyArray<ScMapEntry>, SacInstance>()

const malformed = (): HostError => HostError.of("Storage", "MissingValue", "malformed asset contract instance")

const tagOf = (key: ScVal): string | undefined => (key.type === ScType.vec ? symbolText(key.vec?.[0]) : undefined)

const readAsset = (info: ScVal): Asset => {
  const [kind, details] = readVec(info)
  const name = symbolText(kind)
  if (name === "Native") return { type: 0 }
  if (details === undefined) throw malformed()
  const map = readMap(details)
  const code = field(map, "asset_code")
  const issuerBytes = field(map, "issuer")
  if (code?.type !== ScType.string || issuerBytes === undefined) throw malformed()
  const issuer = publicKey(readBytes(issuerBytes))
  return name === "AlphaNum4"
    ? { type: 1, alphaNum4: { assetCode: code.str.bytes, issuer } }
    : { type: 2, alphaNum12: { assetCode: code.str.bytes, issuer } }
}

/** The issuer of an asset, or undefined for the native one. */
export const issuerOf = (asset: Asset): PublicKey | undefined =>
  asset.type === AssetType.alphaNum4
    ? asset.alphaNum4.issuer
    : asset.type === AssetType.alphaNum12
      ? asset.alphaNum12.issuer
      : undefined

export const readSacInstance = (storage: ReadonlyArray<ScMapEntry>): SacInstance => {
  const known = cache.get(storage)
  if (known !== undefined) return known
  const find = (tag: string) => storage.find(({ key }) => tagOf(key) === tag)?.val
  const info = find("AssetInfo")
  const metadata = storage.find(({ key }) => symbolText(key) === "METADATA")?.val
  if (info === undefined || metadata === undefined) throw malformed()
  const fields = readMap(metadata)
  const name = field(fields, "name")
  const symbol = field(fields, "symbol")
  if (name === undefined || symbol === undefined) throw malformed()
  const asset = readAsset(info)
  const admin = find("Admin")
  const instance: SacInstance = {
    asset,
    issuer: issuerOf(asset),
    name,
    symbol,
    admin: admin === undefined ? undefined : readAddress(admin)
  }
  cache.set(storage, instance)
  return instance
}

const trimmedCode = (code: Uint8Array): string => latin1(code).replace(/\0+$/, "")

/** The code of an asset without padding, or `native`. */
const assetCodeText = (asset: Asset): string =>
  asset.type === AssetType.alphaNum4
    ? trimmedCode(asset.alphaNum4.assetCode)
    : asset.type === AssetType.alphaNum12
      ? trimmedCode(asset.alphaNum12.assetCode)
      : "native"

/** The SEP-11 name: `CODE:ISSUER` or `native`. */
const assetName = (asset: Asset): string => {
  const issuer = issuerOf(asset)
  return issuer === undefined ? "native" : `${assetCodeText(asset)}:${accountStrKey(issuer)}`
}

export const ADMIN_KEY: ScVal = vec([sym("Admin")])

/** Instance storage of a new asset contract, keys in the host's order. */
export const newSacStorage = (asset: Asset): Array<ScMapEntry> => {
  const issuer = issuerOf(asset)
  const code =
    asset.type === AssetType.alphaNum4
      ? asset.alphaNum4.assetCode
      : asset.type === AssetType.alphaNum12
        ? asset.alphaNum12.assetCode
        : new Uint8Array()
  const metadata = structMap({
    decimal: u32(SAC_DECIMALS),
    name: str(assetName(asset)),
    symbol: str(assetCodeText(asset))
  })
  const storage: Array<ScMapEntry> = [{ key: sym("METADATA"), val: metadata }]
  if (issuer !== undefined) storage.push({ key: ADMIN_KEY, val: addressVal(accountAddress(issuer)) })
  storage.push({
    key: vec([sym("AssetInfo")]),
    val:
      issuer === undefined
        ? vec([sym("Native")])
        : vec([
            sym(asset.type === AssetType.alphaNum4 ? "AlphaNum4" : "AlphaNum12"),
            structMap({
              asset_code: { type: 14, str: new xdr.XdrString(fromLatin1(latin1(code))) },
              issuer: bytes(issuer.ed25519)
            })
          ])
  })
  return storage
}
