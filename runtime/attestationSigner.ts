// The signer of the draft's `facilitator-attestation` (revision 2): the address that its EIP-712 signature recovers to,
// by code that shares nothing with the plugin that signs. The draft keeps domain and types off the wire.
import { secp256k1 } from "@noble/curves/secp256k1.js"
import { keccak_256 } from "@noble/hashes/sha3.js"

const types = [
  ["version", "uint256"],
  ["network", "string"],
  ["transaction", "string"],
  ["payer", "string"],
  ["payee", "string"],
  ["asset", "string"],
  ["amount", "uint256"],
  ["facilitator", "string"],
  ["facilitatorFee", "uint256"],
  ["observedAt", "uint256"]
] as const

export interface KeptAttestation {
  readonly format: string
  readonly payload: Readonly<Record<string, string | number>>
  readonly signature: string
}

/** The lower-case address of an uncompressed public key without its first byte. */
const addressOf = (point: Uint8Array): string => `0x${Buffer.from(keccak_256(point).subarray(12)).toString("hex")}`

export const addressOfKey = ({ x = "", y = "" }: { readonly x?: string; readonly y?: string }): string =>
  addressOf(Buffer.concat([Buffer.from(x, "base64url"), Buffer.from(y, "base64url")]))

const hashOf = (text: string) => keccak_256(Buffer.from(text))
const word = (value: string | number | bigint) => Buffer.from(BigInt(value).toString(16).padStart(64, "0"), "hex")
const struct = (type: string, words: ReadonlyArray<Uint8Array>) => keccak_256(Buffer.concat([hashOf(type), ...words]))

/** The signed digest: EIP-712 over the draft's domain, `x402 receipt`, version 1, chain 1. */
export const attestationDigest = (payload: KeptAttestation["payload"]): Uint8Array => {
  const domain = struct("EIP712Domain(string name,string version,uint256 chainId)", [
    hashOf("x402 receipt"),
    hashOf("1"),
    word(1)
  ])
  const members = types.map(([name, type]) => {
    const value = payload[name]
    if (value === undefined) throw new Error(`the attestation has no ${name}`)
    return type === "string" ? hashOf(String(value)) : word(value)
  })
  const signature = types.map(([name, type]) => `${type} ${name}`).join()
  return keccak_256(Buffer.concat([Buffer.of(0x19, 1), domain, struct(`SettlementAttestation(${signature})`, members)]))
}

/** The lower-case address of the signer; throws for another format, or a signature that recovers to nothing. */
export const attestationSigner = ({ format, payload, signature }: KeptAttestation): string => {
  const bytes = Buffer.from(signature.replace(/^0x/, ""), "hex")
  if (format !== "eip712" || bytes.length !== 65)
    throw new Error("an attestation is EIP-712 with 65 bytes of signature")
  const recovery = bytes[64]! % 27
  const point = secp256k1.Signature.fromBytes(bytes.subarray(0, 64), "compact")
    .addRecoveryBit(recovery)
    .recoverPublicKey(attestationDigest(payload))
  return addressOf(point.toBytes(false).subarray(1))
}
