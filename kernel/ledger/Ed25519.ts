// Ed25519 by the ledger's rules. The network refuses a public key or an `R` of small order, because such a signature
// can be made to fit any message. It also refuses every non-canonical encoding, and a scalar at or above the group's
// order. The native libraries of some runtimes accept some of these. So the form is checked here first, and then the
// platform's own fast check suffices on every runtime. Seven encodings, each with either sign bit, are all points of
// small order.
import type { Crypto } from "../platform/Crypto.ts"

const smallOrderHex = [
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  // The same points with y written above the field's prime.
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"
]
const primeHex = "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"
const orderHex = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010"

const bytesOf = (text: string): Uint8Array =>
  Uint8Array.from({ length: 32 }, (_, i) => parseInt(text.slice(i * 2, i * 2 + 2), 16))

const smallOrder = smallOrderHex.map(bytesOf)
const [prime, order] = [bytesOf(primeHex), bytesOf(orderHex)]

/** True when the first 32 bytes encode a point of small order, with either sign bit. */
export const isSmallOrder = (point: Uint8Array): boolean =>
  smallOrder.some((known) => {
    for (let i = 0; i < 31; i++) if (point[i] !== known[i]) return false
    return (point[31]! & 0x7f) === known[31]
  })

/** Whether 32 little-endian bytes from `at` on are below a bound; `mask` is of the highest byte. */
const isBelow = (bytes: Uint8Array, at: number, mask: number, bound: Uint8Array): boolean => {
  for (let i = 31; i >= 0; i--) {
    const byte = bytes[at + i]! & (i === 31 ? mask : 0xff)
    if (byte !== bound[i]) return byte < bound[i]!
  }
  return false
}

/**
 * Whether a key and a signature have the form that the ledger demands: 32 and 64 bytes, canonical, neither point of
 * small order. The check of the runtime's library completes it.
 */
export const hasLedgerForm = (publicKey: Uint8Array, signature: Uint8Array): boolean =>
  publicKey.length === 32 &&
  signature.length === 64 &&
  !isSmallOrder(publicKey) &&
  !isSmallOrder(signature) &&
  isBelow(publicKey, 0, 0x7f, prime) &&
  isBelow(signature, 0, 0x7f, prime) &&
  isBelow(signature, 32, 0xff, order)

/** The network's strict check: 32-byte key, any message, 64-byte signature. Malformed input is not valid. */
export const verifyEd25519 = (
  crypto: Pick<Crypto["Service"], "ed25519VerifyNative">,
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array
): boolean => hasLedgerForm(publicKey, signature) && crypto.ed25519VerifyNative(publicKey, message, signature)
