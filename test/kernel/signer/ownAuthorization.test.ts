// The sponsor's own authorization: given for exactly one call that a scheme has named, and recognized in a settlement
// only by its signature. Every deviation is refused.
import { describe, expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Address, Keypair, nativeToScVal, Networks, TransactionBuilder } from "@stellar/stellar-sdk"
import { StrKey, xdr } from "@stellar/stellar-sdk/base"
import { Effect, Layer, Option, Redacted } from "effect"
import { Network } from "../../../kernel/config/Network.ts"
import { settlementTransaction } from "../../../kernel/stellar/Envelope.ts"
import { Host } from "../../../kernel/platform/Host.ts"
import { holdsAny } from "../../../kernel/signer/ownAuthorization.ts"
import { Signer } from "../../../kernel/signer/Signer.ts"
import { Vault } from "../../../kernel/signer/Vault.ts"
import { layer as cryptoLayer } from "../../../runtime/platform/nodeCrypto.ts"
import { callOf, invocationOf, signAuthorization } from "../../../runtime/redteam/authorization.ts"

const sponsor = Keypair.random()
const former = Keypair.random()
const channelPair = Keypair.random()
const channel = channelPair.publicKey()
const payer = Keypair.random()
const contract = StrKey.encodeContract(new Uint8Array(32).fill(3))
const otherContract = StrKey.encodeContract(new Uint8Array(32).fill(4))

const network = Network.layerTest({
  id: "ledger:testnet",
  passphrase: Networks.TESTNET,
  rpcUrls: ["http://127.0.0.1:1"],
  friendbotUrl: Option.none(),
  sponsorSecret: Option.some(Redacted.make(`${sponsor.secret()}, ${former.secret()}`)),
  channelSecrets: Option.some(Redacted.make(channelPair.secret())),
  channelCount: 1,
  channelCountMax: 1,
  channelBalanceStroopsMin: 0n,
  developmentAutoFund: false,
  timeoutSecondsMax: 300,
  keys: () => ({}) as never,
  assets: new Map(),
  feeCeilings: () => ({ resourceStroopsMax: 200_000n, inclusionStroopsMax: 10_000n, totalStroopsMax: 210_000n })
} as Network["Service"])
const vault = Vault.layer.pipe(
  Layer.provide([
    network,
    cryptoLayer,
    Layer.succeed(Host, { name: "test", stateFolder: "/nowhere" }),
    NodeServices.layer
  ])
)
const signers = Signer.layer.pipe(Layer.provide([vault, network, cryptoLayer]))

interface Shape {
  readonly contract?: string
  readonly functionName?: string
  /** Arguments; the sponsor is the second. */
  readonly args?: ReadonlyArray<xdr.ScVal>
  readonly operationSource?: string
  readonly subInvocations?: ReadonlyArray<xdr.SorobanAuthorizedInvocation>
  readonly signedArgs?: ReadonlyArray<xdr.ScVal>
}

const address = (value: string) => new Address(value).toScVal()
const honestArgs = [address(payer.publicKey()), address(sponsor.publicKey()), nativeToScVal(5n, { type: "i128" })]

const operationOf = (shape: Shape = {}): xdr.OperationWire => {
  const args = shape.args ?? honestArgs
  const entry = signAuthorization({
    payer,
    invocation: invocationOf(
      callOf(shape.contract ?? contract, shape.functionName ?? "settle", shape.signedArgs ?? args.slice(0, 2)),
      shape.subInvocations ?? []
    ),
    nonce: 1n,
    expirationLedger: 2_000,
    networkPassphrase: Networks.TESTNET
  })
  const call = callOf(shape.contract ?? contract, shape.functionName ?? "settle", args)
  return new xdr.Operation({
    sourceAccount:
      shape.operationSource === undefined
        ? null
        : xdr.MuxedAccount.keyTypeEd25519(Keypair.fromPublicKey(shape.operationSource).rawPublicKey()),
    body: xdr.OperationBody.invokeHostFunction(
      new xdr.InvokeHostFunctionOp({
        hostFunction: xdr.HostFunction.hostFunctionTypeInvokeContract(call),
        auth: [entry]
      })
    )
  }).toXdrObject()
}

const encode = (operation: xdr.OperationWire) => xdr.Operation.schema.encode(operation)
const rule = { contract, functionName: "settle", position: 1 }
const authorize = (shape: Shape = {}) =>
  Effect.flatMap(Signer, (signer) =>
    signer.signAuthorization({ operationXdr: encode(operationOf(shape)), expiresLedger: 2_000 })
  )

