import { describe, expect, it } from "@effect/vitest"
import { ED25519_TORSION_SUBGROUP } from "@noble/curves/ed25519.js"
import { Effect } from "effect"
import * as native from "node:crypto"
import { readFileSync } from "node:fs"
import { StrKey } from "@stellar/stellar-sdk"
import { isVoucherOf } from "../../../examples/batch/vouchers.ts"
import { hasLedgerForm, isSmallOrder, verifyEd25519 } from "../../../kernel/ledger/Ed25519.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { layer } from "../../../runtime/platform/nodeCrypto.ts"

const order = 2n ** 252n + 27742317777372353535851937790883648493n
const little = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).reverse().toString("hex")}`)
const bytes32 = (value: bigint): Uint8Array =>
  new Uint8Array(Buffer.from(value.toString(16).padStart(64, "0"), "hex").reverse())
interface EdgeCase {
  readonly name: string
  readonly message: string
  readonly publicKey: string
  readonly signature: string
  readonly holds: boolean
}
const edgeCases: ReadonlyArray<EdgeCase> = JSON.parse(
  readFileSync(new URL("ed25519Cases.json", import.meta.url), "utf8")
).cases

const message = new TextEncoder().encode("payload")
const seed = new Uint8Array(32).fill(7)

/** A signature by an honest key with the identity as R: S = k·a satisfies the verification equation. */
const smallR = (publicKey: Uint8Array): Uint8Array => {
  const hashed = native.createHash("sha512").update(seed).digest()
  const scalar = Buffer.from(hashed.subarray(0, 32))
  scalar[0]! &= 248
  scalar[31]! = (scalar[31]! & 127) | 64
  const R = new Uint8Array(32)
  R[0] = 1
  const k =
    little(
      native
        .createHash("sha512")
        .update(Buffer.concat([R, publicKey, message]))
        .digest()
    ) % order
  return new Uint8Array(Buffer.concat([R, bytes32((k * (little(scalar) % order)) % order)]))
}

describe("Ed25519", () => {
  it.effect("accepts an honest signature and refuses a changed message or signature", () =>
    Effect.gen(function* () {
      const crypto = yield* Crypto
      const publicKey = crypto.ed25519PublicKey(seed)
      const signature = crypto.ed25519Sign(seed, message)
      expect(verifyEd25519(crypto, publicKey, message, signature)).toBe(true)
      expect(verifyEd25519(crypto, publicKey, message.subarray(1), signature)).toBe(false)
      expect(
        verifyEd25519(
          crypto,
          publicKey,
          message,
          signature.map((byte, i) => (i === 0 ? byte ^ 1 : byte))
        )
      ).toBe(false)
      expect(verifyEd25519(crypto, publicKey.subarray(1), message, signature)).toBe(false)
    }).pipe(Effect.provide(layer))
  )

  it.effect("refuses small-order keys and R, and S above the group order", () =>
    Effect.gen(function* () {
      const real = yield* Crypto
      const publicKey = real.ed25519PublicKey(seed)
      const identity = new Uint8Array(32)
      identity[0] = 1
      const anyMessage = new Uint8Array(64)
      anyMessage[0] = 1
      const lenient = { ...real, ed25519VerifyNative: () => true }
      expect(verifyEd25519(lenient, identity, message, anyMessage)).toBe(false)
      expect(verifyEd25519(lenient, identity, message, real.ed25519Sign(seed, message))).toBe(false)
      expect(verifyEd25519(lenient, publicKey, message, real.ed25519Sign(seed, message))).toBe(true)
      expect(verifyEd25519(lenient, publicKey, message, smallR(publicKey))).toBe(false)
      const signature = real.ed25519Sign(seed, message)
      const tooLarge = new Uint8Array(
        Buffer.concat([signature.subarray(0, 32), bytes32(little(signature.subarray(32)) + order)])
      )
      expect(verifyEd25519(real, publicKey, message, tooLarge)).toBe(false)
    }).pipe(Effect.provide(layer))
  )

  it.effect("decides the published edge cases as the ledger does", () =>
    Effect.gen(function* () {
      const crypto = yield* Crypto
      const bytes = (text: string) => Uint8Array.from(Buffer.from(text, "hex"))
      for (const { holds, message, name, publicKey, signature } of edgeCases) {
        const [key, signed] = [bytes(publicKey), bytes(signature)]
        expect([name, verifyEd25519(crypto, key, bytes(message), signed)]).toEqual([name, holds])
        // Malformed signatures are refused without a library.
        if (/small|canonical|above/.test(name)) expect([name, hasLedgerForm(key, signed)]).toEqual([name, false])
        // The voucher check of sellers is the same one.
        const address = StrKey.encodeEd25519PublicKey(key)
        const place = { networkId: new Uint8Array(32), address: StrKey.encodeContract(new Uint8Array(32)) }
        const voucher = { channelId: "00".repeat(32), maxClaimableAmount: "1", signature }
        expect(isVoucherOf(address, place, voucher)).toBe(false)
      }
      const above = "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"
      const fits = bytes("f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43")
      // y = 3 above the prime is a point of large order, with an unknown key.
      const three = bytes(above.replace("ee", "f0"))
      expect(hasLedgerForm(three, new Uint8Array(64).fill(1))).toBe(false)
      expect(hasLedgerForm(fits, Uint8Array.from([...three, ...new Uint8Array(32)]))).toBe(false)
      const byScalar = (scalar: bigint) => hasLedgerForm(fits, Uint8Array.from([...fits, ...bytes32(scalar)]))
      expect([order - 1n, order, order + 1n].map(byScalar)).toEqual([true, false, false])
    }).pipe(Effect.provide(layer))
  )

  it("a seller refuses a voucher that fits any message", () => {
    const { address, place } = {
      address: StrKey.encodeEd25519PublicKey(Uint8Array.from({ length: 32 }, (_, i) => (i === 0 ? 1 : 0))),
      place: { networkId: new Uint8Array(32), address: StrKey.encodeContract(new Uint8Array(32)) }
    }
    const signature = `01${"00".repeat(63)}`
    expect(isVoucherOf(address, place, { channelId: "00".repeat(32), maxClaimableAmount: "1", signature })).toBe(false)
  })

  it("recognizes exactly the small-order encodings, with either sign bit", () => {
    const minusOne = new Uint8Array(32).fill(255)
    minusOne[0] = 0xec
    minusOne[31] = 0x7f
    expect(isSmallOrder(minusOne)).toBe(true)
    minusOne[31] = 0xff
    expect(isSmallOrder(minusOne)).toBe(true)
    expect(isSmallOrder(new Uint8Array(32).fill(3))).toBe(false)
    // Another library's list of the group's torsion points, and the same points with y above the field's prime.
    const prime = 2n ** 255n - 19n
    for (const hex of ED25519_TORSION_SUBGROUP) {
      const point = Uint8Array.from(Buffer.from(hex, "hex"))
      const y = little(point.with(31, point[31]! & 0x7f))
      for (const written of y + prime < 2n ** 255n ? [point, bytes32(y + prime)] : [point]) {
        for (const sign of [0, 0x80])
          expect([hex, isSmallOrder(written.with(31, (written[31]! & 0x7f) | sign))]).toEqual([hex, true])
      }
    }
  })
})
