// Only the scheme, without a ledger: how often it decodes a payment, which services it queries, which values it passes
// to the settling transaction, and how it reads an executed transaction.
import { describe, expect, it } from "@effect/vitest"
import { Keypair, Networks } from "@stellar/stellar-sdk"
import { xdr } from "@stellar/stellar-sdk/base"
import { Effect, Layer, Option } from "effect"
import { Limits } from "../../../kernel/config/Limits.ts"
import { Network } from "../../../kernel/config/Network.ts"
import { Settings } from "../../../kernel/config/Settings.ts"
import { LedgerClock } from "../../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc, LedgerUnavailable } from "../../../kernel/ledger/LedgerRpc.ts"
import { isRefusal } from "../../../kernel/payment/Refusal.ts"
import { type Scheme, Schemes } from "../../../kernel/payment/Scheme.ts"
import { decodePayment } from "../../../kernel/payment/wire/Wire.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { encodeOperation } from "../../../kernel/stellar/ContractCall.ts"
import { decodeEnvelope, transactionIn } from "../../../kernel/stellar/Envelope.ts"
import { Signer } from "../../../kernel/signer/Signer.ts"
import { layer as schemeLayer } from "../../../plugins/x402-exact/ExactScheme.ts"
import { layer as cryptoLayer } from "../../../runtime/platform/nodeCrypto.ts"
import { makePayment, type PaymentTamper, testnetUsdc } from "../../../runtime/redteam/buyer.ts"

const words = { dialects: ["ledger", "stellar"], stellarPendingReason: "settlement_pending" } as const
/** The asset's largest payment, atomic units. */
const largest = 2n ** 100n
const [payer, seller] = [Keypair.random(), Keypair.random().publicKey()]

interface Ledger {
  simulated: number
  polls: number
  /** Envelopes that were simulated. */
  readonly envelopes: Array<string>
  /** The newest ledger of a fresh poll; the last poll had 1 000. */
  fresh: number | undefined
  /** The close interval of the fastest clock that a client may have; default 5 s. */
  fastest?: number
}

const services = (ledger: Ledger) => {
  const now = (sequence: number) => ({
    sequence,
    closedAtSeconds: 0,
    secondsPerLedger: 5,
    fastestSecondsPerLedger: ledger.fastest ?? 5
  })
  const parts = Layer.mergeAll(
    Schemes.layer,
    cryptoLayer,
    Limits.layer.pipe(Layer.provide(Settings.layerTest())),
    Layer.succeed(Network, {
      id: "ledger:testnet",
      passphrase: Networks.TESTNET,
      assets: new Map([[testnetUsdc, { contract: testnetUsdc, symbol: "USDC", decimals: 7, paymentMax: largest }]]),
      feeCeilings: () => ({ resourceStroopsMax: 200_000n, inclusionStroopsMax: 10_000n, totalStroopsMax: 210_000n })
    } as unknown as Network["Service"]),
    Layer.succeed(Signer, { isOurs: () => false } as unknown as Signer["Service"]),
    Layer.succeed(LedgerClock, {
      now: Effect.sync(() => now(1_000)),
      fresh: Effect.suspend(() => {
        ledger.polls += 1
        return ledger.fresh === undefined
          ? Effect.fail(new LedgerUnavailable({ operation: "getLatestLedger", message: "silent" }))
          : Effect.sync(() => now(ledger.fresh!))
      })
    } as unknown as LedgerClock["Service"]),
    Layer.succeed(LedgerRpc, {
      simulate: (envelope: string) =>
        Effect.suspend(() => {
          ledger.simulated += 1
          ledger.envelopes.push(envelope)
          return Effect.fail(new LedgerUnavailable({ operation: "simulateTransaction", message: "silent" }))
        })
    } as unknown as LedgerRpc["Service"])
  )
  return schemeLayer.pipe(Layer.provideMerge(parts))
}

const withScheme = <A, E>(use: (scheme: Scheme, ledger: Ledger) => Effect.Effect<A, E, Crypto>) => {
  const ledger: Ledger = { simulated: 0, polls: 0, envelopes: [], fresh: undefined }
  return Effect.flatMap(Schemes, (schemes) => use(Option.getOrThrow(schemes.find("exact")), ledger)).pipe(
    Effect.provide(services(ledger)),
    Effect.scoped
  )
}

const paymentWith = (tamper: PaymentTamper = {}, amount = 10_000n) =>
  Effect.gen(function* () {
    const { body } = yield* Effect.promise(() =>
      makePayment({ latestLedger: 1_000, payer, payTo: seller, amount, tamper })
    )
    const decoded = decodePayment(body, {
      principal: { owner: "anonymous", source: "ip:test", keyed: false },
      words,
      crypto: yield* Crypto
    })
    if ("_tag" in decoded) throw new Error(decoded.refusal.message)
    return decoded
  })

