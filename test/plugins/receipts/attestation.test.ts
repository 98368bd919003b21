// The draft's attestation: its digest against a second implementation of EIP-712, the recovered address of its signer,
// and the same bytes each time.
import { Effect } from "effect"
import { expect, it } from "vitest"
import { secp256k1 } from "@noble/curves/secp256k1.js"
import { keccak_256 as keccak256 } from "@noble/hashes/sha3.js"
import { addressOf, attestationDigest, makeAttestation } from "../../../plugins/receipts/attestation.ts"
import type { ReceiptClaims } from "../../../plugins/receipts/contract.ts"

const crypto = { keccak256 }
const secret = new Uint8Array(32).fill(7)
const publicKey = secp256k1.getPublicKey(secret, false)
const sign = (digest: Uint8Array) => {
  const [recovery, ...rest] = secp256k1.sign(digest, secret, { prehash: false, format: "recovered" })
  return Effect.succeed(Uint8Array.of(...rest, 27 + recovery!))
}
const claims: ReceiptClaims = {
  v: 1,
  iss: "did:web:pay.example",
  network: "stellar:testnet",
  transaction: "ab".repeat(32),
  ledger: 7,
  closedAt: 1_790_000_000,
  payer: "GPAYER",
  payTo: "GPAYEE",
  asset: "CASSET",
  amount: "12345",
  scheme: "exact",
  settlement: "00000000-0000-4000-8000-000000000000",
  attempts: 1,
  fee: "100"
}

const word = (value: bigint) => Buffer.from(value.toString(16).padStart(64, "0"), "hex")
const ofText = (text: string) => keccak256(Buffer.from(text))

it("hashes domain and payload as EIP-712 says, under the draft's names and types", () => {
  const { payload } = Effect.runSync(makeAttestation(crypto, claims, { publicKey, sign }))
  const domain = keccak256(
    Buffer.concat([
      ofText("EIP712Domain(string name,string version,uint256 chainId)"),
      ofText("x402 receipt"),
      ofText("1"),
      word(1n)
    ])
  )
  const struct = keccak256(
    Buffer.concat([
      ofText(
        "SettlementAttestation(uint256 version,string network,string transaction,string payer,string payee," +
          "string asset,uint256 amount,string facilitator,uint256 facilitatorFee,uint256 observedAt)"
      ),
      word(1n),
      ofText("stellar:testnet"),
      ofText(claims.transaction),
      ofText("GPAYER"),
      ofText("GPAYEE"),
      ofText("CASSET"),
      word(12_345n),
      ofText(addressOf(crypto, publicKey)),
      word(0n),
      word(1_790_000_000n)
    ])
  )
  const digest = keccak256(Buffer.concat([Buffer.of(0x19, 0x01), domain, struct]))
  expect(Buffer.from(attestationDigest(crypto, payload)).toString("hex")).toBe(Buffer.from(digest).toString("hex"))
})

it("is signed by the address it names, with the same bytes each time", () => {
  const make = () => Effect.runSync(makeAttestation(crypto, claims, { publicKey, sign }))
  const made = make()
  expect(make()).toEqual(made)
  const bytes = Buffer.from(made.signature.slice(2), "hex")
  expect(bytes).toHaveLength(65)
  const recovered = secp256k1.recoverPublicKey(
    Uint8Array.of(bytes[64]! - 27, ...bytes.subarray(0, 64)),
    attestationDigest(crypto, made.payload),
    { prehash: false }
  )
  expect(addressOf(crypto, secp256k1.Point.fromBytes(recovered).toBytes(false))).toBe(made.payload.facilitator)
})

it("writes addresses with the checksum of EIP-55", () => {
  // A known pair: the private key 1.
  const one = secp256k1.getPublicKey(word(1n), false)
  expect(addressOf(crypto, one)).toBe("0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf")
})
