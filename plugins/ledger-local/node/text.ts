// Converts bytes to hex and base64 text and back. Decoding returns `undefined` for input that does not match the form
// exactly.
import { Result } from "effect"
import * as Base64 from "effect/encoding/Base64"
import * as Hex from "effect/encoding/Hex"

export const toHex = (bytes: Uint8Array): string => Hex.encode(bytes)
export const toBase64 = (bytes: Uint8Array): string => Base64.encode(bytes)

export const fromBase64 = (text: string): Uint8Array | undefined => {
  const decoded = Base64.decode(text)
  return Result.isSuccess(decoded) ? decoded.success : undefined
}