const sorobanDataXdr = xdr.SorobanTransactionData.schema.encode({
  ext: { v: 0 },
  resources: { footprint: { readOnly: [], readWrite: [] }, instructions: 1, diskReadBytes: 1, writeBytes: 1 },
  resourceFee: 40_000n
} as never)
const settle = (operationXdr: Uint8Array) =>
  Effect.flatMap(Signer, (signer) =>
    signer.signSettlement({
      transaction: settlementTransaction({
        channel,
        sequence: 7n,
        bounds: { ledgerMax: 5_000, timeMax: 1_800_000_000n },
        operationXdr,
        sorobanDataXdr
      }),
      channel,
      inclusionStroops: 200n,
      scheme: "upto"
    })
  )

const entriesOf = (operationXdr: Uint8Array) => {
  const { body } = xdr.Operation.schema.decode(operationXdr)
  return body.type === 24 ? body.invokeHostFunctionOp.auth : []
}

/** The operation with a change to its last authorization, the sponsor's. */
const withOwn = (operationXdr: Uint8Array, change: (entry: any) => any): Uint8Array => {
  const operation: any = xdr.Operation.schema.decode(operationXdr)
  const { auth } = operation.body.invokeHostFunctionOp
  const changed = [...auth.slice(0, -1), ...[change(auth.at(-1))].flat()]
  return encode({
    ...operation,
    body: { ...operation.body, invokeHostFunctionOp: { ...operation.body.invokeHostFunctionOp, auth: changed } }
  })
}

describe("the sponsor's own authorization", () => {
  it.effect("an own authorization covers the whole call, network, expiry and nonce", () =>
    Effect.gen(function* () {
      yield* (yield* Signer).allowAuthorization(rule)
      const [first, second] = [yield* authorize(), yield* authorize()]
      const [others, own] = entriesOf(first)
      expect(others).toEqual(entriesOf(encode(operationOf()))[0])
      const credentials = (own as any).credentials.address
      expect(credentials.signatureExpirationLedger).toBe(2_000)
      expect(credentials.nonce).not.toBe((entriesOf(second)[1] as any).credentials.address.nonce)
      const expected = signAuthorization({
        payer: sponsor,
        invocation: invocationOf(callOf(contract, "settle", honestArgs)),
        nonce: BigInt(credentials.nonce),
        expirationLedger: 2_000,
        networkPassphrase: Networks.TESTNET
      })
      expect(xdr.SorobanAuthorizationEntry.schema.encode(own!)).toEqual(expected.toXdr())
    }).pipe(Effect.scoped, Effect.provide(signers))
  )

  it.effect("authorizes calls only while a scheme names them", () =>
    Effect.gen(function* () {
      expect((yield* Effect.flip(authorize())).message).toMatch(/no scheme declares/)
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* (yield* Signer).allowAuthorization(rule)
          yield* authorize()
        })
      )
      expect((yield* Effect.flip(authorize())).message).toMatch(/no scheme declares/)
    }).pipe(Effect.provide(signers))
  )

  it.effect("a former sponsor authorizes calls signed for it, but pays nothing", () =>
    Effect.gen(function* () {
      const signer = yield* Signer
      expect([signer.sponsor, signer.sponsors]).toEqual([
        sponsor.publicKey(),
        [sponsor.publicKey(), former.publicKey()]
      ])
      expect(signer.isOurs(former.publicKey())).toBe(true)
      yield* signer.allowAuthorization(rule)
      const named = [honestArgs[0]!, address(former.publicKey()), honestArgs[2]!]
      const operationXdr = yield* authorize({ args: named })
      const own: any = entriesOf(operationXdr)[1]
      expect(StrKey.encodeEd25519PublicKey(own.credentials.address.address.accountId.ed25519)).toBe(former.publicKey())
      const { envelope } = yield* settle(operationXdr)
      expect(TransactionBuilder.fromXDR(envelope, Networks.TESTNET)).toHaveProperty("feeSource", sponsor.publicKey())
    }).pipe(Effect.scoped, Effect.provide(signers))
  )

  const sub = (args: ReadonlyArray<xdr.ScVal>) => [invocationOf(callOf(otherContract, "approve", args))]
  const departures: ReadonlyArray<readonly [string, Shape]> = [
    ["of another contract", { contract: otherContract }],
    ["of another function", { functionName: "transfer" }],
    ["without the sponsor", { args: [honestArgs[0]!, address(payer.publicKey()), honestArgs[2]!] }],
    ["with the sponsor at another argument", { args: [honestArgs[1]!, honestArgs[0]!, honestArgs[2]!] }],
    ["with a former sponsor beside", { args: [address(former.publicKey()), honestArgs[1]!, honestArgs[2]!] }],
    ["with the sponsor at two arguments", { args: [honestArgs[1]!, honestArgs[1]!, honestArgs[2]!] }],
    ["with a channel at another argument", { args: [address(channel), honestArgs[1]!, honestArgs[2]!] }],
    ["with the sponsor deep in another argument", { args: [...honestArgs, xdr.ScVal.scvVec([honestArgs[1]!])] }],
    ["with a source", { operationSource: payer.publicKey() }],
    ["below which the payer authorizes something of the sponsor's", { subInvocations: sub([honestArgs[1]!]) }],
    ["that the payer signed with the sponsor elsewhere", { signedArgs: [honestArgs[1]!, honestArgs[1]!] }]
  ]
  for (const [name, shape] of departures) {
    it.effect(`gives no authorization for a call ${name}`, () =>
      Effect.gen(function* () {
        yield* (yield* Signer).allowAuthorization(rule)
        expect((yield* Effect.flip(authorize(shape)))._tag).toBe("SignerRefused")
      }).pipe(Effect.scoped, Effect.provide(signers))
    )
  }
})

