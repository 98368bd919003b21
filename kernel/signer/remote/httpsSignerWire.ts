// The HTTPS signer with our own protocol: `GET {url}/address` → `{address}`, and `POST {url}/sign` with `{address,
// hash}` → `{signature}`: the address as G…, the hash as 64 hex digits, the signature in base64. A message of receipts
// is not a hash, so it is sent as `{address, message}`, in base64. A configured token is sent as a bearer token.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Effect, Option, Redacted, Result, Schema } from "effect"
import { Base64, Hex } from "effect/encoding"
import type { RemoteSignerValues } from "../../config/RemoteSigner.ts"
import { askSigner, type MakeRemoteKey, noSignature } from "./askSigner.ts"

const Address = Schema.Struct({ address: Schema.String })
const Signed = Schema.Struct({ signature: Schema.String })

const hashBytes = 32

const headersOf = ({ secret, token_env }: RemoteSignerValues) =>
  Option.match(secret(token_env), {
    onNone: () => ({}),
    onSome: (token) => ({ authorization: `Bearer ${Redacted.value(token)}` })
  })

export const httpsSigner: MakeRemoteKey = (values) => {
  const at = (path: string) => new URL(`${values.url.replace(/\/$/, "")}${path}`)
  const address = Effect.suspend(() =>
    askSigner({ method: "GET", url: at("/address"), headers: headersOf(values) }, Address)
  ).pipe(
    Effect.flatMap(({ address }) =>
      StrKey.isValidEd25519PublicKey(address)
        ? Effect.succeed(address)
        : Effect.fail(noSignature("the external signer's address is not a URL"))
    )
  )
  return {
    publicKey: Effect.map(address, (text) => StrKey.decodeEd25519PublicKey(text)),
    sign: Effect.fnUntraced(function* (hash) {
      const own = values.address ?? (yield* address)
      const signed = hash.length === hashBytes ? { hash: Hex.encode(hash) } : { message: Base64.encode(hash) }
      const body = JSON.stringify({ address: own, ...signed })
      const { signature } = yield* askSigner(
        { method: "POST", url: at("/sign"), headers: headersOf(values), body },
        Signed
      )
      return Result.getOrElse(Base64.decode(signature), () => new Uint8Array())
    })
  }
}
