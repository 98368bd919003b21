// Only the scheme, over a stub ledger: the data it discloses at verify and at settle, the services it queries, how
// often it decodes a payment, and which payments have expired.
import { describe, expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Keypair, Networks } from "@stellar/stellar-sdk"
import { StrKey, xdr } from "@stellar/stellar-sdk/base"
import { Effect, Layer, Option, Redacted } from "effect"
import { Limits } from "../../../kernel/config/Limits.ts"
import { Network } from "../../../kernel/config/Network.ts"
import { Settings } from "../../../kernel/config/Settings.ts"
import { LedgerClock } from "../../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc, type SimulationAnswer } from "../../../kernel/ledger/LedgerRpc.ts"
import { isRefusal } from "../../../kernel/payment/Refusal.ts"
import { type Scheme, Schemes, type Verified } from "../../../kernel/payment/Scheme.ts"
import { decodePayment } from "../../../kernel/payment/wire/Wire.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Host } from "../../../kernel/platform/Host.ts"
import { Signer } from "../../../kernel/signer/Signer.ts"
import { Vault } from "../../../kernel/signer/Vault.ts"
import { settlementWasmHash } from "../../../plugins/x402-upto/contract.ts"
import { layer as schemeLayer } from "../../../plugins/x402-upto/UptoScheme.ts"
import { layer as cryptoLayer } from "../../../runtime/platform/nodeCrypto.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { makeUptoPayment, type UptoTamper } from "../../support/uptoBuyer.ts"

const words = { dialects: ["ledger", "stellar"], stellarPendingReason: "settlement_pending" } as const
const [sponsor, payer, payTo] = [Keypair.random(), Keypair.random(), Keypair.random().publicKey()]
const contract = StrKey.encodeContract(new Uint8Array(32).fill(3))
const refusedBy = (code: string, latestLedger = 1_000): SimulationAnswer => ({
  _tag: "Refused",
  latestLedger,
  code,
  detail: ""
})

interface Ledger {
  /** The newest ledger of the last poll, and of a fresh one. */
  now: number
  fresh: number
  polls: number
  /** The close interval of the fastest clock that a client may have. */
  fastest: number
  answer: SimulationAnswer
  readonly envelopes: Array<string>
}

const network = Network.layerTest({
  id: "ledger:testnet",
  passphrase: Networks.TESTNET,
  rpcUrls: ["http://127.0.0.1:1"],
  friendbotUrl: Option.none(),
  sponsorSecret: Option.some(Redacted.make(sponsor.secret())),
  channelSecrets: Option.none(),
  channelCount: 1,
  channelCountMax: 1,
  channelBalanceStroopsMin: 0n,
  developmentAutoFund: false,
  timeoutSecondsMax: 300,
  keys: () => ({ upto_contract: contract }) as never,
  assets: new Map([[testnetUsdc, { contract: testnetUsdc, symbol: "USDC", decimals: 7, paymentMax: 10_000n }]]),
  feeCeilings: () => ({ resourceStroopsMax: 200_000n, inclusionStroopsMax: 10_000n, totalStroopsMax: 210_000n })
} as Network["Service"])

const host = Layer.succeed(Host, { name: "test", stateFolder: "/nowhere" })
const vault = Vault.layer.pipe(Layer.provide([network, cryptoLayer, host, NodeServices.layer]))
const signer = Signer.layer.pipe(Layer.provide([vault, network, cryptoLayer]))

const services = (ledger: Ledger) => {
  const time = (sequence: number) => ({
    sequence,
    closedAtSeconds: 0,
    secondsPerLedger: 5,
    fastestSecondsPerLedger: ledger.fastest
  })
  const parts = Layer.mergeAll(
    Schemes.layer,
    cryptoLayer,
    network,
    signer,
    Limits.layer.pipe(Layer.provide(Settings.layerTest())),
    Layer.succeed(LedgerClock, {
      now: Effect.sync(() => time(ledger.now)),
      fresh: Effect.sync(() => {
        ledger.polls += 1
        return time(ledger.fresh)
      })
    } as unknown as LedgerClock["Service"]),
    Layer.succeed(LedgerRpc, {
      codeHash: () => Effect.succeed(Option.some(settlementWasmHash)),
      simulate: (envelope: string) =>
        Effect.sync(() => {
          ledger.envelopes.push(envelope)
          return ledger.answer
        })
    } as unknown as LedgerRpc["Service"])
  )
  return schemeLayer.pipe(Layer.provideMerge(parts))
}

