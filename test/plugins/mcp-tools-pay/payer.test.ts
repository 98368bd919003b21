import { describe, expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Keypair, xdr } from "@stellar/stellar-sdk"
import { Effect, Layer, Option, Redacted } from "effect"
import { writeFileSync, readFileSync } from "node:fs"
import { Network } from "../../../kernel/config/Network.ts"
import { Settings } from "../../../kernel/config/Settings.ts"
import { WireVocabulary } from "../../../kernel/config/WireVocabulary.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Outbound, type OutboundRequest } from "../../../kernel/platform/Outbound.ts"
import {
  entryWith,
  isSignedAs,
  payloadOf,
  signatureValue,
  type Transfer
} from "../../../plugins/mcp-tools-pay/payer/authorization.ts"
import { externalPayer } from "../../../plugins/mcp-tools-pay/payer/externalPayer.ts"
import { openKeystore } from "../../../plugins/mcp-tools-pay/payer/keystore.ts"
import { readSeed, seedPayer } from "../../../plugins/mcp-tools-pay/payer/seedPayer.ts"
import { ToolsConfig, Upstreams } from "../../../plugins/mcp-tools/contract.ts"
import { Payer } from "../../../plugins/mcp-tools-pay/payer/Payer.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"
import { testPassphrase } from "../../support/scriptedRpc.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { sealed } from "./payWorld.ts"

const platform = Layer.merge(NodeCrypto.layer, NodeServices.layer)
const agent = Keypair.random()
const other = Keypair.random()
const transfer: Transfer = { asset: testnetUsdc, payTo: other.publicKey(), amount: 2_000n }
const authorization = { payer: agent.publicKey(), nonce: -5n, expirationLedger: 1_234, protocolVersion: 28 }
const unsigned = entryWith(transfer, authorization, xdr.ScVal.scvVoid())
const payloadWith = (crypto: Crypto["Service"]) =>
  payloadOf(crypto, unsigned, authorization.expirationLedger, testPassphrase)
const signedBy = (
  pair: Keypair,
  payload: Uint8Array,
  change: { readonly transfer?: Transfer; readonly nonce?: bigint; readonly expirationLedger?: number } = {}
) =>
  entryWith(
    change.transfer ?? transfer,
    { ...authorization, ...change },
    signatureValue(pair.rawPublicKey(), pair.sign(Buffer.from(payload)))
  ).toXdr()

/** A signer as seen by the payer: a stub of the port. */
const signerAt = (
  url: string,
  answer: (path: string, body: any) => { readonly status?: number; readonly json: unknown }
) => {
  const asked: Array<OutboundRequest> = []
  const outbound: Outbound["Service"] = {
    resolve: () => Effect.succeed(["10.0.0.7"]),
    texts: () => Effect.die("must not be called"),
    send: (request) =>
      Effect.sync(() => {
        asked.push(request)
        const body = request.body === undefined ? undefined : JSON.parse(new TextDecoder().decode(request.body))
        const { json, status = 200 } = answer(new URL(request.url).pathname, body)
        return { status, headers: {}, body: new TextEncoder().encode(JSON.stringify(json)) }
      })
  }
  const settings = Settings.layerTest(
    {
      facilitator: { allow_insecure: true },
      networks: { "ledger:testnet": { enabled: true, rpc_urls: ["http://127.0.0.1:8000"] } }
    },
    (variable) => (variable === "TOOLS_SIGNER_TOKEN" ? Option.some(Redacted.make("a-token")) : Option.none())
  )
  // The settings refuse plain HTTP; it is set here to see that no signer is asked over it.
  const config = Layer.effect(
    ToolsConfig,
    Effect.map(ToolsConfig, (values) => ({ ...values, signer: { ...values.signer, externalUrl: url } }))
  ).pipe(Layer.provide(ToolsConfig.layer))
  const given = Layer.mergeAll(
    Upstreams.layer.pipe(Layer.provide(Layer.succeed(Outbound, outbound))),
    Network.layer,
    WireVocabulary.layer
  ).pipe(Layer.provideMerge(config), Layer.provideMerge(settings))
  return Effect.map(Effect.provide(externalPayer, given), (payer) => ({ asked, payer }))
}

describe("a signer's response", () => {
  it.effect("a signer's response must be the requested payment with the payer's signature [S222, S250]", () =>
    Effect.gen(function* () {
      const crypto = yield* Crypto
      const payload = payloadWith(crypto)
      const accepted = (signed: Uint8Array) =>
        isSignedAs(crypto, agent.publicKey(), transfer, authorization, payload, signed)
      const honest = signedBy(agent, payload)
      expect(accepted(honest)).toBe(true)
      const wrong: ReadonlyArray<readonly [string, Uint8Array]> = [
        ["another key", signedBy(other, payload)],
        ["another payload", signedBy(agent, crypto.sha256(payload))],
        ["another amount", signedBy(agent, payload, { transfer: { ...transfer, amount: 3_000n } })],
        ["another recipient", signedBy(agent, payload, { transfer: { ...transfer, payTo: agent.publicKey() } })],
        ["another nonce", signedBy(agent, payload, { nonce: 6n })],
        ["a longer life", signedBy(agent, payload, { expirationLedger: 1_235 })],
        ["no signature", unsigned.toXdr()],
        ["trailing bytes", Uint8Array.from([...honest, 0])],
        ["nothing", new Uint8Array()]
      ]
      for (const [what, signed] of wrong) expect([what, accepted(signed)]).toEqual([what, false])
    }).pipe(Effect.provide(platform))
  )
})

