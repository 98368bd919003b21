// The draft extension `facilitator-attestation`, revision 2: an EIP-712 payload in the draft's domain, signed with
// secp256k1. The draft's types are never on the wire. The draft does not define Stellar's payer yet; our payer is the
// debited account, as in our own receipt.
import { Effect } from "effect"
import { Hex } from "effect/encoding"
import type { Crypto } from "../../kernel/platform/Crypto.ts"
import type { Attestation, AttestationPayload, ReceiptClaims } from "./contract.ts"
import { joinedBytes } from "../../kernel/stellar/joinBytes.ts"

type Keccak = Pick<Crypto["Service"], "keccak256">

const text = new TextEncoder()

/** Members of the draft's type, in the draft's order. */
const members = [
  ["uint256", "version"],
  ["string", "network"],
  ["string", "transaction"],
  ["string", "payer"],
  ["string", "payee"],
  ["string", "asset"],
  ["uint256", "amount"],
  ["string", "facilitator"],
  ["uint256", "facilitatorFee"],
  ["uint256", "observedAt"]
] as const

const typeText = `SettlementAttestation(${members.map(([type, name]) => `${type} ${name}`).join(",")})`
const domainText = "EIP712Domain(string name,string version,uint256 chainId)"

/** A word of 32 bytes, big-endian. */
const uint256 = (value: bigint): Uint8Array => {
  const decoded = Hex.decode(value.toString(16).padStart(64, "0"))
  if (decoded._tag === "Failure" || decoded.success.length !== 32) throw new RangeError("beyond uint256")
  return decoded.success
}

/** The digest that is signed: keccak256 of 0x1901, the domain's hash and the payload's hash. */
export const attestationDigest = ({ keccak256 }: Keccak, payload: AttestationPayload): Uint8Array => {
  const string = (value: string) => keccak256(text.encode(value))
  const domain = keccak256(joinedBytes(string(domainText), string("x402 receipt"), string("1"), uint256(1n)))
  const words = members.map(([type, name]) =>
    type === "string" ? string(String(payload[name])) : uint256(BigInt(payload[name]))
  )
  return keccak256(joinedBytes(Uint8Array.of(0x19, 0x01), domain, keccak256(joinedBytes(string(typeText), ...words))))
}

/** The EIP-55 address of an uncompressed public key. */
export const addressOf = ({ keccak256 }: Keccak, publicKey: Uint8Array): string => {
  const address = Hex.encode(keccak256(publicKey.slice(1)).slice(12))
  const checksum = Hex.encode(keccak256(text.encode(address)))
  const isUpper = (at: number) => Number.parseInt(checksum[at]!, 16) >= 8
  return `0x${[...address].map((digit, at) => (isUpper(at) ? digit.toUpperCase() : digit)).join("")}`
}

interface AttestationKey<E> {
  readonly publicKey: Uint8Array
  /** r‖s‖v over a digest. */
  readonly sign: (digest: Uint8Array) => Effect.Effect<Uint8Array, E>
}

export const makeAttestation = <E>(
  crypto: Keccak,
  claims: ReceiptClaims,
  key: AttestationKey<E>
): Effect.Effect<Attestation, E> => {
  const payload: AttestationPayload = {
    version: 1,
    network: claims.network,
    transaction: claims.transaction,
    payer: claims.payer,
    payee: claims.payTo,
    asset: claims.asset,
    amount: claims.amount,
    facilitator: addressOf(crypto, key.publicKey),
    facilitatorFee: "0",
    observedAt: String(claims.closedAt)
  }
  return Effect.map(key.sign(attestationDigest(crypto, payload)), (signature) => ({
    format: "eip712",
    payload,
    signature: `0x${Hex.encode(signature)}`
  }))
}

/** The extension's `schema`. It is short because the draft describes the members in words. */
export const attestationSchema = {
  type: "object",
  properties: {
    attestation: {
      type: "object",
      properties: { format: { const: "eip712" }, payload: { type: "object" }, signature: { type: "string" } },
      required: ["format", "payload", "signature"]
    }
  },
  required: ["attestation"]
}
