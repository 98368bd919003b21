// The key services, as documented: Vault's transit engine, AWS KMS, Google Cloud KMS, and the HTTPS signer that we
// specify, behind one port. Each authenticates its caller as the real one does: with a token, with a Signature Version
// 4 that is recomputed from the received request, or with a service account's signed token. A test may make them
// refuse, stay silent, or answer with another key's signature.
import { Keypair } from "@stellar/stellar-sdk"
import { Effect, Option, Redacted, type Scope } from "effect"
import * as native from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import type { RemoteSignerValues } from "../../kernel/config/RemoteSigner.ts"

export type SignerKind = "https" | "vault-transit" | "aws-kms" | "gcp-kms"
export type SignerFault = "refuses" | "silent" | "wrong" | "redirects" | undefined

export const secrets = {
  token: "signer-token-0123456789",
  awsAccessKey: "AKIDEXAMPLE",
  awsSecretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  awsSession: "session-token"
}
const region = "eu-central-1"
const awsKey = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd"
const gcpKey = "projects/p/locations/global/keyRings/r/cryptoKeys/sponsor/cryptoKeyVersions/1"
const rsa = native.generateKeyPairSync("rsa", { modulusLength: 2_048 })

/** The variables that the settings refer to. */
export const signerEnvironment = {
  SIGNER_TOKEN: secrets.token,
  AWS_ACCESS_KEY_ID: secrets.awsAccessKey,
  AWS_SECRET_ACCESS_KEY: secrets.awsSecretKey,
  AWS_SESSION_TOKEN: secrets.awsSession,
  GOOGLE_CREDENTIALS: JSON.stringify({
    client_email: "signer@p.iam.gserviceaccount.com",
    private_key: rsa.privateKey.export({ format: "pem", type: "pkcs8" }),
    private_key_id: "key-1"
  })
}

export const settingsOf = (kind: SignerKind, url: string): Record<string, string> =>
  ({
    https: { kind, url: `${url}/own` },
    "vault-transit": { kind, url, key: "sponsor", namespace: "team" },
    "aws-kms": { kind, url: `${url}/`, key: awsKey, region },
    "gcp-kms": { kind, url, key: gcpKey }
  })[kind]

/** Settings of a remote signer that name nothing. */
export const signerDefaults = {
  url: "",
  key: "",
  key_version: 0,
  mount: "transit",
  namespace: "",
  region: "",
  address: undefined,
  token_env: "SIGNER_TOKEN",
  access_key_env: "AWS_ACCESS_KEY_ID",
  secret_key_env: "AWS_SECRET_ACCESS_KEY",
  session_token_env: "AWS_SESSION_TOKEN",
  credentials_env: "GOOGLE_CREDENTIALS"
}

/** A signer's settings with its credentials from an environment. */
export const signerValues = (
  kind: SignerKind,
  url: string,
  environment: Readonly<Record<string, string | undefined>>,
  address?: string
): RemoteSignerValues => ({
  ...signerDefaults,
  ...settingsOf(kind, url),
  kind,
  address,
  secret: (variable) => Option.map(Option.fromUndefinedOr(environment[variable]), (text) => Redacted.make(text))
})

const spkiOf = (pair: Keypair) =>
  Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), pair.rawPublicKey()]).toString("base64")

const hmac = (key: native.BinaryLike, text: string) => native.createHmac("sha256", key).update(text).digest()
const sha256 = (text: string) => native.createHash("sha256").update(text).digest("hex")

