import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as native from "node:crypto"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { layer } from "../../../runtime/platform/nodeCrypto.ts"

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex")
const unhex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "hex"))
const abc = new TextEncoder().encode("abc")

describe("nodeCrypto", () => {
  it.effect("hashes as the published vectors say", () =>
    Effect.gen(function* () {
      const crypto = yield* Crypto
      expect(hex(crypto.sha256(abc))).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
      expect(
        hex(
          crypto.hmacSha256(new TextEncoder().encode("Jefe"), new TextEncoder().encode("what do ya want for nothing?"))
        )
      ).toBe("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
      expect(crypto.randomBytes(16)).toHaveLength(16)
      expect(crypto.timingSafeEqual(abc, new Uint8Array(abc))).toBe(true)
      expect(crypto.timingSafeEqual(abc, abc.subarray(1))).toBe(false)
    }).pipe(Effect.provide(layer))
  )

  it.effect("signs and verifies ed25519 by RFC 8032, and rejects malformed input", () =>
    Effect.gen(function* () {
      const crypto = yield* Crypto
      const seed = unhex("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7")
      const publicKey = crypto.ed25519PublicKey(seed)
      expect(hex(publicKey)).toBe("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025")
      const message = unhex("af82")
      const signature = crypto.ed25519Sign(seed, message)
      expect(hex(signature).slice(0, 16)).toBe("6291d657deec2402")
      const sign = crypto.ed25519Signer(seed)
      expect([hex(sign(message)), hex(sign(message))]).toEqual([hex(signature), hex(signature)])
      expect(crypto.ed25519VerifyNative(publicKey, message, signature)).toBe(true)
      expect(crypto.ed25519VerifyNative(publicKey, abc, signature)).toBe(false)
      expect(crypto.ed25519VerifyNative(publicKey.subarray(1), message, signature)).toBe(false)
      expect(crypto.ed25519VerifyNative(publicKey, message, signature.subarray(1))).toBe(false)
      expect(crypto.ed25519VerifyNative(new Uint8Array(32).fill(255), message, signature)).toBe(false)
    }).pipe(Effect.provide(layer))
  )

  it.effect("verifies P-256 over a digest that it did not hash itself", () =>
    Effect.gen(function* () {
      const crypto = yield* Crypto
      const pair = native.generateKeyPairSync("ec", { namedCurve: "P-256" })
      const der = pair.publicKey.export({ format: "der", type: "spki" })
      const publicKey = new Uint8Array(der.subarray(der.length - 65))
      const signature = new Uint8Array(native.sign("sha256", abc, { key: pair.privateKey, dsaEncoding: "ieee-p1363" }))
      const digest = crypto.sha256(abc)
      expect(crypto.secp256r1Verify(publicKey, digest, signature)).toBe(true)
      expect(crypto.secp256r1Verify(publicKey, crypto.sha256(digest), signature)).toBe(false)
      expect(crypto.secp256r1Verify(new Uint8Array(65).fill(4), digest, signature)).toBe(false)
      expect(crypto.secp256r1Verify(publicKey, digest, new Uint8Array(64))).toBe(false)
    }).pipe(Effect.provide(layer))
  )
})
