// HashiCorp Vault's transit engine (and OpenBao's): `GET /v1/{mount}/keys/{key}` returns the public key, and `POST
// /v1/{mount}/sign/{key}` signs the given bytes unhashed, since ed25519 keys take no digest. The token is sent in
// `X-Vault-Token`. A signature is `vault:v{version}:{base64}`.
import { Effect, Option, Redacted, Result, Schema } from "effect"
import { Base64 } from "effect/encoding"
import type { RemoteSignerValues } from "../../config/RemoteSigner.ts"
import { askSigner, type MakeRemoteKey, noSignature } from "./askSigner.ts"

const Key = Schema.Struct({
  data: Schema.Struct({
    type: Schema.Literal("ed25519"),
    latest_version: Schema.Int,
    keys: Schema.Record(Schema.String, Schema.Struct({ public_key: Schema.String }))
  })
})
const Signed = Schema.Struct({ data: Schema.Struct({ signature: Schema.String }) })

const headersOf = ({ namespace, secret, token_env }: RemoteSignerValues) => ({
  "x-vault-request": "true",
  ...(namespace === "" ? {} : { "x-vault-namespace": namespace }),
  ...Option.match(secret(token_env), {
    onNone: () => ({}),
    onSome: (token) => ({ "x-vault-token": Redacted.value(token) })
  })
})

export const vaultTransit: MakeRemoteKey = (values) => {
  const at = (operation: string) =>
    new URL(`${values.url.replace(/\/$/, "")}/v1/${values.mount}/${operation}/${encodeURIComponent(values.key)}`)
  // The newest version at the first request stays in use: a version that Vault makes later is another account.
  let version = values.key_version
  return {
    publicKey: Effect.gen(function* () {
      const { data } = yield* askSigner({ method: "GET", url: at("keys"), headers: headersOf(values) }, Key)
      if (version === 0) version = data.latest_version
      const encoded = data.keys[String(version)]?.public_key ?? ""
      const key = Result.getOrUndefined(Base64.decode(encoded))
      return key?.length === 32 ? key : yield* noSignature(`Vault has no version ${version} of the key`)
    }),
    sign: Effect.fnUntraced(function* (hash) {
      const body = JSON.stringify({ input: Base64.encode(hash), ...(version === 0 ? {} : { key_version: version }) })
      const { data } = yield* askSigner({ method: "POST", url: at("sign"), headers: headersOf(values), body }, Signed)
      const [, signature = ""] = /^vault:v\d+:(.+)$/.exec(data.signature) ?? []
      return Result.getOrElse(Base64.decode(signature), () => new Uint8Array())
    })
  }
}
