// A declaration that the recipient's account has signed is the seller's own, with or without a key of the facilitator.
// Next to `info` and `schema` it has `signature`, the base64 of a SEP-53 signature by the payTo account. It signs the
// version hash of the resource as that declaration by itself would list it, or that hash, a space and `signedAt`, any
// text of at most 64 printable characters. The hash covers the description, the operation, the price and the recipient,
// so that a signature is worth nothing for other words or another price. Pure.
import { Option, Result } from "effect"
import { Base64, Hex } from "effect/encoding"
import { isSignedText } from "../../../kernel/ledger/isSignedText.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import { isFields } from "../fields.ts"

const signatureBytes = 64
const signatureLengthMax = 128

/** The signature's own digest, sha256 hex, if this account signed the extension over this hash. */
export const readSignature = (
  crypto: Crypto["Service"],
  extension: unknown,
  payTo: string,
  hashOf: () => string
): Option.Option<string> => {
  if (!isFields(extension)) return Option.none()
  const { signature, signedAt } = extension
  if (typeof signature !== "string" || signature.length > signatureLengthMax) return Option.none()
  if (signedAt !== undefined && (typeof signedAt !== "string" || !/^[\x21-\x7e]{1,64}$/.test(signedAt)))
    return Option.none()
  const bytes = Result.getOrElse(Base64.decode(signature), () => new Uint8Array())
  if (bytes.length !== signatureBytes) return Option.none()
  const text = [hashOf(), ...(signedAt === undefined ? [] : [signedAt])].join(" ")
  return isSignedText(crypto, payTo, text, bytes) ? Option.some(Hex.encode(crypto.sha256(bytes))) : Option.none()
}
