// The result codes of operations that the other tests do not use, each from an operation that causes it. Together the
// tests produce every code that the network still returns, except codes that no operation can cause any more (a missing
// issuer, unnecessary trust, an early inflation).
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { Asset, type Keypair, Operation, SorobanDataBuilder, type xdr } from "@stellar/stellar-sdk"
import { testnet } from "../../../../plugins/ledger-local/engine/state/NetworkSettings.ts"
import { account, fund, keypair, operationCode, send, reportedBy, transaction } from "../support.ts"
import { code, done, drain, issue, native, type Needs, test, together, withBody } from "./classic.ts"

const INT64_MAX = (1n << 63n) - 1n
const amountOf = (stroops: bigint): string =>
  `${stroops / 10_000_000n}.${String(stroops % 10_000_000n).padStart(7, "0")}`

const GUARDED = 1 | 2
/** Flags of a trustline: nothing is allowed, and everything. */
const leave = (trustor: Keypair, asset: Asset, authorized: boolean) =>
  Operation.setTrustLineFlags({ trustor: trustor.publicKey(), asset, flags: { authorized } })

/** An issuer that requires authorization, and an authorized holder of ten. */
const guarded = Effect.gen(function* () {
  const { issuer, asset } = yield* issue("guard", "GRD", GUARDED)
  const holder = yield* fund("holder")
  yield* done(holder, Operation.changeTrust({ asset }))
  yield* done(issuer, leave(holder, asset, true))
  yield* done(issuer, Operation.payment({ destination: holder.publicKey(), asset, amount: "10" }))
  return { issuer, asset, holder }
})

/** Expects of each operation the result code with its name. */
const expectCodes = Effect.fnUntraced(function* (
  source: Keypair,
  expected: Readonly<Record<string, xdr.Operation>>
): Effect.fn.Return<void, unknown, Needs> {
  for (const [name, operation] of Object.entries(expected)) expect(yield* code(source, operation)).toBe(name)
})

describe("payments", () => {
  test(
    "payments refuse amounts below one",
    Effect.gen(function* () {
      const [payer, payee] = [yield* fund("payer"), yield* fund("payee")]
      const pay = Operation.payment({ destination: payee.publicKey(), asset: native, amount: "1" })
      for (const parts of [{ amount: 0n }, { amount: -1n }])
        expect(yield* code(payer, withBody(pay, parts))).toBe("paymentMalformed")
    })
  )

  const paths = [
    {
      kind: "strict receive",
      name: "pathPaymentStrictReceive",
      pay: (asset: Asset, destination: string, amount: string) =>
        Operation.pathPaymentStrictReceive({
          sendAsset: asset,
          sendMax: amount,
          destination,
          destAsset: asset,
          destAmount: amount
        }),
      bounds: ["sendMax", "destAmount"]
    },
    {
      kind: "strict send",
      name: "pathPaymentStrictSend",
      pay: (asset: Asset, destination: string, amount: string) =>
        Operation.pathPaymentStrictSend({
          sendAsset: asset,
          sendAmount: amount,
          destination,
          destAsset: asset,
          destMin: amount
        }),
      bounds: ["sendAmount", "destMin"]
    }
  ] as const

  for (const { bounds, kind, name, pay } of paths) {
    test(
      `path payments with ${kind} refuse for sender's and receiver's reasons`,
      Effect.gen(function* () {
        const { asset, holder, issuer } = yield* guarded
        const stranger = yield* fund("stranger")
        const to = (caller: Keypair, amount = "1") => pay(asset, caller.publicKey(), amount)
        for (const bound of bounds)
          expect(yield* code(holder, withBody(to(issuer), { [bound]: 0n }))).toBe(`${name}Malformed`)
        yield* expectCodes(holder, {
          [`${name}Underfunded`]: to(issuer, "10.0000001"),
          [`${name}NoDestination`]: to(keypair("absent")),
          [`${name}NoTrust`]: to(stranger)
        })
        expect(yield* code(stranger, to(issuer))).toBe(`${name}SrcNoTrust`)
        yield* done(stranger, Operation.changeTrust({ asset, limit: "2" }))
        expect(yield* code(holder, to(stranger))).toBe(`${name}NotAuthorized`)
        expect(yield* code(stranger, to(issuer))).toBe(`${name}SrcNotAuthorized`)
        yield* done(issuer, leave(stranger, asset, true))
        expect(yield* code(holder, to(stranger, "2.0000001"))).toBe(`${name}LineFull`)
        expect(yield* code(holder, to(stranger, "2"))).toBe(`${name}Success`)
        // An issuer with a deleted account still accepts its own asset back.
        yield* done(stranger, to(holder, "2"))
        expect(yield* code(issuer, Operation.accountMerge({ destination: holder.publicKey() }))).toBe(
          "accountMergeSuccess"
        )
        expect(yield* code(holder, to(issuer))).toBe(`${name}Success`)
      })
    )
  }
})

