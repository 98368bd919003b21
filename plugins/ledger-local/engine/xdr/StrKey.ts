// Addresses as text (SEP-23): base32 of a version byte, the payload and a checksum, CRC-16/XMODEM. The SDK has this
// too, but only with its transaction builders, which nothing else here uses and which are a tenth of a small ledger's
// memory. Decoding is strict: it accepts only the one text that encoding gives, and returns `undefined` for anything
// else.

const VERSION = {
  account: 6 << 3,
  seed: 18 << 3,
  muxedAccount: 12 << 3,
  contract: 2 << 3
} as const

export type StrKeyKind = keyof typeof VERSION

/** Bytes of a payload: a key or a hash, and for a muxed account its number too. */
const payloadBytes = (kind: StrKeyKind): number => (kind === "muxedAccount" ? 40 : 32)

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
const valueOf = new Map([...ALPHABET].map((letter, value) => [letter, value]))

const POLYNOMIAL = 0x1021

const checksum = (bytes: Uint8Array, length: number): number => {
  let crc = 0
  for (let i = 0; i < length; i++) {
    crc ^= bytes[i]! << 8
    for (let bit = 0; bit < 8; bit++)
      crc = (crc & 0x8000) === 0 ? (crc << 1) & 0xffff : ((crc << 1) ^ POLYNOMIAL) & 0xffff
  }
  return crc
}

const toBase32 = (bytes: Uint8Array): string => {
  let [text, held, bits] = ["", 0, 0]
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xfff
    for (bits += 8; bits >= 5; bits -= 5) text += ALPHABET[(held >> (bits - 5)) & 31]
  }
  return bits === 0 ? text : text + ALPHABET[(held << (5 - bits)) & 31]
}

const fromBase32 = (text: string): Uint8Array | undefined => {
  const bytes = new Uint8Array((text.length * 5) >> 3)
  let [at, held, bits] = [0, 0, 0]
  for (const letter of text) {
    const value = valueOf.get(letter)
    if (value === undefined) return undefined
    held = ((held << 5) | value) & 0xfff
    bits += 5
    if (bits < 8) continue
    bits -= 8
    bytes[at++] = (held >> bits) & 0xff
  }
  return bytes
}

/** The text of a payload of the right length. */
export const encodeStrKey = (kind: StrKeyKind, payload: Uint8Array): string => {
  const length = payloadBytes(kind)
  if (payload.length !== length) throw new Error(`the payload of a ${kind} has ${length} bytes, not ${payload.length}`)
  const bytes = new Uint8Array(length + 3)
  bytes[0] = VERSION[kind]
  bytes.set(payload, 1)
  const crc = checksum(bytes, length + 1)
  bytes[length + 1] = crc & 0xff
  bytes[length + 2] = crc >> 8
  return toBase32(bytes)
}

/** The payload of a text of this kind, or nothing. */
export const decodeStrKey = (kind: StrKeyKind, text: string): Uint8Array | undefined => {
  const length = payloadBytes(kind)
  if (text.length !== Math.ceil(((length + 3) * 8) / 5)) return undefined
  const payload = fromBase32(text)?.slice(1, length + 1)
  // Encoding again verifies version, checksum and the unused last bits.
  return payload !== undefined && encodeStrKey(kind, payload) === text ? payload : undefined
}
