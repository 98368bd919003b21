// Readers of strangers' bytes, each with honest samples. A reader may refuse a mutated input by its own error; any
// other exception is a breach, as is a long computation.
import { Effect, Layer } from "effect"
import { readFileSync } from "node:fs"
import { Keypair, xdr } from "@stellar/stellar-sdk"
import { openCheckpoint, openReceipt, prove } from "../../examples/receipts/verify.mjs"
import { readJson } from "../../kernel/http/BoundedJson.ts"
import { readIdempotencyKey } from "../../kernel/http/idempotencyKey.ts"
import { LedgerRpc } from "../../kernel/ledger/LedgerRpc.ts"
import { layer as rpcLayer } from "../../kernel/ledger/makeLedgerRpc.ts"
import { HttpCalls } from "../../kernel/platform/HttpCalls.ts"
import { readEnvelope } from "../../kernel/stellar/Envelope.ts"
import { readXdr } from "../../kernel/stellar/readXdr.ts"
import type { CatalogValues } from "../../plugins/catalog/Config.ts"
import { readDeclaration } from "../../plugins/catalog/declaration/DeclarationWire.ts"
import { makeValidator } from "../../plugins/catalog/declaration/validateInfo.ts"
import { readLive402, readManifest, readWellKnown } from "../../plugins/catalog/ownership/OriginWire.ts"
import { readOpenApi } from "../../plugins/catalog/ownership/OpenApiWire.ts"
import { decodePosition } from "../../plugins/catalog/search/rank/rankingCursor.ts"
import { readSearch } from "../../plugins/catalog/search/readSearch.ts"
import { readIntent } from "../../plugins/catalog/search/readIntent.ts"
import { readHttpChallenge, readHttpSettlement } from "../../plugins/mcp-tools-pay/seller/HttpWire.ts"
import { readChallenge, readSettlement, readTools } from "../../plugins/mcp-tools-pay/seller/SellerWire.ts"
import { decodeReference, encodeReference } from "../../plugins/mcp-tools/Reference.ts"
import { readTilePath } from "../../plugins/receipts/LogRoutes.ts"
import { decodePayload as decodeBatch } from "../../plugins/x402-batch/BatchWire.ts"
import { stateless } from "../../plugins/x402-upto/profiles.ts"
import { decodePayload as decodeUpto } from "../../plugins/x402-upto/UptoWire.ts"
import * as NodeCrypto from "../../runtime/platform/nodeCrypto.ts"
import { ResponseReader } from "../../runtime/platform/ResponseReader.ts"
import { makePayment, testnetUsdc } from "../../runtime/redteam/buyer.ts"
import type { Dice } from "./Dice.ts"
import { makeBatch } from "../support/batchBuyer.ts"
import { mutateBytes, mutateJson, mutateText } from "./mutate.ts"

export interface WireTarget {
  readonly name: string
  /** A mutated input, and how to read it; the input is printed with a breach. */
  readonly cast: (dice: Dice) => { readonly input: unknown; readonly read: () => unknown }
  /** The message of an expected refusal that is thrown. */
  readonly refuses?: RegExp
}

const ofText = (
  name: string,
  samples: ReadonlyArray<string>,
  read: (text: string) => unknown,
  refuses?: RegExp
): WireTarget => ({
  name,
  cast: (dice) => {
    const input = mutateText(dice, dice.pick(samples))
    return { input, read: () => read(input) }
  },
  ...(refuses === undefined ? {} : { refuses })
})

const ofJson = (
  name: string,
  samples: ReadonlyArray<unknown>,
  read: (value: any) => unknown,
  refuses?: RegExp
): WireTarget => ({
  name,
  cast: (dice) => {
    const input = mutateJson(dice, dice.pick(samples))
    return { input, read: () => read(input) }
  },
  ...(refuses === undefined ? {} : { refuses })
})

const ofBytes = (
  name: string,
  samples: ReadonlyArray<Uint8Array>,
  read: (bytes: Uint8Array) => unknown,
  refuses?: RegExp
): WireTarget => ({
  name,
  cast: (dice) => {
    const input = mutateBytes(dice, dice.pick(samples))
    return { input: Buffer.from(input).toString("base64"), read: () => read(input) }
  },
  ...(refuses === undefined ? {} : { refuses })
})

const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value) ?? "").toString("base64")
const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)
const fields = (value: unknown): any => (typeof value === "object" && value !== null ? value : {})