describe("exact", () => {
  it.effect("a payment's transaction is decoded once across authorization lookups", () =>
    withScheme((scheme) =>
      Effect.gen(function* () {
        const honest = yield* paymentWith()
        let reads = 0
        const counted = {
          ...honest,
          payload: {
            get transaction() {
              reads += 1
              return honest.payload["transaction"]
            }
          }
        }
        const keys = [scheme.authorization(counted), scheme.authorization(counted)]
        yield* Effect.exit(scheme.verify(counted, "verify"))
        keys.push(scheme.authorization(counted))
        expect(reads).toBe(1)
        expect(new Set(keys.map((key) => Option.getOrThrow(key).key)).size).toBe(1)
        expect(scheme.authorization(yield* paymentWith())).not.toEqual(keys[0])
        expect(scheme.authorization({ ...honest, payload: { transaction: "AAAA" } })).toEqual(Option.none())
        expect(scheme.authorization({ ...honest, payload: {} })).toEqual(Option.none())
      })
    )
  )

  it.effect("authorizations differ by payer, nonce and expiry only", () =>
    withScheme((scheme) =>
      Effect.gen(function* () {
        const keyOf = (tamper: PaymentTamper) =>
          Effect.map(
            paymentWith({ nonce: 5n, ...tamper }),
            (payment) => Option.getOrThrow(scheme.authorization(payment)).key
          )
        const key = yield* keyOf({})
        expect(yield* keyOf({ source: seller })).toBe(key)
        expect(yield* keyOf({ transaction: (fields) => ({ ...fields, fee: 1 }) })).toBe(key)
        expect(yield* keyOf({ signature: (bytes) => bytes.map((byte) => byte ^ 1) })).toBe(key)
        for (const tamper of [{ nonce: 6n }, { expiryOffset: 1 }, { authAddress: seller }])
          expect(yield* keyOf(tamper)).not.toBe(key)
      })
    )
  )

  it.effect("the scheme recognizes its own use of an authorization among others", () =>
    withScheme((scheme) =>
      Effect.gen(function* () {
        const promise = { payer: payer.publicKey(), payTo: seller, asset: testnetUsdc, amount: 10_000n }
        const use = Effect.fnUntraced(function* (of: string, tamper: PaymentTamper, changes: object = {}) {
          const { payload } = yield* paymentWith({ nonce: 5n, ...tamper })
          const [operation] = transactionIn(yield* decodeEnvelope(payload["transaction"] as string))!.operations
          return scheme.nonces.useIn(of, { ...promise, ...changes }, encodeOperation(operation!))
        })
        const keyOf = (nonce: bigint) =>
          Effect.map(paymentWith({ nonce }), (payment) => Option.getOrThrow(scheme.authorization(payment)).key)
        const key = yield* keyOf(5n)
        expect(yield* use(key, {})).toBe("same")
        expect(yield* use(yield* keyOf(6n), {})).toBe("none")
        for (const changes of [{ amount: 10_001n }, { payTo: payer.publicKey() }, { payer: seller }])
          expect(yield* use(key, {}, changes)).toBe("other")
        expect(yield* use(key, { authEntries: ([one]) => [one!, one!] })).toBe("other")
      })
    )
  )

  it.effect("the ledger is not queried for a payment that offline checks refuse [S74]", () =>
    withScheme((scheme, ledger) =>
      Effect.gen(function* () {
        const refused = yield* scheme.verify(yield* paymentWith({ amount: 1n }), "verify")
        expect(isRefusal(refused) && refused.reason).toBe("invalid_exact_ledger_payload_wrong_amount")
        expect([ledger.simulated, ledger.polls]).toEqual([0, 0])
      })
    )
  )

  it.effect("the accepted amount moves, at verify and at settle", () =>
    withScheme((scheme, ledger) =>
      Effect.gen(function* () {
        const honest = yield* paymentWith()
        for (const stage of ["verify", "settle"] as const) {
          const refused = yield* scheme.verify({ ...honest, accepted: { ...honest.accepted, amountText: "9" } }, stage)
          expect(isRefusal(refused) && refused.reason).toBe("requirements_mismatch")
        }
        expect(ledger.simulated).toBe(0)
      })
    )
  )

  it.effect("authorizations that cannot land or exceed the asset's limit are refused [S265]", () =>
    withScheme((scheme, ledger) =>
      Effect.gen(function* () {
        const reasonOf = (tamper: PaymentTamper, amount?: bigint) =>
          Effect.map(
            Effect.result(Effect.flatMap(paymentWith(tamper, amount), (payment) => scheme.verify(payment, "settle"))),
            (verified) =>
              verified._tag === "Failure"
                ? verified.failure.operation
                : isRefusal(verified.success)
                  ? verified.success.reason
                  : "ok"
          )
        expect(yield* reasonOf({ expirationLedger: 1_001 })).toBe("invalid_ledger_auth_expired")
        const ending = yield* scheme.verify(yield* paymentWith({ expirationLedger: 1_001 }), "settle")
        expect(ending).toMatchObject({ authorizationExpiresLedger: 1_001 })
        expect(yield* reasonOf({}, largest + 1n)).toBe("invalid_exact_ledger_payload_wrong_amount")
        expect(ledger.simulated).toBe(0)
        expect(yield* reasonOf({ expirationLedger: 1_002 })).toBe("simulateTransaction")
        expect(yield* reasonOf({}, largest)).toBe("simulateTransaction")
      })
    )
  )

  it.effect("an expiry that seems too far is checked against a fresh poll", () =>
    withScheme((scheme, ledger) =>
      Effect.gen(function* () {
        const far = yield* paymentWith({ expiryOffset: 20 })
        ledger.fresh = 1_000
        const refused = yield* scheme.verify(far, "verify")
        expect([isRefusal(refused) && refused.reason, ledger.polls, ledger.simulated]).toEqual([
          "invalid_exact_ledger_signature_expiration_too_far",
          1,
          0
        ])
        ledger.fresh = 1_020
        expect((yield* Effect.flip(scheme.verify(far, "verify"))).operation).toBe("simulateTransaction")
        ledger.fresh = undefined
        expect((yield* Effect.flip(scheme.verify(far, "verify"))).operation).toBe("getLatestLedger")
      })
    )
  )

  it.effect("expiry is computed by the fastest client clock, not the ledger's", () =>
    withScheme((scheme, ledger) =>
      Effect.gen(function* () {
        const far = yield* paymentWith({ expiryOffset: 20 })
        ledger.fresh = 1_000
        const refused = yield* scheme.verify(far, "verify")
        expect(isRefusal(refused) && refused.reason).toBe("invalid_exact_ledger_signature_expiration_too_far")
        ledger.fastest = 2
        expect((yield* Effect.flip(scheme.verify(far, "verify"))).operation).toBe("simulateTransaction")
      })
    )
  )

  it.effect("only the client's operation is simulated, not its envelope [S77]", () =>
    withScheme((scheme, ledger) =>
      Effect.gen(function* () {
        yield* Effect.flip(scheme.verify(yield* paymentWith({ operationSource: seller, source: seller }), "verify"))
        const envelope = xdr.TransactionEnvelope.schema.decode(
          Uint8Array.from(atob(ledger.envelopes[0]!), (c) => c.charCodeAt(0))
        )
        if (envelope.type !== 2) throw new Error("a plain envelope is required")
        const { cond, ext, memo, operations } = envelope.v1.tx
        expect([
          cond.type,
          ext.v,
          memo.type,
          operations.length,
          operations[0]?.sourceAccount,
          envelope.v1.signatures.length
        ]).toEqual([0, 0, 0, 1, null, 0])
      })
    )
  )

  it.effect("a payment that expired while waiting for a channel is not prepared [S80]", () =>
    withScheme((scheme) =>
      Effect.gen(function* () {
        const state = { operationXdr: new Uint8Array([1]), sorobanDataXdr: new Uint8Array([2]) }
        // The clock is at ledger 1 000.
        const prepare = (authorizationExpiresLedger: number) =>
          scheme.prepare({} as never, { payer: "payer", authorizationExpiresLedger, state } as never)
        expect(yield* prepare(1_002)).toBe(state)
        for (const expires of [1_001, 1_000, 900])
          expect(yield* prepare(expires)).toMatchObject({
            _tag: "Refusal",
            reason: "invalid_ledger_auth_expired",
            payer: Option.some("payer")
          })
      })
    )
  )

  it.effect("a movement is proven by its event, unreadable events by the status", () =>
    withScheme((scheme) =>
      Effect.sync(() => {
        const promise = { payer: payer.publicKey(), payTo: seller, asset: testnetUsdc, amount: 10n }
        const moved = { contract: testnetUsdc, from: promise.payer, to: seller, amount: 10n }
        const executed = (transfers: Option.Option<ReadonlyArray<typeof moved>>) =>
          scheme.checkExecuted(promise, { transfers } as never)._tag
        expect(executed(Option.some([moved]))).toBe("Moved")
        expect(executed(Option.none())).toBe("Moved")
        const lies = [
          [],
          [{ ...moved, amount: 9n }],
          [{ ...moved, to: promise.payer }],
          [{ ...moved, from: seller }],
          [{ ...moved, contract: seller }]
        ]
        for (const lie of lies) expect(executed(Option.some(lie))).toBe("NotMoved")
      })
    )
  )
})
