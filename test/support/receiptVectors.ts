// `node test/support/receiptVectors.ts` writes `test/plugins/receipts/vectors.json`: receipts and attestations of fixed
// keys, made without the plugin's code from the plugin's README, by node:crypto, noble, the canonical JSON of
// `verify.mjs` and the digest of `runtime/attestationSigner.ts`.
import { secp256k1 } from "@noble/curves/secp256k1.js"
import { keccak_256 } from "@noble/hashes/sha3.js"
import { createHash, createPrivateKey, createPublicKey, sign } from "node:crypto"
import { writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { canonical } from "../../examples/receipts/verify.mjs"
import { attestationDigest } from "../../runtime/attestationSigner.ts"

const b64u = (value: string | Uint8Array): string => Buffer.from(value).toString("base64url")
const sha = (value: string | Uint8Array): Buffer => createHash("sha256").update(value).digest()
const prefix = Buffer.from("302e020100300506032b657004220420", "hex")

const seed = sha("tollkeeper receipt vector")
const secp = sha("tollkeeper attestation vector")
const privateKey = createPrivateKey({ key: Buffer.concat([prefix, seed]), format: "der", type: "pkcs8" })
const publicKey = Buffer.from(createPublicKey(privateKey).export({ format: "jwk" }).x!, "base64url")
const did = "did:web:pay.example%3A8443"
const kid = `${did}#receipt-${sha(publicKey).toString("hex").slice(0, 16)}`

const point = secp256k1.getPublicKey(secp, false)
const address = Buffer.from(keccak_256(point.subarray(1)).subarray(12)).toString("hex")
const checksum = Buffer.from(keccak_256(Buffer.from(address))).toString("hex")
const checked = (digit: string, at: number) => (Number.parseInt(checksum[at]!, 16) > 7 ? digit.toUpperCase() : digit)
const facilitator = `0x${[...address].map(checked).join("")}`

const base = {
  v: 1,
  iss: did,
  network: "stellar:testnet",
  transaction: sha("a transaction").toString("hex"),
  ledger: 1_234_567,
  closedAt: 1_790_000_000,
  payer: "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H",
  payTo: "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ",
  asset: "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA",
  amount: "10000",
  scheme: "exact",
  settlement: "0190f3a2-7c1e-7000-8000-0123456789ab",
  attempts: 1,
  fee: "52311"
}

const cases: ReadonlyArray<readonly [string, object]> = [
  ["the least that a receipt says", base],
  [
    "with a resource and an identifier",
    {
      ...base,
      resource: "https://seller.example/weather?city=R%C4%ABga",
      identifierHash: `sha256:${sha("pay_1").toString("hex")}`
    }
  ],
  [
    "text beyond ASCII, escapes and a long resource's hash",
    {
      ...base,
      scheme: "upto",
      resourceHash: `sha256:${sha("x".repeat(300)).toString("hex")}`,
      amount: "170141183460469231731687303715884105727",
      resource: 'https://seller.example/"\\\u0001é😀'
    }
  ]
]

const vectorOf = (name: string, claims: any) => {
  const header = canonical({ alg: "EdDSA", kid, typ: "tollkeeper-receipt+jws" })
  const signed = `${b64u(header)}.${b64u(canonical(claims))}`
  const payload = {
    version: 1,
    network: claims.network,
    transaction: claims.transaction,
    payer: claims.payer,
    payee: claims.payTo,
    asset: claims.asset,
    amount: claims.amount,
    facilitator,
    facilitatorFee: "0",
    observedAt: String(claims.closedAt)
  }
  const digest = attestationDigest(payload)
  const recovered = secp256k1.sign(digest, secp, { prehash: false, format: "recovered" })
  const signature = `0x${Buffer.from([...recovered.subarray(1), 27 + recovered[0]!]).toString("hex")}`
  return {
    name,
    claims,
    receipt: `${signed}.${b64u(sign(null, Buffer.from(signed), privateKey))}`,
    digest: Buffer.from(digest).toString("hex"),
    attestation: { format: "eip712", payload, signature }
  }
}

/** The vectors: keys, and for each case claims, receipt, digest and attestation. */
export const makeVectors = () => ({
  receiptSeed: seed.toString("hex"),
  attestationSecret: secp.toString("hex"),
  kid,
  did: {
    id: did,
    verificationMethod: [
      {
        id: kid,
        type: "JsonWebKey2020",
        controller: did,
        publicKeyJwk: { kty: "OKP", crv: "Ed25519", x: b64u(publicKey) },
        validFrom: 0
      },
      {
        id: `${did}#attestation-vector`,
        type: "JsonWebKey2020",
        controller: did,
        publicKeyJwk: { kty: "EC", crv: "secp256k1", x: b64u(point.subarray(1, 33)), y: b64u(point.subarray(33)) },
        validFrom: 0
      }
    ]
  },
  vectors: cases.map(([name, claims]) => vectorOf(name, claims))
})

export const vectorsFile = fileURLToPath(new URL("../plugins/receipts/vectors.json", import.meta.url))
if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(vectorsFile, `${JSON.stringify(makeVectors(), null, 2)}\n`)