const [payer, seller, authorizer] = [Keypair.random(), Keypair.random(), Keypair.random()]
const payment = await makePayment({ latestLedger: 2_000, payer, payTo: seller.publicKey(), amount: 10_000n })
const transaction = Buffer.from(payment.transaction, "base64")
const batch = makeBatch(() => Promise.resolve({ sequence: 10 }), testnetUsdc)
const channel = batch.channel(payer, seller.publicKey(), authorizer)
const vouchers = [
  batch.pay(channel, 5n),
  await batch.deposit(channel, 7n, 5n),
  batch.claim([{ channel, max: 5n, total: 4n }]),
  batch.refund(channel, 5n, 3n, 0n),
  batch.settle(seller.publicKey()),
  await batch.withdraw(channel, "Start")
]

/** Small and checked in: inputs that once failed, and honest documents. */
const corpus = JSON.parse(readFileSync(new URL("corpus.json", import.meta.url), "utf8"))
const vectors = JSON.parse(readFileSync(new URL("../plugins/receipts/vectors.json", import.meta.url), "utf8"))
const required = { ...corpus.required, accepts: [payment.paymentRequirements] }
const settled = { success: true, transaction: "ab".repeat(32), network: "stellar:testnet", payer: payer.publicKey() }
const base = "https://api.example"
const identity = { type: "http" as const, resource: `${base}/weather`, toolName: "", url: `${base}/weather` }
const config = {
  ...{ metadataBytesMax: 65_536, schemaBytesMax: 65_536, exampleBytesMax: 16_384, requireValidSchema: true },
  ...{ requireHttpsOrigins: false, allowLocalOrigins: true, resolvedMcpEndpoints: {} }
} as unknown as CatalogValues
const validate = makeValidator()
const offer = { dialect: "stellar", resource: { url: `${base}/weather` }, terms: payment.paymentRequirements } as any

const pieces = (dice: Dice, bytes: Uint8Array): void => {
  const reader = new ResponseReader({ head: () => {}, body: () => {}, complete: () => {}, end: () => {} })
  for (let at = 0; at < bytes.length;) {
    const next = at + 1 + dice.below(64)
    reader.push(Buffer.from(bytes.slice(at, next)))
    at = next
  }
  reader.close()
}

const framings: WireTarget = {
  name: "framings of sellers",
  cast: (dice) => {
    const input = mutateBytes(dice, utf8(dice.pick(corpus.framings as ReadonlyArray<string>)))
    return { input: Buffer.from(input).toString("latin1"), read: () => pieces(dice, input) }
  }
}

/** The ledger's port over answers from here: no network, the real reader of every answer. */
const answering = (body: () => string) =>
  rpcLayer({
    urls: ["http://node.example"],
    passphrase: "Test SDF Network ; September 2015",
    timeout: "1 second" as any
  }).pipe(
    Layer.provide(NodeCrypto.layer),
    Layer.provide(
      Layer.succeed(HttpCalls, {
        post: (call) =>
          Effect.sync(() => {
            const { id, method } = JSON.parse(call.body)
            const result = method === "getNetwork" ? JSON.stringify(corpus.rpc.getNetwork) : body()
            return { status: 200, retryAfter: undefined, body: `{"jsonrpc":"2.0","id":${id},"result":${result}}` }
          })
      })
    )
  )

const hash = "ab".repeat(32)
const calls: Readonly<Record<string, (rpc: LedgerRpc["Service"]) => Effect.Effect<unknown, unknown>>> = {
  getLatestLedger: (rpc) => rpc.latestLedger,
  getFeeStats: (rpc) => rpc.feeStats,
  simulateTransaction: (rpc) => rpc.simulate(payment.transaction),
  sendTransaction: (rpc) => rpc.send(payment.transaction, hash),
  getTransaction: (rpc) => rpc.transaction(hash),
  getLedgerEntries: (rpc) => rpc.accounts([payer.publicKey()]),
  getEvents: (rpc) => rpc.contractEvents(testnetUsdc, 1)
}

const rpcAnswers: ReadonlyArray<WireTarget> = Object.entries(calls).map(([method, call]) => ({
  name: `RPC answers: ${method}`,
  cast: (dice) => {
    const input = JSON.stringify(mutateJson(dice, corpus.rpc[method])) ?? "null"
    return {
      input,
      read: () =>
        Effect.runPromise(Effect.flatMap(LedgerRpc, call).pipe(Effect.ignore, Effect.provide(answering(() => input))))
    }
  }
}))

