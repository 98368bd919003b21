// The binding's test vectors: the signed bytes of each case, with public seeds. Built by the general XDR encoder and by
// another library's ed25519 than the facilitator's, so that they check both.
// `node test/plugins/x402-batch/vectors.ts` writes them to this folder.
import { writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { hash, Keypair, StrKey } from "@stellar/stellar-sdk"
import {
  addressValue,
  bytesValue,
  encodeValue,
  i128Value,
  symbolValue,
  u64Value,
  type Value,
  vecValue
} from "../../../kernel/stellar/Value.ts"
import { type ChannelConfig, configValue, domains, networkIdOf } from "../../../plugins/x402-batch/batchCodec.ts"

const seedOf = (n: number) => Buffer.alloc(32, n)
const keyOf = (n: number) => Keypair.fromRawEd25519Seed(seedOf(n))
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex")
const contractOf = (n: number) => StrKey.encodeContract(new Uint8Array(32).fill(n))

const passphrases = ["Test SDF Network ; September 2015", "Public Global Stellar Network ; September 2015"]

interface Case {
  readonly name: string
  readonly passphrase: string
  readonly contract: string
  readonly config: ChannelConfig
  readonly maxClaimableAmount: bigint
  readonly totalClaimed: bigint
  readonly refundAmount: bigint
  readonly refundNonce: bigint
  /** Used in the claim's and the refund's signature. */
  readonly expiresAt: number
}

const [testnet, pubnet] = passphrases as [string, string]
const config: ChannelConfig = {
  payer: keyOf(1).publicKey(),
  payerAuthorizer: keyOf(2).publicKey(),
  receiver: keyOf(3).publicKey(),
  receiverAuthorizer: keyOf(4).publicKey(),
  token: contractOf(8),
  withdrawDelay: 900,
  salt: "00".repeat(32)
}
const first: Case = {
  name: "a session key, the test network",
  passphrase: testnet,
  contract: contractOf(7),
  config,
  maxClaimableAmount: 5n,
  totalClaimed: 3n,
  refundAmount: 1n,
  refundNonce: 0n,
  expiresAt: 1_800_000_000
}
const cases: ReadonlyArray<Case> = [
  first,
  { ...first, name: "the same channel on the public network", passphrase: pubnet },
  { ...first, name: "the same channel in another contract", contract: contractOf(9) },
  {
    ...first,
    name: "contracts as payer and receiver, the longest delay, the largest amounts",
    config: {
      ...config,
      payer: contractOf(10),
      receiver: contractOf(11),
      withdrawDelay: 2_592_000,
      salt: "0123456789abcdef".repeat(4)
    },
    maxClaimableAmount: (1n << 127n) - 1n,
    totalClaimed: 1n << 64n,
    refundAmount: (1n << 64n) - 1n,
    refundNonce: (1n << 64n) - 1n,
    expiresAt: Number.MAX_SAFE_INTEGER
  }
]

const signedBy = (seed: number, preimage: Uint8Array) => {
  const digest = hash(preimage)
  return { preimage: hex(preimage), digest: hex(digest), signature: hex(keyOf(seed).sign(Buffer.from(digest))) }
}

const vectorOf = (one: Case) => {
  const networkId = networkIdOf(one.passphrase)
  const preimage = (domain: string, rest: ReadonlyArray<Value>) =>
    encodeValue(vecValue([symbolValue(domain), bytesValue(networkId), addressValue(one.contract), ...rest]))
  const channel = preimage(domains.channel, [configValue(one.config)])
  const id = bytesValue(hash(channel))
  const max = i128Value(one.maxClaimableAmount)
  const totals = vecValue([vecValue([id, max, i128Value(one.totalClaimed)])])
  const refund = [id, i128Value(one.refundAmount), u64Value(one.refundNonce), u64Value(BigInt(one.expiresAt))]
  return {
    name: one.name,
    passphrase: one.passphrase,
    networkId: hex(networkId),
    contract: one.contract,
    config: one.config,
    configXdr: hex(encodeValue(configValue(one.config))),
    channel: { preimage: hex(channel), id: hex(hash(channel)) },
    maxClaimableAmount: String(one.maxClaimableAmount),
    voucher: signedBy(2, preimage(domains.voucher, [id, max])),
    totalClaimed: String(one.totalClaimed),
    claim: signedBy(4, preimage(domains.claim, [totals, u64Value(BigInt(one.expiresAt))])),
    refundAmount: String(one.refundAmount),
    refundNonce: String(one.refundNonce),
    expiresAt: one.expiresAt,
    refund: signedBy(4, preimage(domains.refund, refund))
  }
}

export const vectors = () => ({
  note: "Seeds are public. Every preimage is the XDR of one ScVal; a digest is its sha256; signatures are raw ed25519.",
  seeds: { payerAuthorizer: hex(seedOf(2)), receiverAuthorizer: hex(seedOf(4)) },
  vectors: cases.map(vectorOf)
})

export const vectorsFile = fileURLToPath(new URL("vectors.json", import.meta.url))
export const vectorsText = (): string => `${JSON.stringify(vectors(), null, 2)}\n`

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(vectorsFile, vectorsText())
