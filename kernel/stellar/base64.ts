// Strict base64: the standard alphabet, padded, without white space, and with zeros in the unused bits. So bytes have
// exactly one text.

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

/** The value of each character by its code; -1 outside the alphabet. */
const values = Int8Array.from({ length: 128 }, (_, code) => alphabet.indexOf(String.fromCharCode(code)))

/** Negative for a character outside the alphabet; combining it with others stays negative. */
const valueAt = (text: string, at: number): number => {
  const code = text.charCodeAt(at)
  return code < 128 ? values[code]! : -1
}

/** The bytes of a text in this form; undefined for any other. */
export const bytesOfBase64 = (text: string): Uint8Array | undefined => {
  const { length } = text
  if (length % 4 !== 0) return undefined
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0
  const bytes = new Uint8Array((length / 4) * 3 - padding)
  const wholeEnd = padding === 0 ? length : length - 4
  let at = 0
  for (let i = 0; i < wholeEnd; i += 4) {
    const three =
      (valueAt(text, i) << 18) | (valueAt(text, i + 1) << 12) | (valueAt(text, i + 2) << 6) | valueAt(text, i + 3)
    if (three < 0) return undefined
    bytes[at++] = three >> 16
    bytes[at++] = three >> 8
    bytes[at++] = three
  }
  if (padding === 0) return bytes
  const third = padding === 1 ? valueAt(text, wholeEnd + 2) : 0
  const last = (valueAt(text, wholeEnd) << 18) | (valueAt(text, wholeEnd + 1) << 12) | (third << 6)
  // Bits below the last byte.
  const rest = last & (padding === 1 ? 0xff : 0xffff)
  if (last < 0 || rest !== 0) return undefined
  bytes[at++] = last >> 16
  if (padding === 1) bytes[at] = last >> 8
  return bytes
}