const xdrKinds: ReadonlyArray<readonly [name: string, schema: any, sample: Uint8Array]> = [
  ["values", xdr.ScVal.schema, xdr.ScVal.scvVec([xdr.ScVal.scvU32(7), xdr.ScVal.scvString("x")]).toXdr("raw")],
  ["envelopes", xdr.TransactionEnvelope.schema, transaction],
  ["results", xdr.TransactionResult.schema, Buffer.from(corpus.rpc.getTransaction.resultXdr, "base64")]
]

/** Any refusal of the offline verifier, of the platform's decoders, or of the reader of XDR. */
const expected = /./

const receipts: ReadonlyArray<WireTarget> = [
  ofText(
    "receipts",
    vectors.vectors.map(({ receipt }: any) => receipt),
    (text) => openReceipt(text, vectors.did),
    expected
  ),
  ofJson("proofs", vectors.vectors, (value) => prove({ outcomes: [value], ...fields(value) }, vectors.did), expected),
  ofText("checkpoints", corpus.checkpoints, (note) => openCheckpoint(note, vectors.did), expected),
  ofText("paths of tiles", ["0/000", "entries/x001/234.p/17", "63/x999/x999/999.p/255"], readTilePath)
]

const declarations: ReadonlyArray<WireTarget> = [
  ofJson("declarations", corpus.declarations, (value) => readDeclaration(offer, "bazaar", value, { config, validate })),
  ofJson("well-known documents", [corpus.wellKnown], (value) => readWellKnown(value, identity as any, base)),
  ofJson("manifests", [corpus.wellKnown], (value) => readManifest(value, base)),
  ofJson("OpenAPI documents", [corpus.openApi], (value) => readOpenApi(value, base, corpus.pricing)),
  ofJson("live 402 answers", [required], (value) =>
    readLive402({
      status: 402,
      headers: { "payment-required": base64(value) },
      body: utf8(JSON.stringify(value) ?? "")
    })
  )
]

const sellers: ReadonlyArray<WireTarget> = [
  ofJson("sellers' challenges", [required], (value) =>
    readHttpChallenge({
      status: 402,
      headers: { "payment-required": base64(value) },
      body: utf8(JSON.stringify(value) ?? "")
    })
  ),
  ofText("sellers' headers", [base64(required), base64(settled)], (text) => [
    readHttpChallenge({ status: 402, headers: { "payment-required": text }, body: new Uint8Array() }),
    readHttpSettlement({ status: 200, headers: { "payment-response": text }, body: new Uint8Array() })
  ]),
  ofJson(
    "results of tools",
    [
      { isError: true, structuredContent: required, content: [{ type: "text", text: JSON.stringify(required) }] },
      { content: [], _meta: { "x402/payment-response": settled } },
      { tools: [{ name: "a", inputSchema: { type: "object" } }], nextCursor: "x" }
    ],
    (value) => [readChallenge(fields(value)), readSettlement(fields(value)), readTools(fields(value))]
  ),
  framings
]

export const wireTargets: ReadonlyArray<WireTarget> = [
  ...xdrKinds.map(([name, schema, sample]) =>
    ofBytes(`XDR: ${name}`, [sample], (bytes) => readXdr(schema, bytes), expected)
  ),
  ofText("envelopes in base64", [payment.transaction], readEnvelope),
  ofJson("vouchers", vouchers, (value) => decodeBatch(fields(value))),
  ofJson("payloads of upto", [{ transaction: payment.transaction }], (value) =>
    decodeUpto(fields(value), () => stateless)
  ),
  ofBytes("JSON bodies", [utf8(JSON.stringify(payment.body))], (bytes) => readJson(bytes)),
  ...declarations,
  ofText("queries", corpus.queries, (text) => readSearch(new URLSearchParams(text))),
  ofText("intents", corpus.intents, (text) => readIntent(text, {}, [])),
  ofText("positions", ["20.1.AQID", "999999.7.gAE"], decodePosition),
  ofText("references", [encodeReference(identity), "v1.e30"], decodeReference),
  ofText("idempotency keys", ["a".repeat(16), '"0123456789abcdef"'], readIdempotencyKey),
  ...sellers,
  ...rpcAnswers,
  ...receipts
]
