// A transaction envelope from a request: base64, bounded, without trailing bytes.
import { codec, type TransactionEnvelope } from "../engine/xdr/Xdr.ts"
import { fromBase64 } from "../node/text.ts"

/** Decoded size of an envelope at most. */
const ENVELOPE_BYTES_MAX = 1 << 20

/** The envelope with its bytes, or nothing when it is not one. */
export const decodeEnvelope = (
  text: string
): { readonly envelope: TransactionEnvelope; readonly bytes: Uint8Array } | undefined => {
  const bytes = fromBase64(text)
  if (bytes === undefined || bytes.length === 0 || bytes.length > ENVELOPE_BYTES_MAX) return undefined
  try {
    return { envelope: codec.TransactionEnvelope.decode(bytes), bytes }
  } catch {
    return undefined
  }
}