describe("offers", () => {
  const kinds = [
    {
      name: "manageSellOffer",
      offer: (selling: Asset, buying: Asset, amount: string) =>
        Operation.manageSellOffer({ selling, buying, amount, price: "1" })
    },
    {
      name: "manageBuyOffer",
      offer: (selling: Asset, buying: Asset, buyAmount: string) =>
        Operation.manageBuyOffer({ selling, buying, buyAmount, price: "1" })
    },
    {
      // A passive offer is answered like the ordinary offer that it becomes.
      name: "manageSellOffer",
      offer: (selling: Asset, buying: Asset, amount: string) =>
        Operation.createPassiveSellOffer({ selling, buying, amount, price: "1" })
    }
  ]

  for (const [i, { name, offer }] of kinds.entries()) {
    test(
      `offers of kind ${i + 1} of 3 refuse for assets, funds, room and reserve`,
      Effect.gen(function* () {
        const { asset, holder, issuer } = yield* guarded
        const stranger = yield* fund("stranger")
        expect(yield* code(holder, withBody(offer(asset, native, "1"), { price: { n: 0, d: 1 } }))).toBe(
          `${name}Malformed`
        )
        yield* expectCodes(stranger, {
          [`${name}SellNoTrust`]: offer(asset, native, "1"),
          [`${name}BuyNoTrust`]: offer(native, asset, "1")
        })
        yield* done(stranger, Operation.changeTrust({ asset, limit: "2" }))
        expect(yield* code(stranger, offer(native, asset, "1"))).toBe(`${name}BuyNotAuthorized`)
        yield* done(issuer, leave(stranger, asset, true))
        yield* expectCodes(stranger, {
          [`${name}Underfunded`]: offer(asset, native, "1"),
          [`${name}LineFull`]: offer(native, asset, "2.0000001")
        })
        expect(yield* code(holder, offer(asset, native, "10.0000001"))).toBe(`${name}Underfunded`)
        yield* done(issuer, leave(holder, asset, false))
        expect(yield* code(holder, offer(asset, native, "1"))).toBe(`${name}SellNotAuthorized`)
        yield* done(issuer, leave(holder, asset, true))
        yield* drain(holder, issuer.publicKey(), 100n)
        expect(yield* code(holder, offer(asset, native, "1"))).toBe(`${name}LowReserve`)
      })
    )
  }

  test(
    "offers that are changed or deleted must exist and belong to the source",
    Effect.gen(function* () {
      const { asset, holder, issuer } = yield* guarded
      yield* done(holder, Operation.manageSellOffer({ selling: asset, buying: native, amount: "1", price: "1" }))
      const sell = (offerId: string, amount: string) =>
        Operation.manageSellOffer({ selling: asset, buying: native, amount, price: "1", offerId })
      const buy = (offerId: string, buyAmount: string) =>
        Operation.manageBuyOffer({ selling: asset, buying: native, buyAmount, price: "1", offerId })
      for (const amount of ["1", "0"]) {
        yield* expectCodes(holder, {
          manageSellOfferNotFound: sell("9", amount),
          manageBuyOfferNotFound: buy("9", amount)
        })
        yield* expectCodes(issuer, {
          manageSellOfferNotFound: sell("1", amount),
          manageBuyOfferNotFound: buy("1", amount)
        })
      }
      yield* expectCodes(holder, { manageBuyOfferSuccess: buy("1", "2"), manageSellOfferSuccess: sell("1", "0") })
    })
  )
})

