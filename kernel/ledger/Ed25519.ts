// Ed25519 as the ledger checks it. The network refuses a public key or an `R` of small order, because such a signature
// can be made to fit any message; the native libraries of some runtimes accept it. So both are checked here first, and
// then the platform's own fast check suffices on every runtime. Seven encodings, each with either sign bit, are all
// there are.
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

const smallOrder = smallOrderHex.map((text) =>
  Uint8Array.from({ length: 32 }, (_, i) => parseInt(text.slice(i * 2, i * 2 + 2), 16))
)

/** True when the first 32 bytes encode a point of small order, with either sign bit. */
export const isSmallOrder = (point: Uint8Array): boolean =>
  smallOrder.some((known) => {
    for (let i = 0; i < 31; i++) if (point[i] !== known[i]) return false
    return (point[31]! & 0x7f) === known[31]
  })

/** The network's strict check: 32-byte key, any message, 64-byte signature. Malformed input is not valid. */
export const verifyEd25519 = (
  crypto: Crypto["Service"],
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array
): boolean =>
  publicKey.length === 32 &&
  signature.length === 64 &&
  !isSmallOrder(publicKey) &&
  !isSmallOrder(signature) &&
  crypto.ed25519VerifyNative(publicKey, message, signature)
