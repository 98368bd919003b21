// When an asset or a text is well formed, by the network's rules.
import { AssetType } from "../engine/xdr/types.ts"
import type { Asset } from "../engine/xdr/Xdr.ts"

const isLetterOrDigit = (byte: number): boolean =>
  (byte >= 48 && byte <= 57) || (byte >= 65 && byte <= 90) || (byte >= 97 && byte <= 122)

/** Letters and digits, then only zeros; at least `min` of them. */
const isCode = (code: Uint8Array, min: number): boolean => {
  let length = 0
  while (length < code.length && code[length] !== 0) {
    if (!isLetterOrDigit(code[length]!)) return false
    length++
  }
  for (let i = length; i < code.length; i++) if (code[i] !== 0) return false
  return length >= min
}

/** Codes of 1 to 4 characters use the short form, of 5 to 12 the long one. */
export const isAssetValid = (asset: Asset): boolean =>
  asset.type === AssetType.native ||
  (asset.type === AssetType.alphaNum4 ? isCode(asset.alphaNum4.assetCode, 1) : isCode(asset.alphaNum12.assetCode, 5))

/** ASCII without control characters. */
export const isTextValid = (bytes: Uint8Array): boolean => bytes.every((byte) => byte >= 0x20 && byte < 0x7f)
