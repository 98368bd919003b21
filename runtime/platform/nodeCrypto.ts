// The Crypto port on `node:crypto`, for Node and for Deno. Every function is synchronous and none throws on hostile
// input: for a malformed key, digest or signature the answer is `false`. Parsed public keys are cached within a bound,
// because parsing costs a third of a verification. P-256 is an exception: the native library only verifies data that it
// has hashed itself, and a contract provides a ready digest, so we use `@noble/curves` for it. The same library does
// key recovery, and `@noble/hashes` does Keccak, which the native library does not have. P-256 here accepts a signature
// with a high S; a caller that must refuse it (the ledger's host does) checks S first.
import { p256 } from "@noble/curves/nist.js"
import { secp256k1 } from "@noble/curves/secp256k1.js"
import { keccak_256 } from "@noble/hashes/sha3.js"
import { Layer } from "effect"
import * as native from "node:crypto"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { LruCache } from "../../kernel/cache/LruCache.ts"

const ed25519PublicPrefix = Buffer.from("302a300506032b6570032100", "hex")
const ed25519SeedPrefix = Buffer.from("302e020100300506032b657004220420", "hex")

/** Capacity of the key cache. */
const parsedKeysMax = 4_096

const plain = (bytes: Uint8Array): Uint8Array => new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const parsed = (max: number, parse: (bytes: Uint8Array) => native.KeyObject) => {
  const keys = new LruCache<string, native.KeyObject>({ name: "public-keys", capacity: max })
  return (bytes: Uint8Array): native.KeyObject => {
    const id = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1")
    const known = keys.get(id)
    if (known !== undefined) return known
    const key = parse(bytes)
    keys.set(id, key)
    return key
  }
}

/** Parameters of sealing, and of the key derivation from a passphrase. */
const sealing: Pick<Crypto["Service"], "aes256GcmOpen" | "aes256GcmSeal" | "scrypt" | "rsaSha256Sign"> = {
  aes256GcmOpen: (key, nonce, sealed, tag) => {
    if (key.length !== 32 || nonce.length !== 12 || tag.length !== 16) return undefined
    try {
      const opening = native.createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: 16 }).setAuthTag(tag)
      return plain(Buffer.concat([opening.update(sealed), opening.final()]))
    } catch {
      return undefined
    }
  },
  aes256GcmSeal: (key, nonce, bytes) => {
    const sealing = native.createCipheriv("aes-256-gcm", key, nonce, { authTagLength: 16 })
    const sealed = plain(Buffer.concat([sealing.update(bytes), sealing.final()]))
    return { sealed, tag: plain(sealing.getAuthTag()) }
  },
  scrypt: (passphrase, salt, cost) => {
    try {
      return plain(native.scryptSync(passphrase, salt, 32, { N: cost, r: 8, p: 1, maxmem: 2_048 * cost }))
    } catch {
      return undefined
    }
  },
  rsaSha256Sign: (privateKeyPem, bytes) => {
    try {
      return plain(native.sign("sha256", bytes, privateKeyPem))
    } catch {
      return undefined
    }
  }
}

/** Memoizes the library's object for a secret, which takes three times as long to make as to use, for its lifetime. */
const secretKeys = new WeakMap<Uint8Array, native.KeyObject>()
const secretKey = (secret: Uint8Array): native.KeyObject => {
  const known = secretKeys.get(secret)
  if (known !== undefined) return known
  const key = native.createSecretKey(secret)
  secretKeys.set(secret, key)
  return key
}

const make = (): Crypto["Service"] => {
  const ed25519Public = parsed(parsedKeysMax, (bytes) =>
    native.createPublicKey({ key: Buffer.concat([ed25519PublicPrefix, bytes]), format: "der", type: "spki" })
  )
  const ed25519Private = (seed: Uint8Array): native.KeyObject =>
    native.createPrivateKey({ key: Buffer.concat([ed25519SeedPrefix, seed]), format: "der", type: "pkcs8" })
  const ed25519Signer = (seed: Uint8Array) => {
    const key = ed25519Private(seed)
    return (message: Uint8Array) => plain(native.sign(null, message, key))
  }
  return {
    sha256: (bytes) => plain(native.hash("sha256", bytes, "buffer")),
    hmacSha256: (key, bytes) => plain(native.createHmac("sha256", secretKey(key)).update(bytes).digest()),
    ...sealing,
    randomBytes: (length) => plain(native.randomBytes(length)),
    timingSafeEqual: (a, b) => a.length === b.length && native.timingSafeEqual(a, b),
    ed25519VerifyNative: (publicKey, message, signature) => {
      if (publicKey.length !== 32 || signature.length !== 64) return false
      try {
        return native.verify(null, message, ed25519Public(publicKey), signature)
      } catch {
        return false
      }
    },
    ed25519PublicKey: (seed) => {
      const der = native.createPublicKey(ed25519Private(seed)).export({ format: "der", type: "spki" })
      return plain(der.subarray(der.length - 32))
    },
    ed25519Sign: (seed, message) => ed25519Signer(seed)(message),
    ed25519Signer,
    keccak256: (bytes) => plain(keccak_256(bytes)),
    secp256k1Recover: (digest, signature, recoveryId) => {
      if (
        digest.length !== 32 ||
        signature.length !== 64 ||
        !Number.isInteger(recoveryId) ||
        recoveryId < 0 ||
        recoveryId > 3
      )
        return undefined
      try {
        return secp256k1.Signature.fromBytes(signature, "compact")
          .addRecoveryBit(recoveryId)
          .recoverPublicKey(digest)
          .toBytes(false)
      } catch {
        return undefined
      }
    },
    secp256r1Verify: (publicKey, digest, signature) => {
      if (publicKey.length !== 65 || publicKey[0] !== 4 || digest.length !== 32 || signature.length !== 64) return false
      try {
        return p256.verify(signature, digest, publicKey, { prehash: false, lowS: false })
      } catch {
        return false
      }
    }
  }
}

export const layer: Layer.Layer<Crypto> = Layer.sync(Crypto, make)