describe("a settlement with the sponsor's authorization", () => {
  const authorized = Effect.gen(function* () {
    yield* (yield* Signer).allowAuthorization(rule)
    return yield* authorize()
  })

  it.effect("signs the settlement, also after its scheme is gone", () =>
    Effect.gen(function* () {
      const operationXdr = yield* Effect.scoped(authorized)
      yield* settle(operationXdr)
      yield* settle(operationXdr)
    }).pipe(Effect.provide(signers))
  )

  const changes: Array<readonly [string, (entry: any) => any]> = [
    ["without the authorization", () => []],
    ["with it twice", (entry) => [entry, entry]],
    ["unsigned", (entry) => changedCredentials(entry, { signature: { type: 1 } })],
    ["signed with another end", (entry) => changedCredentials(entry, { signatureExpirationLedger: 2_001 })],
    ["signed with another nonce", (entry) => changedCredentials(entry, { nonce: 9n })],
    ["with a call below it", (entry) => withRoot(entry, { subInvocations: [entry.rootInvocation] })],
    [
      "for another amount",
      (entry) =>
        withRoot(entry, {
          function: {
            type: 0,
            contractFn: {
              ...entry.rootInvocation.function.contractFn,
              args: [...entry.rootInvocation.function.contractFn.args.slice(0, 2), { type: 3, u32: 6 }]
            }
          }
        })
    ],
    ["as the transaction's source", (entry) => ({ ...entry, credentials: { type: 0 } })]
  ]
  const changedCredentials = (entry: any, change: object) => ({
    ...entry,
    credentials: { ...entry.credentials, address: { ...entry.credentials.address, ...change } }
  })
  const withRoot = (entry: any, change: object) => ({
    ...entry,
    rootInvocation: { ...entry.rootInvocation, ...change }
  })

  /** Signed by the sponsor's own key, as only a leak of it could. */
  const signedBySponsor = (invocation: xdr.SorobanAuthorizedInvocation) => () =>
    signAuthorization({
      payer: sponsor,
      invocation,
      nonce: 5n,
      expirationLedger: 2_000,
      networkPassphrase: Networks.TESTNET
    }).toXdrObject()
  const honestCall = callOf(contract, "settle", honestArgs)
  const more = [...honestArgs.slice(0, 2), nativeToScVal(6n, { type: "i128" })]
  changes.push(
    ["signed for another amount", signedBySponsor(invocationOf(callOf(contract, "settle", more)))],
    ["signed with a call below it", signedBySponsor(invocationOf(honestCall, [invocationOf(honestCall)]))]
  )
  for (const [name, change] of changes) {
    it.effect(`is not signed ${name}`, () =>
      Effect.gen(function* () {
        const refused = yield* Effect.flip(settle(withOwn(yield* authorized, change)))
        expect(refused.message).toMatch(/^a settlement that (uses one of our accounts|acts as its own source)$/)
      }).pipe(Effect.scoped, Effect.provide(signers))
    )
  }
})

describe("the search for our keys in bytes", () => {
  const keys = [sponsor, former, channelPair].map((pair) => StrKey.decodeEd25519PublicKey(pair.publicKey()))

  it("finds each key at every offset", () => {
    for (const key of keys)
      for (let at = 0; at <= 40; at++) {
        const bytes = new Uint8Array(72).fill(key[0]!)
        bytes.set(key, at)
        expect(holdsAny(bytes, keys), `at ${at}`).toBe(true)
      }
  })

  it("does not match other bytes after the prefix, a truncated key, or none", () => {
    for (const key of keys) {
      for (let at = 0; at < 32; at++) {
        const other = key.slice()
        other[at]! ^= 1
        expect(holdsAny(other, keys), `another byte ${at}`).toBe(false)
      }
      expect(holdsAny(key.subarray(0, 31), keys)).toBe(false)
    }
    expect(holdsAny(new Uint8Array(0), keys)).toBe(false)
    expect(holdsAny(keys[0]!, [])).toBe(false)
  })
})