const withScheme = <A, E>(use: (scheme: Scheme, ledger: Ledger) => Effect.Effect<A, E, Crypto>) => {
  const answer = refusedBy("Error(Contract, #10)")
  const ledger: Ledger = { now: 1_000, fresh: 1_000, polls: 0, fastest: 5, answer, envelopes: [] }
  return Effect.flatMap(Schemes, (schemes) => use(Option.getOrThrow(schemes.find("upto")), ledger)).pipe(
    Effect.provide(services(ledger)),
    Effect.scoped
  )
}

/** A payment of at most 1 000 that settles `actual`. */
const paymentOf = (actual: bigint, tamper: UptoTamper = {}) =>
  Effect.gen(function* () {
    const made = yield* Effect.promise(() =>
      makeUptoPayment({
        rpc: async () => ({ sequence: 1_000 }),
        payer,
        payTo,
        contract,
        facilitator: sponsor.publicKey(),
        max: 1_000n,
        tamper
      })
    )
    const decoded = decodePayment(made.settleBody(actual), {
      principal: { id: "ip:test", keyed: false },
      words,
      crypto: yield* Crypto
    } as never)
    if ("_tag" in decoded) throw new Error(decoded.refusal.message)
    return decoded
  })

const bytesOf = (base64: string) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))

const simulatedIn = (ledger: Ledger) => {
  const envelope = xdr.TransactionEnvelope.schema.decode(bytesOf(ledger.envelopes.at(-1)!))
  if (envelope.type !== 2) throw new Error("a plain envelope is expected")
  const { operations, sourceAccount } = envelope.v1.tx
  const body = operations[0]!.body as any
  return {
    source: StrKey.encodeEd25519PublicKey((sourceAccount as any).ed25519),
    operationXdr: xdr.Operation.schema.encode(operations[0]!),
    args: body.invokeHostFunctionOp.hostFunction.invokeContract.args as ReadonlyArray<any>,
    auth: body.invokeHostFunctionOp.auth as ReadonlyArray<any>
  }
}

const reasonOf = (verified: unknown) =>
  isRefusal(verified) ? verified.reason.replace("invalid_upto_ledger_", "") : "valid"

