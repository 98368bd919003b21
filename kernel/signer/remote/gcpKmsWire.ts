// Google Cloud KMS: `publicKey` and `:asymmetricSign` of a key version of the algorithm EC_SIGN_ED25519, over the raw
// bytes. A service account authenticates by a token that it signs itself (a JWT for the service's own address, RS256,
// valid an hour), which needs no other server. Bytes are sent and received with their CRC32C, which detects corruption.
import { Clock, Effect, Option, Redacted, Result, Schema } from "effect"
import { Base64, Base64Url } from "effect/encoding"
import type { RemoteSignerValues } from "../../config/RemoteSigner.ts"
import type { Crypto } from "../../platform/Crypto.ts"
import { askSigner, keyOfSpki, type MakeRemoteKey, noSignature } from "./askSigner.ts"

const audience = "https://cloudkms.googleapis.com/"
const lifeSeconds = 3_600
/** A token is renewed this long before its end. */
const marginSeconds = 300

const Credentials = Schema.fromJsonString(
  Schema.Struct({ client_email: Schema.String, private_key: Schema.String, private_key_id: Schema.String })
)
const decodeCredentials = Schema.decodeUnknownOption(Credentials)
const PublicKey = Schema.Struct({ pem: Schema.String, algorithm: Schema.Literal("EC_SIGN_ED25519") })
const Signed = Schema.Struct({
  signature: Schema.String,
  signatureCrc32c: Schema.String,
  verifiedDataCrc32c: Schema.Literal(true),
  name: Schema.String
})

const encoder = new TextEncoder()

/** CRC-32C (Castagnoli), as Google requires it: an unsigned number. */
const crc32c = (bytes: Uint8Array): number => {
  let crc = ~0
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0)
  }
  return ~crc >>> 0
}

/** A token of the service account, only for KMS, valid for an hour from now. */
const makeToken = Effect.fnUntraced(function* (
  crypto: Crypto["Service"],
  { credentials_env, secret }: RemoteSignerValues,
  nowSeconds: number
) {
  const credentials = Option.flatMap(secret(credentials_env), (json) => decodeCredentials(Redacted.value(json)))
  if (Option.isNone(credentials)) return yield* noSignature(`${credentials_env} does not hold a service account's key`)
  const { client_email: email, private_key: key, private_key_id: id } = credentials.value
  const part = (value: object) => Base64Url.encode(encoder.encode(JSON.stringify(value)))
  const claims = { iss: email, sub: email, aud: audience, iat: nowSeconds, exp: nowSeconds + lifeSeconds }
  const text = `${part({ alg: "RS256", typ: "JWT", kid: id })}.${part(claims)}`
  const signature = crypto.rsaSha256Sign(key, encoder.encode(text))
  if (signature === undefined) return yield* noSignature(`the private key in ${credentials_env} is not valid`)
  return Redacted.make(`${text}.${Base64Url.encode(signature)}`)
})

export const gcpKms: MakeRemoteKey = (values, crypto) => {
  const root = `${(values.url === "" ? audience : values.url).replace(/\/$/, "")}/v1/${values.key}`
  let cachedToken: { readonly token: Redacted.Redacted; readonly untilSeconds: number } | undefined
  const headers = Effect.gen(function* () {
    const now = Math.floor((yield* Clock.currentTimeMillis) / 1_000)
    if (cachedToken === undefined || cachedToken.untilSeconds < now)
      cachedToken = { token: yield* makeToken(crypto, values, now), untilSeconds: now + lifeSeconds - marginSeconds }
    return { authorization: `Bearer ${Redacted.value(cachedToken.token)}` }
  })
  const decode = (text: string) => Result.getOrElse(Base64.decode(text), () => new Uint8Array())
  return {
    publicKey: Effect.gen(function* () {
      const url = new URL(`${root}/publicKey`)
      const { pem } = yield* askSigner({ method: "GET", url, headers: yield* headers }, PublicKey)
      const key = keyOfSpki(decode(pem.replace(/-----[A-Z ]+-----|\s/g, "")))
      return key ?? (yield* noSignature("the key at Google is not an EC_SIGN_ED25519 key"))
    }),
    sign: Effect.fnUntraced(function* (hash) {
      const url = new URL(`${root}:asymmetricSign`)
      const body = JSON.stringify({ data: Base64.encode(hash), dataCrc32c: String(crc32c(hash)) })
      const signed = yield* askSigner({ method: "POST", url, headers: yield* headers, body }, Signed)
      const signature = decode(signed.signature)
      if (String(crc32c(signature)) !== signed.signatureCrc32c || signed.name !== values.key)
        return yield* noSignature("the answer of Google's KMS was corrupted in transit")
      return signature
    })
  }
}