describe("an external signer", () => {
  it.effect("an external signer is asked for its address once, over HTTPS [S222, S250, S323]", () =>
    Effect.gen(function* () {
      const crypto = yield* Crypto
      const payload = payloadWith(crypto)
      const { asked, payer } = yield* signerAt("https://signer.example/v1", (path, body) =>
        path === "/v1/address"
          ? { json: { address: agent.publicKey() } }
          : { json: { signedAuthEntryXdr: Buffer.from(signedBy(agent, payload)).toString("base64"), seen: body } }
      )
      expect(yield* payer.address).toBe(agent.publicKey())
      expect(yield* payer.address).toBe(agent.publicKey())
      const signed = yield* payer.sign({ entryXdr: unsigned.toXdr(), payload, around: () => new Uint8Array() })
      expect(isSignedAs(crypto, agent.publicKey(), transfer, authorization, payload, signed)).toBe(true)
      expect(asked.map(({ method, url }) => `${method} ${url}`)).toEqual([
        "GET https://signer.example/v1/address",
        "POST https://signer.example/v1/sign-auth-entry"
      ])
      expect(asked.every(({ headers }) => headers["authorization"] === "Bearer a-token")).toBe(true)
      expect(JSON.parse(new TextDecoder().decode(asked[1]!.body))).toEqual({
        network: "ledger:testnet",
        authEntryXdr: unsigned.toXdr("base64")
      })
    }).pipe(Effect.provide(platform))
  )

  it.effect("an external signer's refusal or wrong response gives no signature [S222, S231]", () =>
    Effect.gen(function* () {
      const sign = (payer: Payer["Service"]) =>
        Effect.flip(
          payer.sign({ entryXdr: unsigned.toXdr(), payload: new Uint8Array(32), around: () => new Uint8Array() })
        )
      for (const answer of [{ status: 403, json: {} }, { json: {} }, { json: { signedAuthEntryXdr: "***" } }]) {
        expect((yield* sign((yield* signerAt("https://signer.example", () => answer)).payer)).code).toBe(
          "PAYMENT_REJECTED"
        )
      }
      expect(
        (yield* Effect.flip(
          (yield* signerAt("https://signer.example", () => ({ json: { address: "G" } }))).payer.address
        )).code
      ).toBe("PAYMENT_REJECTED")
      const plain = yield* signerAt("http://signer.example", () => ({ json: { address: agent.publicKey() } }))
      expect((yield* Effect.flip(plain.payer.address)).code).toBe("UNTRUSTED_REDIRECT")
      expect(plain.asked).toEqual([])
    })
  )
})

describe("a keystore", () => {
  it.effect("a keystore opens with its key, in hex or base64 [S251]", () =>
    Effect.gen(function* () {
      const crypto = yield* Crypto
      const { file, key } = sealed(agent.secret())
      for (const spelled of [key, Buffer.from(key, "hex").toString("base64")]) {
        const seed = yield* readSeed("x", yield* openKeystore(crypto, file, Redacted.make(spelled)))
        expect(yield* seedPayer(crypto, seed).address).toBe(agent.publicKey())
      }
    }).pipe(Effect.provide(platform))
  )

  it.effect("an altered, missing or wrongly keyed keystore is refused without quoting it [S251, S252]", () =>
    Effect.gen(function* () {
      const crypto = yield* Crypto
      const { file, key } = sealed(agent.secret())
      const refused = (path: string, key: string) => Effect.flip(openKeystore(crypto, path, Redacted.make(key)))
      const errors = [
        yield* refused(file, "0".repeat(64)),
        yield* refused(`${file}.none`, key),
        yield* refused(file, key.slice(2))
      ]
      const text = readFileSync(file, "utf8")
      for (const member of ["nonce", "sealed", "tag"]) {
        const altered = JSON.parse(text)
        const bytes = Buffer.from(altered[member], "base64")
        bytes[0]! ^= 1
        writeFileSync(file, JSON.stringify({ ...altered, [member]: bytes.toString("base64") }))
        errors.push(yield* refused(file, key))
      }
      writeFileSync(file, text.replace("aes-256-gcm", "aes-256-cbc"))
      errors.push(yield* refused(file, key))
      for (const error of errors) {
        expect(error._tag).toBe("SettingsRefused")
        expect(JSON.stringify(error)).not.toContain(key)
      }
      expect((yield* Effect.flip(readSeed("x", Redacted.make(`${agent.secret()}A`)))).message).not.toContain(
        agent.secret()
      )
    }).pipe(Effect.provide(platform))
  )
})
