// Every transaction-level result code that the ledger gives, by a transaction that deserves it.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { Asset, Contract, Keypair, Operation, TransactionBuilder, xdr } from "@stellar/stellar-sdk"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { NATIVE_CONTRACT } from "../../../../plugins/ledger-local/node/accounts.ts"
import {
  account,
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

const pay = (to: Keypair, amount = "1", source?: Keypair) =>
  Operation.payment({
    destination: to.publicKey(),
    asset: Asset.native(),
    amount,
    ...(source === undefined ? {} : { source: source.publicKey() })
  })

const unbounded = (configure: (builder: TransactionBuilder) => TransactionBuilder) => ({
  configure: (builder: TransactionBuilder) => configure(builder.setTimeout(0))
})

/** The envelope's wire form, changed. */
const changed = (tx: { toEnvelope(): xdr.TransactionEnvelope }, change: (wire: any) => void): string => {
  const wire = tx.toEnvelope().toXdrObject() as any
  change(wire)
  return xdr.TransactionEnvelope.fromXdrObject(wire).toXdr("base64")
}

const sendRaw = Effect.fnUntraced(function* (envelope: string) {
  const ledger = yield* LocalLedger
  const answer = yield* ledger.call("sendTransaction", { transaction: envelope })
  const error =
    answer.errorResultXdr === undefined ? undefined : xdr.TransactionResult.fromXdr(answer.errorResultXdr, "base64")
  return {
    status: answer.status as string,
    code: error?.result.type as string | undefined,
    diagnostics: answer.diagnosticEventsXdr
  }
})

const soroban = Effect.fnUntraced(function* (source: Keypair, change: (wire: any) => void = () => undefined) {
  const ledger = yield* LocalLedger
  const call = new Contract(NATIVE_CONTRACT).call("decimals")
  const draft = yield* transaction(source, [call])
  const simulated = yield* ledger.call("simulateTransaction", { transaction: draft.toEnvelope().toXdr("base64") })
  const built = yield* transaction(source, [call], {
    fee: (BigInt(simulated.minResourceFee) + 100n).toString(),
    signers: [],
    configure: (builder) => builder.setSorobanData(simulated.transactionData).setTimeout(0)
  })
  const wire = built.toEnvelope().toXdrObject() as any
  change(wire.v1.tx)
  const again = TransactionBuilder.fromXdr(xdr.TransactionEnvelope.fromXdrObject(wire), passphrase)
  again.sign(source)
  return again.toEnvelope().toXdr("base64")
})

describe("what a transaction is refused for", () => {
  it.effect("refuses transactions before or after their time and ledger bounds", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const payer = yield* fund("payer")
      const { sequence } = yield* ledger.call("getLatestLedger")
      const code = (configure: (builder: TransactionBuilder) => TransactionBuilder) =>
        Effect.flatMap(transaction(payer, [pay(keypair("seller"))], { configure }), send).pipe(
          Effect.map((sent) => sent.code ?? sent.status)
        )
      expect(yield* code((builder) => builder.setTimebounds(1_000, 0))).toBe("txTooEarly")
      expect(yield* code((builder) => builder.setTimeout(0).setLedgerbounds(sequence + 2, 0))).toBe("txTooEarly")
      expect(yield* code((builder) => builder.setTimeout(0).setLedgerbounds(0, sequence + 1))).toBe("txTooLate")
      expect(yield* code((builder) => builder.setTimeout(0).setLedgerbounds(sequence + 1, sequence + 2))).toBe(
        "PENDING"
      )
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("refuses bad sequence, account, signature, fee and balance", () =>
    Effect.gen(function* () {
      const payer = yield* fund("payer")
      const other = yield* fund("other")
      const absent = keypair("absent")
      const next = (yield* account(payer.publicKey()))!.seqNum + 1n
      const of = (options: Parameters<typeof transaction>[2], source = payer, amount = "1") =>
        Effect.flatMap(transaction(source, [pay(other, amount)], options), send)
      expect((yield* of({ sequence: next + 1n })).code).toBe("txBadSeq")
      expect((yield* of({ sequence: next - 1n })).code).toBe("txBadSeq")
      expect((yield* of({ sequence: 1n }, absent)).code).toBe("txNoAccount")
      expect((yield* of({ signers: [other] })).code).toBe("txBadAuth")
      expect((yield* of({ signers: [] })).code).toBe("txBadAuth")
      expect((yield* of({ signers: [payer, other] })).code).toBe("txBadAuthExtra")
      const cheap = yield* of({ fee: "99" })
      expect(cheap.code).toBe("txInsufficientFee")
      expect(cheap.error!.feeCharged).toBe(100n)
      expect((yield* of({ fee: "4294967295" }, yield* drained)).code).toBe("txInsufficientBalance")
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("refuses malformed transactions: empty, mixed, duplicate extra signers, old envelopes", () =>
    Effect.gen(function* () {
      const payer = yield* fund("payer")
      const tx = yield* transaction(payer, [pay(keypair("seller"))])
      expect((yield* sendRaw(changed(tx, (wire) => (wire.v1.tx.operations = [])))).code).toBe("txMissingOperation")
      const call = yield* soroban(payer)
      const two = xdr.TransactionEnvelope.fromXdr(call, "base64").toXdrObject() as any
      two.v1.tx.operations.push((tx.toEnvelope().toXdrObject() as any).v1.tx.operations[0])
      expect((yield* sendRaw(xdr.TransactionEnvelope.fromXdrObject(two).toXdr("base64"))).code).toBe("txMalformed")
      const data = two.v1.tx.ext
      expect((yield* sendRaw(changed(tx, (wire) => (wire.v1.tx.ext = data)))).code).toBe("txMalformed")
      const extra = keypair("extra").publicKey()
      const doubled = yield* transaction(
        payer,
        [pay(keypair("seller"))],
        unbounded((builder) => builder.setExtraSigners([extra, extra]))
      )
      expect((yield* send(doubled)).code).toBe("txMalformed")
      const v1 = tx.toEnvelope().toXdrObject() as any
      const v0 = {
        type: 0,
        v0: {
          tx: {
            sourceAccountEd25519: v1.v1.tx.sourceAccount.ed25519,
            fee: 100,
            seqNum: v1.v1.tx.seqNum,
            timeBounds: null,
            memo: { type: 0 },
            operations: v1.v1.tx.operations,
            ext: { v: 0 }
          },
          signatures: v1.v1.signatures
        }
      }
      expect((yield* sendRaw(xdr.TransactionEnvelope.fromXdrObject(v0 as any).toXdr("base64"))).code).toBe(
        "txNotSupported"
      )
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("honors minimum sequence number, age, gap and extra signers", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const payer = yield* fund("payer")
      const extra = keypair("extra")
      const start = (yield* account(payer.publicKey()))!.seqNum
      yield* apply(yield* transaction(payer, [pay(keypair("payer2"))]))
      const operations = [Operation.bumpSequence({ bumpTo: "0" })]
      const of = (
        sequence: bigint,
        configure: (builder: TransactionBuilder) => TransactionBuilder,
        signers = [payer]
      ) =>
        Effect.flatMap(
          transaction(payer, operations, {
            sequence,
            signers,
            configure: (builder) => configure(builder.setTimeout(0))
          }),
          send
        )
      expect((yield* of(start + 9n, (builder) => builder.setMinAccountSequence((start + 5n).toString()))).code).toBe(
        "txBadSeq"
      )
      expect((yield* of(start + 2n, (builder) => builder.setMinAccountSequenceAge(60n as any))).code).toBe(
        "txBadMinSeqAgeOrGap"
      )
      expect((yield* of(start + 2n, (builder) => builder.setMinAccountSequenceLedgerGap(3))).code).toBe(
        "txBadMinSeqAgeOrGap"
      )
      expect((yield* of(start + 2n, (builder) => builder.setExtraSigners([extra.publicKey()]))).code).toBe("txBadAuth")
      yield* ledger.closeMany(2)
      const skipped = yield* of(
        start + 9n,
        (builder) =>
          builder
            .setMinAccountSequence(start.toString())
            .setMinAccountSequenceLedgerGap(3)
            .setExtraSigners([extra.publicKey()]),
        [payer, extra]
      )
      expect(skipped.status).toBe("PENDING")
      yield* ledger.close
      expect((yield* account(payer.publicKey()))!.seqNum).toBe(start + 9n)
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("a contract call takes a hash signer with its preimage, at the simulated fee", () =>
    Effect.gen(function* () {
      const payer = yield* fund("payer")
      const preimage = new Uint8Array(32).fill(9)
      const hashX = new Uint8Array(createHash("sha256").update(preimage).digest())
      const asking = (tx: any) =>
        (tx.cond = {
          type: 2,
          v2: {
            timeBounds: null,
            ledgerBounds: null,
            minSeqNum: null,
            minSeqAge: 0n,
            minSeqLedgerGap: 0,
            extraSigners: [{ type: 2, hashX }]
          }
        })
      const signedWith = (call: string, signature: Uint8Array) => {
        const wire = xdr.TransactionEnvelope.fromXdr(call, "base64").toXdrObject() as any
        wire.v1.signatures.push({ hint: hashX.slice(28), signature })
        return sendRaw(xdr.TransactionEnvelope.fromXdrObject(wire).toXdr("base64"))
      }
      const call = yield* soroban(payer, asking)
      expect((yield* sendRaw(call)).code).toBe("txBadAuth")
      expect((yield* signedWith(call, new Uint8Array(32))).code).toBe("txBadAuth")
      expect((yield* signedWith(yield* soroban(payer), preimage)).code).toBe("txBadAuthExtra")
      const before = (yield* account(payer.publicKey()))!.seqNum
      expect((yield* signedWith(call, preimage)).status).toBe("PENDING")
      yield* (yield* LocalLedger).close
      expect((yield* account(payer.publicKey()))!.seqNum).toBe(before + 1n)
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("contract transactions obey limits, fees, unique keys, no memo, no muxing", () =>
    Effect.gen(function* () {
      const payer = yield* fund("payer")
      const refused = (change: (tx: any) => void) => Effect.flatMap(soroban(payer, change), sendRaw)
      const invalid = { status: "ERROR", code: "txSorobanInvalid" }
      const noted = yield* refused((tx) => (tx.memo = { type: 2, id: 1n }))
      expect(noted).toMatchObject(invalid)
      expect(reportedBy(noted.diagnostics)).toEqual([
        "Error(Value, InvalidInput) Soroban transactions are not allowed to use memo or muxed source account"
      ])
      expect(
        yield* refused(
          (tx) => (tx.sourceAccount = { type: 256, med25519: { id: 7n, ed25519: tx.sourceAccount.ed25519 } })
        )
      ).toMatchObject(invalid)
      const resources = (change: (resources: any) => void) => (tx: any) => change(tx.ext.sorobanData.resources)
      expect(yield* refused(resources((data) => (data.instructions = 400_000_001)))).toMatchObject(invalid)
      expect(yield* refused(resources((data) => (data.diskReadBytes = 200_001)))).toMatchObject(invalid)
      expect(yield* refused(resources((data) => (data.writeBytes = 132_097)))).toMatchObject(invalid)
      expect(
        yield* refused(resources((data) => data.footprint.readOnly.push(data.footprint.readOnly[0])))
      ).toMatchObject(invalid)
      expect(
        yield* refused(
          resources((data) => data.footprint.readOnly.push({ type: 9, ttl: { keyHash: new Uint8Array(32) } }))
        )
      ).toMatchObject(invalid)
      expect(
        yield* refused((tx) => (tx.ext.sorobanData.ext = { v: 1, resourceExt: { archivedSorobanEntries: [0] } }))
      ).toMatchObject(invalid)
      expect(yield* refused((tx) => (tx.ext.sorobanData.resourceFee = 10n))).toMatchObject(invalid)
      const reported = yield* refused((tx) => (tx.ext.sorobanData.resourceFee = BigInt(tx.fee) + 1n))
      expect(reported).toMatchObject(invalid)
      const words = "transaction `sorobanData.resourceFee` is higher than the full transaction fee"
      expect(reportedBy(reported.diagnostics)).toEqual([
        expect.stringContaining(`Error(Value, ExceededLimit) ${words}`)
      ])
      expect((yield* refused((tx) => (tx.ext.sorobanData.resourceFee = -1n))).code).toBe("txMalformed")
      expect((yield* refused(() => undefined)).status).toBe("PENDING")
    }).pipe(Effect.provide(ledgerLayer()))
  )
})

describe("a fee bump", () => {
  it.effect("a fee bump reports the inner hash and charges the payer", () =>
    Effect.gen(function* () {
      const [payer, sponsor] = [yield* fund("payer"), yield* fund("sponsor")]
      const before = (yield* account(sponsor.publicKey()))!.balance
      const inner = yield* transaction(payer, [pay(sponsor, "5")])
      const done = yield* apply(feeBump(sponsor, "200", inner))
      expect(done.code).toBe("txFeeBumpInnerSuccess")
      const pair = (done.result!.result as any).innerResultPair
      expect(Buffer.from(pair.transactionHash.toXdrObject()).toString("hex")).toBe(
        Buffer.from(inner.hash()).toString("hex")
      )
      expect(pair.result.feeCharged).toBe(0n)
      expect(done.result!.feeCharged).toBe(200n)
      expect((yield* account(sponsor.publicKey()))!.balance).toBe(before + 5_0000000n - 200n)
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("a refused fee bump has its own code or the inner one", () =>
    Effect.gen(function* () {
      const [payer, sponsor] = [yield* fund("payer"), yield* fund("sponsor")]
      const inner = yield* transaction(payer, [pay(sponsor, "5")], { fee: "150" })
      const own = (fee: string, signers?: ReadonlyArray<Keypair>, from = sponsor) =>
        send(feeBump(from, fee, inner, signers))
      const cheap = (fee: bigint) =>
        sendRaw(changed(feeBump(sponsor, "1000", inner), (wire) => (wire.feeBump.tx.fee = fee)))
      expect((yield* cheap(199n)).code).toBe("txInsufficientFee")
      expect((yield* cheap(299n)).code).toBe("txInsufficientFee")
      expect((yield* own("300", [payer])).code).toBe("txBadAuth")
      expect((yield* own("300", [sponsor, payer])).code).toBe("txBadAuthExtra")
      expect((yield* own("300", undefined, keypair("absent"))).code).toBe("txNoAccount")
      expect((yield* own("99999999999999")).code).toBe("txInsufficientBalance")
      const stale = yield* transaction(payer, [pay(sponsor)], { sequence: 3n })
      const refused = yield* send(feeBump(sponsor, "300", stale))
      expect(refused.code).toBe("txFeeBumpInnerFailed")
      expect((refused.error!.result as any).innerResultPair.result.result.type).toBe("txBadSeq")
      expect((yield* own("300")).status).toBe("PENDING")
    }).pipe(Effect.provide(ledgerLayer()))
  )
})

describe("an operation's source", () => {
  it.effect("an operation's source must sign at the operation's threshold", () =>
    Effect.gen(function* () {
      const [payer, other] = [yield* fund("payer"), yield* fund("other")]
      const foreign = yield* transaction(payer, [pay(payer, "1", other)])
      const refused = yield* send(foreign)
      expect(refused.code).toBe("txFailed")
      expect(operationCode(refused.error)).toBe("opBadAuth")
      const signer = keypair("signer")
      yield* apply(
        yield* transaction(payer, [
          Operation.setOptions({
            signer: { ed25519PublicKey: signer.publicKey(), weight: 1 },
            lowThreshold: 1,
            medThreshold: 2,
            highThreshold: 2,
            masterWeight: 2
          })
        ])
      )
      const weak = yield* transaction(payer, [pay(other)], { signers: [signer] })
      expect(operationCode((yield* send(weak)).error)).toBe("opBadAuth")
      const low = yield* apply(
        yield* transaction(payer, [Operation.bumpSequence({ bumpTo: "0" })], { signers: [signer] })
      )
      expect(low.status).toBe("SUCCESS")
      const missing = yield* transaction(payer, [pay(other, "1", keypair("absent"))], {
        signers: [payer, keypair("absent")]
      })
      expect(operationCode((yield* apply(missing)).result)).toBe("opNoAccount")
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("inflation is not supported, as since protocol 12", () =>
    Effect.gen(function* () {
      const payer = yield* fund("payer")
      const refused = yield* send(yield* transaction(payer, [Operation.inflation({})]))
      expect(operationCode(refused.error)).toBe("opNotSupported")
    }).pipe(Effect.provide(ledgerLayer()))
  )
})

/** An account with nothing above its reserve. */
const drained = Effect.gen(function* () {
  const poor = yield* fund("poor")
  const balance = (yield* account(poor.publicKey()))!.balance
  const amount = (Number(balance - 10_000_100n) / 1e7).toFixed(7)
  yield* apply(yield* transaction(poor, [pay(keypair("payer"), amount)]))
  return poor
})
