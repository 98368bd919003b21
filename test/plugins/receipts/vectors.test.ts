// The plugin makes both forms byte for byte as in the committed vectors, which code without the plugin's modules made.
import { Effect } from "effect"
import { secp256k1 } from "@noble/curves/secp256k1.js"
import { keccak_256 } from "@noble/hashes/sha3.js"
import { createPrivateKey, sign } from "node:crypto"
import { readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { makeAttestation } from "../../../plugins/receipts/attestation.ts"
import { signClaims } from "../../../plugins/receipts/claims.ts"

const { attestationSecret, kid, receiptSeed, vectors } = JSON.parse(
  readFileSync(new URL("vectors.json", import.meta.url), "utf8")
)
const prefix = Buffer.from("302e020100300506032b657004220420", "hex")
const der = Buffer.concat([prefix, Buffer.from(receiptSeed, "hex")])
const privateKey = createPrivateKey({ key: der, format: "der", type: "pkcs8" })
const secret = Buffer.from(attestationSecret, "hex")
const attestationKey = {
  publicKey: secp256k1.getPublicKey(secret, false),
  sign: (digest: Uint8Array) => {
    const recovered = secp256k1.sign(digest, secret, { prehash: false, format: "recovered" })
    return Effect.succeed(Uint8Array.from([...recovered.subarray(1), 27 + recovered[0]!]))
  }
}

it.each(vectors as ReadonlyArray<any>)("the plugin makes the vector: $name", ({ attestation, claims, receipt }) => {
  const signing = signClaims(claims, kid, (message) => Effect.sync(() => sign(null, message, privateKey)))
  expect(Effect.runSync(signing)).toBe(receipt)
  const crypto = { keccak256: (bytes: Uint8Array) => keccak_256(bytes) }
  expect(Effect.runSync(makeAttestation(crypto, claims, attestationKey))).toEqual(attestation)
})
