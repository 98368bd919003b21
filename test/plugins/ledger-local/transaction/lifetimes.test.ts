// ExtendFootprintTTL and RestoreFootprint on the running ledger: their effects on an entry's life, the entries that
// they skip, and each of their error codes. Also shows two rules of envelopes that clients meet.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  Account,
  Asset,
  Contract,
  Keypair,
  Memo,
  MuxedAccount,
  Operation,
  SorobanDataBuilder,
  xdr
} from "@stellar/stellar-sdk"
import { testnet } from "../../../../plugins/ledger-local/engine/state/NetworkSettings.ts"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import {
  apply,
  feeBump,
  fund,
  keypair,
  ledgerLayer,
  operationCode,
  passphrase,
  send,
  reportedBy,
  transaction
} from "../support.ts"

const LIVES = 10
const layer = ledgerLayer({ settings: { ...testnet, ttl: { ...testnet.ttl, minPersistentLedgers: LIVES } } })

interface Footprint {
  readonly readOnly?: ReadonlyArray<xdr.LedgerKey>
  readonly readWrite?: ReadonlyArray<xdr.LedgerKey>
  readonly bytes?: number
  /** In addition to the nonrefundable fee. */
  readonly resourceFee?: number
  readonly memo?: Memo
}

/** The operation with hand-made resources; its code, or the transaction's. */
const done = Effect.fnUntraced(function* (
  source: Keypair,
  operation: xdr.Operation,
  { readOnly = [], readWrite = [], bytes = 4_000, resourceFee = 1_000_000, memo = Memo.none() }: Footprint
) {
  const data = new SorobanDataBuilder()
    .setReadOnly([...readOnly])
    .setReadWrite([...readWrite])
    .setResources(0, bytes, bytes)
    .setResourceFee(resourceFee)
    .build()
  const tx = yield* transaction(source, [operation], {
    fee: (resourceFee + 100).toString(),
    configure: (builder) => builder.setSorobanData(data).addMemo(memo).setTimeout(0)
  })
  const applied = yield* apply(tx)
  return { ...applied, code: operationCode(applied.result) ?? applied.code }
})

/** The ledger's diagnostics for the operation, refused on submission or applied. */
const reportedOf = Effect.fnUntraced(function* (...args: Parameters<typeof done>) {
  const { raw, refusal } = yield* done(...args)
  return reportedBy(raw?.diagnosticEventsXdr ?? refusal)
})

const liveUntil = Effect.fnUntraced(function* (key: xdr.LedgerKey) {
  const ledger = yield* LocalLedger
  const { entries } = yield* ledger.call("getLedgerEntries", { keys: [key.toXdr("base64")] })
  return entries[0]?.liveUntilLedgerSeq as number | undefined
})

/** An asset's contract, deployed by its issuer: one entry that lives for ten ledgers. */
const deployed = Effect.gen(function* () {
  const ledger = yield* LocalLedger
  const owner = yield* fund("owner")
  const asset = new Asset("OLD", owner.publicKey())
  const operation = Operation.createStellarAssetContract({ asset })
  const draft = yield* transaction(owner, [operation], { signers: [] })
  const simulated = yield* ledger.call("simulateTransaction", { transaction: draft.toEnvelope().toXdr("base64") })
  yield* apply(
    yield* transaction(owner, [operation], {
      fee: (BigInt(simulated.minResourceFee) + 100n).toString(),
      configure: (builder) => builder.setSorobanData(simulated.transactionData).setTimeout(0)
    })
  )
  const key = new Contract(asset.contractId(passphrase)).getFootprint()
  return { owner, key, until: (yield* liveUntil(key))! }
})

const extendTo = (ledgers: number) => Operation.extendFootprintTtl({ extendTo: ledgers })
const accountKey = (key: Keypair) => xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId: key.xdrAccountId() }))
const temporaryKey = (key: xdr.LedgerKey) => {
  const wire = key.toXdrObject() as any
  return xdr.LedgerKey.fromXdrObject({ ...wire, contractData: { ...wire.contractData, durability: 0 } })
}