describe("upto", () => {
  it.effect("verify simulates the facilitator as source and exposes no authorization of it", () =>
    withScheme((scheme, ledger) =>
      Effect.gen(function* () {
        yield* scheme.verify(yield* paymentOf(1_000n), "verify")
        const { args, auth, source } = simulatedIn(ledger)
        expect(source).toBe(sponsor.publicKey())
        expect(auth.map(({ credentials }) => credentials.type)).toEqual([1, 0])
        expect(args[8].i128.lo).toBe(1_000n)
      })
    )
  )

  it.effect("settle simulates with both signatures and submits those bytes", () =>
    withScheme((scheme, ledger) =>
      Effect.gen(function* () {
        const payment = yield* paymentOf(250n, { expirationLedger: 1_008 })
        yield* scheme.verify(payment, "settle")
        const { args, auth, operationXdr } = simulatedIn(ledger)
        expect(args[8].i128.lo).toBe(250n)
        expect(auth.map(({ credentials }) => credentials.type)).toEqual([1, 1])
        // The facilitator's authorization expires no later than the payer's.
        expect(auth[1].credentials.address.signatureExpirationLedger).toBe(1_008)
        const state = { operationXdr, sorobanDataXdr: Uint8Array.of(1) }
        const verified = { payer: "G", authorizationExpiresLedger: 1_008, state } as unknown as Verified
        expect(yield* scheme.prepare(payment, verified)).toBe(state)
        ledger.now = 1_007
        const late = yield* scheme.prepare(payment, verified)
        expect(reasonOf(late)).toBe("settlement_expired")
        // The search for a settlement with a lost record ends there.
        expect(late).toMatchObject({ authorizationExpiresLedger: 1_008 })
        expect(yield* scheme.verify(payment, "settle")).toMatchObject({ authorizationExpiresLedger: 1_008 })
        const ended = { ...verified, state: { ...state, lastSecond: -1n } } as Verified
        expect(yield* scheme.prepare(payment, ended)).toMatchObject({ authorizationEndedLedger: 1_007 })
      })
    )
  )

  it.effect("the ledger is not queried for a payment that offline checks refuse [S74]", () =>
    withScheme((scheme, ledger) =>
      Effect.gen(function* () {
        for (const [actual, stage] of [
          [1_001n, "settle"],
          [999n, "verify"]
        ] as const)
          expect(reasonOf(yield* scheme.verify(yield* paymentOf(actual), stage))).not.toBe("valid")
        expect([ledger.envelopes.length, ledger.polls]).toEqual([0, 0])
      })
    )
  )

  it.effect("a start or expiry out of range is checked by a fresh poll", () =>
    withScheme((scheme, ledger) =>
      Effect.gen(function* () {
        ledger.answer = refusedBy("Error(Contract, #10)", 1_013)
        for (const [tamper, word] of [
          [{ validAfter: 1_013, deadline: 1_020 }, "settlement_not_yet_valid"],
          [{ deadline: 1_020 }, "expiration_too_far"]
        ] as const) {
          ledger.fresh = 1_000
          const payment = yield* paymentOf(1n, tamper)
          expect(reasonOf(yield* scheme.verify(payment, "settle"))).toBe(word)
          ledger.fresh = 1_013
          expect(reasonOf(yield* scheme.verify(payment, "settle"))).toBe("simulation_failed")
        }
        expect(ledger.polls).toBe(4)
      })
    )
  )

  it.effect("the maximum expiry is computed by the fastest client clock", () =>
    withScheme((scheme, ledger) =>
      Effect.gen(function* () {
        const payment = yield* paymentOf(1n, { deadline: 1_020 })
        expect(reasonOf(yield* scheme.verify(payment, "settle"))).toBe("expiration_too_far")
        ledger.fastest = 2
        expect(reasonOf(yield* scheme.verify(payment, "settle"))).toBe("simulation_failed")
      })
    )
  )

  it.effect("a start within twelve ledgers is not too early", () =>
    withScheme((scheme, ledger) =>
      Effect.gen(function* () {
        const payment = yield* paymentOf(1_000n, { validAfter: 1_012, deadline: 1_020 })
        for (const stage of ["verify", "settle"] as const)
          expect((yield* Effect.flip(scheme.verify(payment, stage)))._tag).toBe("LedgerUnavailable")
        expect(ledger.envelopes).toEqual([])
        // The ledger has closed by our clock, and the simulating node has not seen it.
        ledger.now = 1_012
        ledger.answer = refusedBy("Error(Contract, #10)", 1_011)
        expect((yield* Effect.flip(scheme.verify(payment, "settle")))._tag).toBe("LedgerUnavailable")
        ledger.answer = refusedBy("Error(Contract, #10)", 1_012)
        expect(reasonOf(yield* scheme.verify(payment, "settle"))).toBe("simulation_failed")
      })
    )
  )

  it.effect("a spent authorization is reported so that its settlement is searched", () =>
    withScheme((scheme, ledger) =>
      Effect.gen(function* () {
        const payment = yield* paymentOf(1n)
        expect(yield* scheme.verify(payment, "settle")).not.toHaveProperty("authorizationSpent")
        ledger.answer = refusedBy("Error(Auth, ExistingValue)")
        expect(yield* scheme.verify(payment, "settle")).toMatchObject({ authorizationSpent: true })
      })
    )
  )

  it.effect("an authorization is identified by payer, nonce and expiry, decoded once", () =>
    withScheme((scheme) =>
      Effect.gen(function* () {
        const payment = yield* paymentOf(5n)
        let reads = 0
        const counted = {
          ...payment,
          payload: {
            get transaction() {
              reads += 1
              return payment.payload["transaction"]
            }
          }
        }
        const known = Option.getOrThrow(scheme.authorization(counted))
        yield* scheme.verify(counted, "settle")
        expect(Option.getOrThrow(scheme.authorization(counted))).toEqual(known)
        expect([reads, known.payer]).toEqual([1, payer.publicKey()])
        expect(scheme.nonces.nonceOf(known.key)).toMatchObject({ address: payer.publicKey() })
        expect(scheme.authorization({ ...payment, payload: { transaction: "AAAA" } })).toEqual(Option.none())
      })
    )
  )

  it.effect("the scheme distinguishes its own use of an authorization", () =>
    withScheme((scheme, ledger) =>
      Effect.gen(function* () {
        const payment = yield* paymentOf(250n, { nonce: 77n })
        yield* scheme.verify(payment, "settle")
        const { operationXdr } = simulatedIn(ledger)
        const { key } = Option.getOrThrow(scheme.authorization(payment))
        const promise = { payer: payer.publicKey(), payTo, asset: testnetUsdc, amount: 250n }
        const use = (of: string, changes: object = {}) =>
          scheme.nonces.useIn(of, { ...promise, ...changes }, operationXdr)
        expect(use(key)).toBe("same")
        for (const changes of [{ amount: 251n }, { payTo: payer.publicKey() }, { payer: payTo }, { asset: contract }])
          expect(use(key, changes)).toBe("other")
        const later = Option.getOrThrow(scheme.authorization(yield* paymentOf(250n, { nonce: 77n, deadline: 1_013 })))
        expect(use(later.key)).toBe("other")
        const strange = Option.getOrThrow(scheme.authorization(yield* paymentOf(250n, { nonce: 78n })))
        expect(use(strange.key)).toBe("none")
      })
    )
  )
})
