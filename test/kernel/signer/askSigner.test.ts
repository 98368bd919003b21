// The public key that a remote signer reports: only one of ed25519, in its one encoding.
import { expect, it } from "vitest"
import { generateKeyPairSync } from "node:crypto"
import { keyOfSpki } from "../../../kernel/signer/remote/askSigner.ts"

const derOf = (key: { readonly export: (options: { type: "spki"; format: "der" }) => Uint8Array }) =>
  key.export({ type: "spki", format: "der" })

it("reads an ed25519 key, and refuses any other kind or length", () => {
  const ours = derOf(generateKeyPairSync("ed25519").publicKey)
  expect(keyOfSpki(ours)).toEqual(ours.slice(12))
  const others = [
    derOf(generateKeyPairSync("x25519").publicKey),
    derOf(generateKeyPairSync("ed448").publicKey),
    derOf(generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey)
  ]
  for (const other of [...others, ours.slice(0, 43), Uint8Array.from([...ours, 0])])
    expect(keyOfSpki(other)).toBeUndefined()
})