describe("ExtendFootprintTTL", () => {
  it.effect("ExtendFootprintTTL only extends the TTL of read entries", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const { owner, key } = yield* deployed
      const extended = yield* done(owner, extendTo(500), { readOnly: [key] })
      expect(extended.code).toBe("extendFootprintTtlSuccess")
      expect((extended.meta!.value as any).operations[0].changes.map(({ value }: any) => value.data?.type)).toEqual([
        "ttl",
        "ttl"
      ])
      const until = (yield* ledger.call("getLatestLedger")).sequence + 500
      expect(yield* liveUntil(key)).toBe(until)
      expect((yield* done(owner, extendTo(20), { readOnly: [key] })).code).toBe("extendFootprintTtlSuccess")
      expect(yield* liveUntil(key)).toBe(until)
    }).pipe(Effect.provide(layer))
  )

  it.effect("passes over what is not there and what is archived", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const { owner, key, until } = yield* deployed
      yield* ledger.closeMany(LIVES + 1)
      expect((yield* done(owner, extendTo(500), { readOnly: [key, temporaryKey(key)] })).code).toBe(
        "extendFootprintTtlSuccess"
      )
      expect(yield* liveUntil(key)).toBe(until)
    }).pipe(Effect.provide(layer))
  )

  it.effect("ExtendFootprintTTL refuses writes, classic entries and excessive lifetimes", () =>
    Effect.gen(function* () {
      const { owner, key } = yield* deployed
      const malformed = "extendFootprintTtlMalformed"
      expect((yield* done(owner, extendTo(500), { readWrite: [key] })).code).toBe(malformed)
      expect((yield* done(owner, extendTo(500), { readOnly: [accountKey(owner)] })).code).toBe(malformed)
      const longest = testnet.ttl.maxEntryLedgers - 1
      expect((yield* done(owner, extendTo(longest + 1), { readOnly: [key] })).code).toBe(malformed)
      expect([
        ...(yield* reportedOf(owner, extendTo(500), { readWrite: [key] })),
        ...(yield* reportedOf(owner, extendTo(500), { readOnly: [accountKey(owner)] })),
        ...(yield* reportedOf(owner, extendTo(longest + 1), { readOnly: [key] }))
      ]).toEqual([
        "Error(Storage, InvalidInput) read-write footprint must be empty for ExtendFootprintTTL operation",
        "Error(Storage, InvalidInput) only entries with TTL (contract data or code entries) can have it extended",
        `Error(Storage, InvalidInput) TTL extension is too large: {} > {} ${longest + 1} ${longest}`
      ])
      expect((yield* done(owner, extendTo(longest), { readOnly: [key], resourceFee: 100_000_000 })).code).toBe(
        "extendFootprintTtlSuccess"
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("ExtendFootprintTTL fails without effect if the refundable fee is short", () =>
    Effect.gen(function* () {
      const { owner, key, until } = yield* deployed
      const poor = yield* done(owner, extendTo(1_000_000), { readOnly: [key], resourceFee: 60_000 })
      expect(poor.code).toBe("extendFootprintTtlInsufficientRefundableFee")
      expect(reportedBy(poor.raw?.diagnosticEventsXdr)).toEqual([
        expect.stringMatching(
          /refundable resource fee was not sufficient to cover the ledger storage rent: \{\} > \{\} \d+ \d+$/
        )
      ])
      expect(yield* liveUntil(key)).toBe(until)
    }).pipe(Effect.provide(layer))
  )
})

describe("both", () => {
  it.effect("take a memo and a multiplexed source, which a call does not", () =>
    Effect.gen(function* () {
      const { owner, key } = yield* deployed
      const muxed = new MuxedAccount(new Account(owner.publicKey(), "0"), "7").accountId()
      const memo = Memo.text("for the archive")
      for (const [operation, footprint, code] of [
        [
          Operation.extendFootprintTtl({ extendTo: 500, source: muxed }),
          { readOnly: [key] },
          "extendFootprintTtlSuccess"
        ],
        [Operation.restoreFootprint({ source: muxed }), { readWrite: [key] }, "restoreFootprintSuccess"]
      ] as const)
        expect((yield* done(owner, operation, { ...footprint, memo })).code).toBe(code)
    }).pipe(Effect.provide(layer))
  )
})

describe("RestoreFootprint", () => {
  it.effect("RestoreFootprint restores archived entries for the minimum life, skipping live ones", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const { owner, key, until } = yield* deployed
      const restore = Operation.restoreFootprint({})
      expect((yield* done(owner, restore, { readWrite: [key] })).code).toBe("restoreFootprintSuccess")
      expect(yield* liveUntil(key)).toBe(until)
      yield* ledger.closeMany(LIVES + 1)
      expect((yield* done(owner, restore, { readWrite: [key] })).code).toBe("restoreFootprintSuccess")
      expect(yield* liveUntil(key)).toBe((yield* ledger.call("getLatestLedger")).sequence + LIVES - 1)
    }).pipe(Effect.provide(layer))
  )

  it.effect("RestoreFootprint refuses read-only keys and entries without a TTL", () =>
    Effect.gen(function* () {
      const { owner, key } = yield* deployed
      const restore = Operation.restoreFootprint({})
      const malformed = "restoreFootprintMalformed"
      expect((yield* done(owner, restore, { readOnly: [key] })).code).toBe(malformed)
      expect((yield* done(owner, restore, { readWrite: [temporaryKey(key)] })).code).toBe(malformed)
      expect((yield* done(owner, restore, { readWrite: [accountKey(owner)] })).code).toBe(malformed)
      expect([
        ...(yield* reportedOf(owner, restore, { readOnly: [key] })),
        ...(yield* reportedOf(owner, restore, { readWrite: [temporaryKey(key)] }))
      ]).toEqual([
        "Error(Storage, InvalidInput) read-only footprint must be empty for RestoreFootprint operation",
        "Error(Storage, InvalidInput) only persistent Soroban entries can be restored"
      ])
    }).pipe(Effect.provide(layer))
  )

  it.effect("RestoreFootprint fails without effect beyond declared bytes or fee", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const { owner, key } = yield* deployed
      yield* ledger.closeMany(LIVES + 1)
      const restore = Operation.restoreFootprint({})
      const price = Number((yield* done(owner, restore, { readWrite: [key] })).result!.feeCharged) - 100
      const until = yield* liveUntil(key)
      yield* ledger.closeMany(LIVES + 1)
      const many = yield* done(owner, restore, { readWrite: [key], bytes: 40 })
      expect(many.code).toBe("restoreFootprintResourceLimitExceeded")
      expect(reportedBy(many.raw?.diagnosticEventsXdr)).toEqual([
        expect.stringMatching(/operation byte-read resources exceeds amount specified \d+ 40$/)
      ])
      expect((yield* done(owner, restore, { readWrite: [key], resourceFee: price - 1 })).code).toBe(
        "restoreFootprintInsufficientRefundableFee"
      )
      expect(yield* liveUntil(key)).toBe(until)
      expect((yield* done(owner, restore, { readWrite: [key], resourceFee: price })).code).toBe(
        "restoreFootprintSuccess"
      )
    }).pipe(Effect.provide(layer))
  )
})

