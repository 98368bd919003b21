// AWS KMS: `GetPublicKey` and `Sign` for a key of the kind ECC_NIST_EDWARDS25519, by ED25519_SHA_512 over the raw
// bytes; this is the ledger's ed25519. Requests are signed with Signature Version 4: an HMAC over the request as
// written, under a key that is derived from the secret for the day, the region and the service.
import { DateTime, Clock, Effect, Option, Redacted, Result, Schema } from "effect"
import { Base64, Hex } from "effect/encoding"
import type { RemoteSignerValues } from "../../config/RemoteSigner.ts"
import type { Crypto } from "../../platform/Crypto.ts"
import { askSigner, keyOfSpki, type MakeRemoteKey, noSignature, type Question } from "./askSigner.ts"

const service = "kms"
const contentType = "application/x-amz-json-1.1"

const PublicKey = Schema.Struct({ PublicKey: Schema.String, SigningAlgorithms: Schema.Array(Schema.String) })
const Signed = Schema.Struct({ Signature: Schema.String, SigningAlgorithm: Schema.Literal("ED25519_SHA_512") })

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

interface AwsCredentials {
  readonly accessKey: string
  readonly secretKey: string
  readonly sessionToken?: string | undefined
}

/** A POST to the root of the service, with the headers that authenticate it. `at` is Unix milliseconds. */
const signedRequest = (
  crypto: Crypto["Service"],
  { accessKey, secretKey, sessionToken }: AwsCredentials,
  request: { readonly url: URL; readonly region: string; readonly target: string; readonly body: string },
  at: number
): Question => {
  const { body, region, target, url } = request
  const stamp = DateTime.formatIso(DateTime.makeUnsafe(at)).replace(/[-:]|\.\d{3}/g, "")
  const scope = `${stamp.slice(0, 8)}/${region}/${service}/aws4_request`
  const headers: Record<string, string> = {
    "x-amz-date": stamp,
    "x-amz-target": target,
    ...(sessionToken === undefined ? {} : { "x-amz-security-token": sessionToken })
  }
  const all = Object.entries({ ...headers, "content-type": contentType, host: url.host }).sort(([a], [b]) =>
    a < b ? -1 : 1
  )
  const names = all.map(([name]) => name).join(";")
  const hash = (text: string) => Hex.encode(crypto.sha256(bytesOf(text)))
  const written = ["POST", url.pathname, "", ...all.map(([name, value]) => `${name}:${value}`), "", names, hash(body)]
  const toSign = ["AWS4-HMAC-SHA256", stamp, scope, hash(written.join("\n"))].join("\n")
  const key = scope.split("/").reduce((key, part) => crypto.hmacSha256(key, bytesOf(part)), bytesOf(`AWS4${secretKey}`))
  const signature = Hex.encode(crypto.hmacSha256(key, bytesOf(toSign)))
  const caller = `Credential=${accessKey}/${scope}, SignedHeaders=${names}`
  const authorization = `AWS4-HMAC-SHA256 ${caller}, Signature=${signature}`
  return { method: "POST", url, headers: { ...headers, authorization }, body, contentType }
}

const credentialsOf = ({ access_key_env, secret, secret_key_env, session_token_env }: RemoteSignerValues) => {
  const read = (variable: string) => Option.map(secret(variable), Redacted.value)
  return Option.match(Option.all([read(access_key_env), read(secret_key_env)]), {
    onNone: () => Effect.fail(noSignature(`${access_key_env} and ${secret_key_env} are not both set`)),
    onSome: ([accessKey, secretKey]) =>
      Effect.succeed({ accessKey, secretKey, sessionToken: Option.getOrUndefined(read(session_token_env)) })
  })
}

export const awsKms: MakeRemoteKey = (values, crypto) => {
  const url = new URL(values.url === "" ? `https://kms.${values.region}.amazonaws.com/` : values.url)
  const call = Effect.fnUntraced(function* <A>(operation: string, body: object, answer: Schema.Codec<A, any>) {
    const credentials = yield* credentialsOf(values)
    const target = `TrentService.${operation}`
    const request = { url, region: values.region, target, body: JSON.stringify({ KeyId: values.key, ...body }) }
    return yield* askSigner(signedRequest(crypto, credentials, request, yield* Clock.currentTimeMillis), answer)
  })
  const decode = (text: string) => Result.getOrElse(Base64.decode(text), () => new Uint8Array())
  return {
    publicKey: Effect.gen(function* () {
      const { PublicKey: encoded, SigningAlgorithms } = yield* call("GetPublicKey", {}, PublicKey)
      const key = SigningAlgorithms.includes("ED25519_SHA_512") ? keyOfSpki(decode(encoded)) : undefined
      return key ?? (yield* noSignature("the key at AWS is not an ECC_NIST_EDWARDS25519 key"))
    }),
    sign: Effect.fnUntraced(function* (hash) {
      const body = { Message: Base64.encode(hash), MessageType: "RAW", SigningAlgorithm: "ED25519_SHA_512" }
      return decode((yield* call("Sign", body, Signed)).Signature)
    })
  }
}
