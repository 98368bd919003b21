// Addresses as text, compared with the official SDK's.
import { StrKey } from "@stellar/stellar-sdk"
import { describe, expect, it } from "vitest"
import { decodeStrKey, encodeStrKey, type StrKeyKind } from "../../../../../plugins/ledger-local/engine/xdr/StrKey.ts"

const official: Readonly<Record<StrKeyKind, (bytes: Uint8Array) => string>> = {
  account: (bytes) => StrKey.encodeEd25519PublicKey(bytes),
  seed: (bytes) => StrKey.encodeEd25519SecretSeed(bytes),
  muxedAccount: (bytes) => StrKey.encodeMed25519PublicKey(bytes),
  contract: (bytes) => StrKey.encodeContract(bytes)
}
const kinds = Object.keys(official) as ReadonlyArray<StrKeyKind>

/** Pseudo-random bytes, the same in every run. */
const payload = (kind: StrKeyKind, seed: number): Uint8Array =>
  Uint8Array.from(
    { length: kind === "muxedAccount" ? 40 : 32 },
    (_, i) => (seed * 131 + i * i * 17 + (seed >> 3) * i) & 0xff
  )

describe("an address as text", () => {
  it.each(kinds)("an address text equals the official one and round-trips for %s", (kind) => {
    for (let seed = 0; seed < 500; seed++) {
      const bytes = payload(kind, seed)
      const text = encodeStrKey(kind, bytes)
      expect(text).toBe(official[kind](bytes))
      expect(decodeStrKey(kind, text)).toEqual(bytes)
    }
  })

  it("refuses a changed, truncated, extended, lowercase or foreign address", () => {
    for (const kind of kinds) {
      const text = encodeStrKey(kind, payload(kind, 7))
      for (let at = 0; at < text.length; at++) {
        const other = text[at] === "A" ? "B" : "A"
        expect(decodeStrKey(kind, text.slice(0, at) + other + text.slice(at + 1))).toBeUndefined()
      }
      for (const wrong of [
        text.slice(0, -1),
        `${text}A`,
        text.toLowerCase(),
        "",
        `${text.slice(0, -1)}=`,
        `${text.slice(0, -1)}é`
      ])
        expect(decodeStrKey(kind, wrong)).toBeUndefined()
      for (const other of kinds) if (other !== kind) expect(decodeStrKey(other, text)).toBeUndefined()
    }
  })

  it("requires zero unused bits in a muxed account", () => {
    const text = encodeStrKey("muxedAccount", payload("muxedAccount", 3))
    const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
    const last = letters.indexOf(text.at(-1)!)
    for (let value = 0; value < 32; value++) {
      const spelled = text.slice(0, -1) + letters[value]!
      expect(decodeStrKey("muxedAccount", spelled) !== undefined).toBe(value === last)
    }
  })

  it("refuses to encode a payload of another length", () => {
    expect(() => encodeStrKey("account", new Uint8Array(31))).toThrow("32 bytes")
    expect(() => encodeStrKey("muxedAccount", new Uint8Array(32))).toThrow("40 bytes")
  })
})