describe("an envelope", () => {
  it.effect("an envelope with an extra or duplicate signature is txBAD_AUTH_EXTRA", () =>
    Effect.gen(function* () {
      const [payer, sponsor] = [yield* fund("payer"), yield* fund("sponsor")]
      const pay = Operation.payment({ destination: sponsor.publicKey(), asset: Asset.native(), amount: "1" })
      const signedBy = (signers: ReadonlyArray<Keypair>) => transaction(payer, [pay], { signers })
      expect((yield* send(yield* signedBy([payer, keypair("stranger")]))).code).toBe("txBadAuthExtra")
      expect((yield* send(yield* signedBy([payer, payer]))).code).toBe("txBadAuthExtra")
      expect((yield* send(feeBump(sponsor, "300", yield* signedBy([payer]), [sponsor, sponsor]))).code).toBe(
        "txBadAuthExtra"
      )
      const inside = yield* send(feeBump(sponsor, "300", yield* signedBy([payer, sponsor])))
      expect((inside.error!.result as any).innerResultPair.result.result.type).toBe("txBadAuthExtra")
      expect((yield* send(yield* signedBy([payer]))).status).toBe("PENDING")
    }).pipe(Effect.provide(layer))
  )

  it.effect("a signature made redundant in the same ledger is txBAD_AUTH_EXTRA with fee", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const [payer, other] = [yield* fund("payer"), yield* fund("other")]
      const signer = keypair("signer")
      const two = Operation.setOptions({
        signer: { ed25519PublicKey: signer.publicKey(), weight: 1 },
        lowThreshold: 2,
        medThreshold: 2,
        highThreshold: 2
      })
      yield* apply(yield* transaction(payer, [two]))
      const one = Operation.setOptions({ lowThreshold: 1, medThreshold: 1, source: payer.publicKey() })
      const both = yield* transaction(payer, [Operation.bumpSequence({ bumpTo: "0" })], { signers: [payer, signer] })
      expect(
        (yield* send(yield* transaction(other, [one], { fee: "5000", signers: [other, payer, signer] }))).status
      ).toBe("PENDING")
      const sent = yield* send(both)
      expect(sent.status).toBe("PENDING")
      yield* ledger.close
      const included = yield* ledger.call("getTransaction", { hash: sent.hash })
      const result = xdr.TransactionResult.fromXdr(included.resultXdr, "base64")
      expect([included.status, result.result.type, result.feeCharged]).toEqual(["FAILED", "txBadAuthExtra", 100n])
    }).pipe(Effect.provide(layer))
  )

  it.effect("a fee-bumped transaction is found by both hashes", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const [payer, sponsor] = [yield* fund("payer"), yield* fund("sponsor")]
      const inner = yield* transaction(payer, [Operation.bumpSequence({ bumpTo: "0" })])
      const bumped = feeBump(sponsor, "300", inner)
      yield* apply(bumped)
      const hashes = [bumped.hash(), inner.hash()].map((hash) => Buffer.from(hash).toString("hex"))
      const [outer, own] = yield* Effect.forEach(hashes, (hash) => ledger.call("getTransaction", { hash }))
      expect([outer.status, own.status]).toEqual(["SUCCESS", "SUCCESS"])
      expect([outer.txHash, own.txHash]).toEqual(hashes)
      expect([outer.feeBump, own.feeBump]).toEqual([true, true])
      expect([own.envelopeXdr, own.resultXdr, own.ledger]).toEqual([outer.envelopeXdr, outer.resultXdr, outer.ledger])
    }).pipe(Effect.provide(layer))
  )
})