/** Recomputes the AWS signature from the received request and compares. */
const isSignedV4 = (request: IncomingMessage, body: string): boolean => {
  const found = /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\S+), SignedHeaders=(\S+), Signature=([0-9a-f]{64})$/.exec(
    request.headers.authorization ?? ""
  )
  if (found === null) return false
  const [, accessKey, scope, names, signature] = found as unknown as [string, string, string, string, string]
  const stamp = String(request.headers["x-amz-date"])
  const age = Math.abs(Date.now() - Date.parse(stamp.replace(/(....)(..)(..T..)(..)/, "$1-$2-$3:$4:")))
  const required = ["content-type", "host", "x-amz-date", "x-amz-security-token", "x-amz-target"]
  const lines = names.split(";").map((name) => `${name}:${String(request.headers[name]).trim()}\n`)
  const canonical = ["POST", "/", "", lines.join(""), names, sha256(body)].join("\n")
  const toSign = ["AWS4-HMAC-SHA256", stamp, scope, sha256(canonical)].join("\n")
  const [date, ...rest] = scope.split("/")
  const key = rest.reduce<native.BinaryLike>((k, part) => hmac(k, part), hmac(`AWS4${secrets.awsSecretKey}`, date!))
  return (
    accessKey === secrets.awsAccessKey &&
    scope === `${stamp.slice(0, 8)}/${region}/kms/aws4_request` &&
    names === required.join(";") &&
    age < 900_000 &&
    request.headers["x-amz-security-token"] === secrets.awsSession &&
    hmac(key, toSign).toString("hex") === signature
  )
}

/** True if the bearer token was signed by the service account for KMS and is valid now. */
const isServiceAccount = (authorization: string | undefined): boolean => {
  const [, head = "", claims = "", signature = ""] =
    /^Bearer ([\w-]+)\.([\w-]+)\.([\w-]+)$/.exec(authorization ?? "") ?? []
  const of = (part: string) => JSON.parse(Buffer.from(part, "base64url").toString() || "{}")
  const { aud, exp, iat, iss, sub } = of(claims)
  const now = Date.now() / 1_000
  return (
    of(head).alg === "RS256" &&
    of(head).kid === "key-1" &&
    aud === "https://cloudkms.googleapis.com/" &&
    iss === sub &&
    exp - iat <= 3_600 &&
    iat <= now + 60 &&
    exp > now &&
    native.verify("sha256", Buffer.from(`${head}.${claims}`), rsa.publicKey, Buffer.from(signature, "base64url"))
  )
}

const castagnoli = Array.from({ length: 256 }, (_, n) => {
  let c = n
  for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ 0x82f63b78 : c >>> 1
  return c >>> 0
})
const crc32c = (bytes: Uint8Array): string =>
  String((bytes.reduce((crc, byte) => (crc >>> 8) ^ castagnoli[(crc ^ byte) & 255]!, 0xffffffff) ^ 0xffffffff) >>> 0)

type Reply = readonly [status: number, body: unknown]

