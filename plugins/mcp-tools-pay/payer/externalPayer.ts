// A remote payer over HTTPS: `GET /address` → `{address}`, and `POST /sign-auth-entry` with `{network, authEntryXdr}` →
// `{signedAuthEntryXdr}` (S222, S250). The address is cached. The caller verifies the signed entry against its request;
// a timeout, a failed connection or an invalid answer counts as not signed.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Effect, Option, Redacted, Result, Schema } from "effect"
import { Base64 } from "effect/encoding"
import { Network } from "../../../kernel/config/Network.ts"
import { Settings } from "../../../kernel/config/Settings.ts"
import { toolError, fetchError, signerVariables, spelled, ToolsConfig, Upstreams } from "../../mcp-tools/contract.ts"
import { Payer } from "./Payer.ts"

const caller = "the signer"
const malformed = toolError("PAYMENT_REJECTED", "the signer's answer is invalid")
const refused = (status: number) =>
  status >= 500 || status === 429
    ? toolError("UPSTREAM_TIMEOUT", "the signer is unavailable and nothing was signed; retry later", { status })
    : toolError("PAYMENT_REJECTED", "the signer refused to sign", { status })

const decodeAddress = Schema.decodeUnknownOption(Schema.Struct({ address: Schema.String }))
const decodeSigned = Schema.decodeUnknownOption(Schema.Struct({ signedAuthEntryXdr: Schema.String }))

/** Sends one request to the signer. Any answer except 200 with JSON counts as none. */
const makeAsk = Effect.gen(function* () {
  const { signer } = yield* ToolsConfig
  const token = (yield* Settings).secret(signerVariables.token)
  const upstream = (yield* Upstreams).within({ allowLocal: true, allowPlain: false, isStranger: false })
  const headers = {
    accept: "application/json",
    "content-type": "application/json",
    ...Option.match(token, {
      onNone: () => ({}),
      onSome: (value) => ({ authorization: `Bearer ${Redacted.value(value)}` })
    })
  }
  return Effect.fnUntraced(function* (path: string, body?: unknown) {
    const answer = yield* Effect.mapError(
      upstream.fetch(new URL(`${signer.externalUrl}${path}`), {
        method: body === undefined ? "GET" : "POST",
        headers,
        ...(body === undefined ? {} : { body: new TextEncoder().encode(JSON.stringify(body)) })
      }),
      fetchError(caller)
    )
    if (answer.status !== 200) return yield* refused(answer.status)
    return yield* Effect.mapError(upstream.parse(answer.body), () => malformed)
  })
})

export const externalPayer = Effect.gen(function* () {
  const ask = yield* makeAsk
  // In the signer's spelling.
  const network = (yield* spelled)((yield* Network).id)
  let known: string | undefined
  const key = Effect.gen(function* () {
    if (known === undefined) {
      const address = Option.map(decodeAddress(yield* ask("/address")), ({ address }) => address)
      if (Option.isNone(address) || !StrKey.isValidEd25519PublicKey(address.value)) return yield* malformed
      known = address.value
    }
    return known
  })
  return Payer.of({
    key,
    address: key,
    sign: Effect.fnUntraced(function* ({ entryXdr }) {
      const signed = decodeSigned(yield* ask("/sign-auth-entry", { network, authEntryXdr: Base64.encode(entryXdr) }))
      const bytes = Option.flatMap(signed, ({ signedAuthEntryXdr }) =>
        Result.getSuccess(Base64.decode(signedAuthEntryXdr))
      )
      return Option.isNone(bytes) ? yield* malformed : bytes.value
    })
  })
})