describe("accounts", () => {
  test(
    "accounts have up to twenty signers, byte weights, reserves per entry",
    Effect.gen(function* () {
      const owner = yield* fund("owner")
      const signer = (name: string) =>
        Operation.setOptions({ signer: { ed25519PublicKey: keypair(name).publicKey(), weight: 1 } })
      const all = Array.from({ length: 20 }, (_, i) => signer(`signer ${i}`))
      expect((yield* together(owner, all)).transaction).toBe("txSuccess")
      expect(yield* code(owner, signer("one too many"))).toBe("setOptionsTooManySigners")
      for (const field of ["masterWeight", "lowThreshold", "medThreshold", "highThreshold"])
        expect(yield* code(owner, withBody(Operation.setOptions({}), { [field]: 256 }))).toBe(
          "setOptionsThresholdOutOfRange"
        )
      const poor = yield* fund("poor")
      yield* drain(poor, owner.publicKey(), 300n)
      yield* expectCodes(poor, {
        setOptionsLowReserve: signer("another"),
        manageDataLowReserve: Operation.manageData({ name: "a", value: "b" })
      })
    })
  )

  test(
    "name values in printable ASCII, and bump their numbers forwards",
    Effect.gen(function* () {
      const owner = yield* fund("owner")
      for (const name of ["\u0001", "\u007f", "a\nb"])
        expect(yield* code(owner, Operation.manageData({ name, value: "b" }))).toBe("manageDataInvalidName")
      const bump = Operation.bumpSequence({ bumpTo: "1" })
      expect(yield* code(owner, withBody(bump, { bumpTo: -1n }))).toBe("bumpSequenceBadSeq")
      expect(yield* code(owner, bump)).toBe("bumpSequenceSuccess")
    })
  )

  test(
    "immutable accounts cannot merge, and liabilities limit merged balances",
    Effect.gen(function* () {
      const { holder, issuer } = yield* guarded
      const full = yield* fund("full")
      const own = new Asset("OWN", full.publicKey())
      const { balance } = (yield* account(full.publicKey()))!
      const offer = Operation.manageSellOffer({
        selling: own,
        buying: native,
        amount: amountOf(INT64_MAX - balance),
        price: "1"
      })
      expect(yield* code(full, offer)).toBe("manageSellOfferSuccess")
      const small = "0.0001000"
      yield* expectCodes(issuer, {
        paymentLineFull: Operation.payment({ destination: full.publicKey(), asset: native, amount: small }),
        accountMergeDestFull: Operation.accountMerge({ destination: full.publicKey() })
      })
      yield* done(issuer, Operation.setOptions({ setFlags: 4 as any }))
      expect(yield* code(issuer, Operation.accountMerge({ destination: holder.publicKey() }))).toBe(
        "accountMergeImmutableSet"
      )
    })
  )

  test(
    "accounts have at most a thousand subentries",
    Effect.gen(function* () {
      const owner = yield* fund("owner")
      const value = (i: number) => Operation.manageData({ name: `value ${i}`, value: "x" })
      for (let from = 0; from < 1_000; from += 100) {
        const some = Array.from({ length: 100 }, (_, i) => value(from + i))
        expect((yield* together(owner, some)).transaction).toBe("txSuccess")
      }
      expect(yield* code(owner, value(1_000))).toBe("opTooManySubentries")
      expect(yield* code(owner, value(7))).toBe("manageDataSuccess")
    })
  )
})

describe("a contract's upload beyond the network's size", () => {
  test(
    "an oversized upload fails as an operation that never ran",
    Effect.gen(function* () {
      const owner = yield* fund("owner")
      const wasm = Buffer.alloc(65)
      const data = new SorobanDataBuilder().setResources(1_000, 0, 0).setResourceFee(2_000_000n).build()
      const upload = yield* transaction(owner, [Operation.uploadContractWasm({ wasm })], {
        fee: "2000100",
        configure: (builder) => builder.setSorobanData(data).setTimeout(0)
      })
      const { code: outer, diagnosticEventsXdr, error, status } = yield* send(upload)
      expect([status, outer, operationCode(error)]).toEqual(["ERROR", "txFailed", "invokeHostFunctionSuccess"])
      expect(reportedBy(diagnosticEventsXdr)).toEqual([
        "Error(Budget, ExceededLimit) uploaded Wasm size exceeds network config maximum contract size 65 64"
      ])
    }),
    { settings: { ...testnet, limits: { ...testnet.limits, contractCodeBytesMax: 64 } } }
  )
})