/** The answers of each service: its public key, or a signature of the data it receives. */
const answers = (pair: Keypair, sign: (bytes: Buffer) => Buffer) => ({
  https: (request: IncomingMessage, body: string): Reply => {
    if (request.headers.authorization !== `Bearer ${secrets.token}`) return [401, {}]
    if (request.method === "GET") return [200, { address: pair.publicKey() }]
    const { address, hash, message } = JSON.parse(body)
    if (address !== pair.publicKey()) return [400, {}]
    if (message !== undefined) return [200, { signature: sign(Buffer.from(message, "base64")).toString("base64") }]
    if (!/^[0-9a-f]{64}$/.test(hash)) return [400, {}]
    return [200, { signature: sign(Buffer.from(hash, "hex")).toString("base64") }]
  },
  "vault-transit": (request: IncomingMessage, body: string): Reply => {
    if (request.headers["x-vault-token"] !== secrets.token) return [403, { errors: ["permission denied"] }]
    if (request.headers["x-vault-namespace"] !== "team") return [404, { errors: [] }]
    const keys = { "1": { name: "ed25519", public_key: Buffer.from(pair.rawPublicKey()).toString("base64") } }
    if (request.url === "/v1/transit/keys/sponsor" && request.method === "GET")
      return [200, { data: { type: "ed25519", latest_version: 1, keys, name: "sponsor" } }]
    if (request.url !== "/v1/transit/sign/sponsor" || request.method !== "POST") return [404, { errors: [] }]
    const { input, key_version = 1 } = JSON.parse(body)
    if (key_version !== 1) return [400, { errors: ["no such version"] }]
    const signature = `vault:v1:${sign(Buffer.from(input, "base64")).toString("base64")}`
    return [200, { data: { signature, key_version: 1 } }]
  },
  "aws-kms": (request: IncomingMessage, body: string): Reply => {
    const awsError = (__type: string): Reply => [400, { __type, message: "…" }]
    if (request.method !== "POST" || request.url !== "/") return awsError("UnknownOperationException")
    if (!isSignedV4(request, body)) return awsError("InvalidSignatureException")
    const { KeyId, Message, MessageType, SigningAlgorithm } = JSON.parse(body)
    if (KeyId !== awsKey) return awsError("NotFoundException")
    if (request.headers["x-amz-target"] === "TrentService.GetPublicKey") {
      const kind = { KeySpec: "ECC_NIST_EDWARDS25519", SigningAlgorithms: ["ED25519_SHA_512", "ED25519_PH_SHA_512"] }
      return [200, { KeyId, PublicKey: spkiOf(pair), KeyUsage: "SIGN_VERIFY", ...kind }]
    }
    if (request.headers["x-amz-target"] !== "TrentService.Sign") return awsError("UnknownOperationException")
    if (MessageType !== "RAW" || SigningAlgorithm !== "ED25519_SHA_512") return awsError("ValidationException")
    return [200, { KeyId, Signature: sign(Buffer.from(Message, "base64")).toString("base64"), SigningAlgorithm }]
  },
  "gcp-kms": (request: IncomingMessage, body: string): Reply => {
    if (!isServiceAccount(request.headers.authorization)) return [401, { error: { status: "UNAUTHENTICATED" } }]
    if (request.url === `/v1/${gcpKey}/publicKey`) {
      const pem = `-----BEGIN PUBLIC KEY-----\n${spkiOf(pair)}\n-----END PUBLIC KEY-----\n`
      return [200, { pem, algorithm: "EC_SIGN_ED25519", name: gcpKey, protectionLevel: "SOFTWARE" }]
    }
    if (request.url !== `/v1/${gcpKey}:asymmetricSign`) return [404, { error: { status: "NOT_FOUND" } }]
    const { data, dataCrc32c } = JSON.parse(body)
    const bytes = Buffer.from(data, "base64")
    if (dataCrc32c !== crc32c(bytes)) return [400, { error: { status: "INVALID_ARGUMENT" } }]
    const signature = sign(bytes)
    const checked = { signatureCrc32c: crc32c(signature), verifiedDataCrc32c: true, name: gcpKey }
    return [200, { signature: signature.toString("base64"), ...checked }]
  }
})

export interface TestSigners {
  readonly url: string
  /** The key pair of all services. */
  readonly pair: Keypair
  /** Requests so far. */
  readonly asked: () => number
  readonly setFault: (fault: SignerFault) => void
}

/** All services on one port of this machine, with one key. */
export const startSigners: Effect.Effect<TestSigners, never, Scope.Scope> = Effect.gen(function* () {
  const pair = Keypair.random()
  const other = Keypair.random()
  let fault: SignerFault
  let asked = 0
  const kinds = answers(pair, (bytes) => Buffer.from((fault === "wrong" ? other : pair).sign(bytes)))
  const kindOf = ({ url = "" }: IncomingMessage): SignerKind =>
    url.startsWith("/own/")
      ? "https"
      : url.startsWith("/v1/transit/")
        ? "vault-transit"
        : url.startsWith("/v1/projects/")
          ? "gcp-kms"
          : "aws-kms"
  const handle = (request: IncomingMessage, response: ServerResponse, body: string) => {
    asked++
    if (fault === "silent") return
    if (fault === "redirects") return void response.writeHead(307, { location: `http://127.0.0.1:1/` }).end()
    const [status, value] = fault === "refuses" ? [503, {}] : kinds[kindOf(request)](request, body)
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value))
  }
  const server = createServer((request, response) => {
    let body = ""
    request.on("data", (chunk) => void (body += String(chunk))).on("end", () => handle(request, response, body))
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () => Effect.sync(() => (server.close(), server.closeAllConnections()))
  )
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    pair,
    asked: () => asked,
    setFault: (next) => void (fault = next)
  }
})
