// The cryptography of the platform, as one synchronous port. `runtime/platform/` implements it with the native library
// of the runtime; no other module uses a native crypto module. All byte arguments and results are plain `Uint8Array`s.
// Functions never throw on hostile input: a malformed key or signature is simply invalid.
import { Context } from "effect"
import * as Hex from "effect/encoding/Hex"

export class Crypto extends Context.Service<
  Crypto,
  {
    /** SHA-256 of `bytes`, 32 bytes. */
    readonly sha256: (bytes: Uint8Array) => Uint8Array
    /** HMAC-SHA-256, 32 bytes. */
    readonly hmacSha256: (key: Uint8Array, bytes: Uint8Array) => Uint8Array
    /**
     * Decrypts AES-256-GCM: `key` 32 bytes, `nonce` 12, `tag` 16. Undefined if an argument does not fit or was altered.
     */
    readonly aes256GcmOpen: (
      key: Uint8Array,
      nonce: Uint8Array,
      sealed: Uint8Array,
      tag: Uint8Array
    ) => Uint8Array | undefined
    /** Encrypts for `aes256GcmOpen`; returns the tag separately. */
    readonly aes256GcmSeal: (
      key: Uint8Array,
      nonce: Uint8Array,
      bytes: Uint8Array
    ) => { readonly sealed: Uint8Array; readonly tag: Uint8Array }
    /** 32 bytes of scrypt; `cost` a power of two, in blocks of 1 KiB. Undefined for an invalid cost. */
    readonly scrypt: (passphrase: Uint8Array, salt: Uint8Array, cost: number) => Uint8Array | undefined
    /** RSASSA-PKCS1-v1_5 with SHA-256 by a private key in PEM (PKCS #8). Undefined if the key is invalid. */
    readonly rsaSha256Sign: (privateKeyPem: string, bytes: Uint8Array) => Uint8Array | undefined
    /** `length` bytes from the system's secure source. */
    readonly randomBytes: (length: number) => Uint8Array
    /** True if both have the same length and content; the time does not depend on the position of a difference. */
    readonly timingSafeEqual: (a: Uint8Array, b: Uint8Array) => boolean
    /**
     * The platform's own ed25519 check. It is NOT strict everywhere (Deno accepts small-order keys): callers use
     * `kernel/ledger/Ed25519.ts`, which adds the strictness of the network.
     */
    readonly ed25519VerifyNative: (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array) => boolean
    /** The 32-byte public key of a 32-byte seed. */
    readonly ed25519PublicKey: (seed: Uint8Array) => Uint8Array
    /** 64-byte signature by a 32-byte seed. */
    readonly ed25519Sign: (seed: Uint8Array, message: Uint8Array) => Uint8Array
    /** The same for repeated signatures: the seed is parsed once, which costs as much as a signature. */
    readonly ed25519Signer: (seed: Uint8Array) => (message: Uint8Array) => Uint8Array
    /**
     * ECDSA P-256 over an already computed 32-byte digest; `publicKey` is the 65-byte uncompressed point, `signature`
     * 64 bytes r‖s.
     */
    readonly secp256r1Verify: (publicKey: Uint8Array, digest: Uint8Array, signature: Uint8Array) => boolean
    /** Keccak-256 of `bytes`, 32 bytes: the hash of Ethereum, not SHA3-256. */
    readonly keccak256: (bytes: Uint8Array) => Uint8Array
    /**
     * The 65-byte uncompressed public key that signed a 32-byte digest with secp256k1; `signature` is 64 bytes r‖s,
     * `recoveryId` 0 to 3. Undefined if the signature yields none.
     */
    readonly secp256k1Recover: (digest: Uint8Array, signature: Uint8Array, recoveryId: number) => Uint8Array | undefined
  }
>()("tollkeeper/platform/Crypto") {}

/** Settlement ids: random UUIDs of version 4. */
export const newId = (crypto: Crypto["Service"]): string => {
  const hex = Hex.encode(crypto.randomBytes(16))
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`
}
