// simulateTransaction in all its modes, and the life and death of contract entries.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  Address,
  Asset,
  Contract,
  type Keypair,
  Memo,
  nativeToScVal,
  Operation,
  SorobanDataBuilder,
  xdr
} from "@stellar/stellar-sdk"
import { testnet } from "../../../../plugins/ledger-local/engine/state/NetworkSettings.ts"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { USDC_CONTRACT } from "../../../../plugins/ledger-local/node/accounts.ts"
import { apply, fund, ledgerLayer, passphrase, transaction } from "../support.ts"

const transfer = (from: Keypair, to: Keypair, units: bigint, contract = USDC_CONTRACT) =>
  new Contract(contract).call(
    "transfer",
    new Address(from.publicKey()).toScVal(),
    new Address(to.publicKey()).toScVal(),
    nativeToScVal(units, { type: "i128" })
  )

const simulate = Effect.fnUntraced(function* (
  source: Keypair,
  operation: xdr.Operation,
  more: object = {},
  configure?: (builder: any) => any
) {
  const ledger = yield* LocalLedger
  const tx = yield* transaction(source, [operation], {
    signers: [],
    ...(configure === undefined ? {} : { configure: (builder) => configure(builder.setTimeout(0)) })
  })
  return yield* ledger.call("simulateTransaction", { transaction: tx.toEnvelope().toXdr("base64"), ...more })
})

/** Simulates and applies as simulated; the source authorizes by being the source. */
const invoke = Effect.fnUntraced(function* (source: Keypair, operation: xdr.Operation, data?: string) {
  const simulated = yield* simulate(source, operation)
  const transactionData = data ?? simulated.transactionData
  const fee = (BigInt(new SorobanDataBuilder(transactionData).build().resourceFee) + 100n).toString()
  const body = (operation.body as any).invokeHostFunctionOp ?? (operation.body as any).value
  const auth = (simulated.results?.[0]?.auth ?? []).map((entry: string) =>
    xdr.SorobanAuthorizationEntry.fromXdr(entry, "base64")
  )
  const call =
    body?.hostFunction === undefined ? operation : Operation.invokeHostFunction({ func: body.hostFunction, auth })
  return yield* apply(
    yield* transaction(source, [call], {
      fee,
      configure: (builder) => builder.setSorobanData(transactionData).setTimeout(0)
    })
  )
})

describe("simulateTransaction", () => {
  it.effect("records the authorization to sign, with the credentials that are asked for", () =>
    Effect.gen(function* () {
      const [buyer, seller, channel] = [
        yield* fund("buyer", 10_0000000n),
        yield* fund("seller", 0n),
        yield* fund("channel")
      ]
      const operation = transfer(buyer, seller, 1n)
      const recorded = yield* simulate(channel, operation)
      const [entry] = recorded.results[0].auth.map(
        (text: string) => xdr.SorobanAuthorizationEntry.fromXdr(text, "base64").toXdrObject() as any
      )
      expect(entry.credentials.type).toBe(1)
      expect(entry.credentials.address).toMatchObject({ signatureExpirationLedger: 0, signature: { type: 1 } })
      const upgraded = yield* simulate(channel, operation, { useUpgradedAuth: true })
      expect(
        (xdr.SorobanAuthorizationEntry.fromXdr(upgraded.results[0].auth[0], "base64").toXdrObject() as any).credentials
          .type
      ).toBe(2)
      const bySource = yield* simulate(buyer, operation)
      expect(
        (xdr.SorobanAuthorizationEntry.fromXdr(bySource.results[0].auth[0], "base64").toXdrObject() as any).credentials
          .type
      ).toBe(0)
      expect(recorded.events.length).toBeGreaterThan(0)
      expect(recorded.stateChanges.map(({ type }: any) => type).sort()).toEqual(["created", "updated", "updated"])
      const created = recorded.stateChanges.find(({ type }: any) => type === "created")
      expect([created.before, typeof created.after]).toEqual([null, "string"])
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("pads instructions by 4 %, 50 000 or the requested leeway", () =>
    Effect.gen(function* () {
      const payer = yield* fund("payer")
      const instructions = (answer: any): number =>
        new SorobanDataBuilder(answer.transactionData).build().resources.instructions
      const call = new Contract(USDC_CONTRACT).call("decimals")
      const plain = instructions(yield* simulate(payer, call))
      const roomy = instructions(yield* simulate(payer, call, { resourceConfig: { instructionLeeway: 1_000_000 } }))
      expect(roomy - plain).toBe(950_000)
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("declares enough for an account's first transaction, which grows its entry", () =>
    Effect.gen(function* () {
      const [payer, payee] = [yield* fund("payer"), yield* fund("payee")]
      const operation = transfer(payer, payee, 5n, Asset.native().contractId(passphrase))
      for (const place of ["first", "second"])
        expect([place, (yield* invoke(payer, operation)).status]).toEqual([place, "SUCCESS"])
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("reports an unsupported simulation in `error`", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const payer = yield* fund("payer")
      const call = new Contract(USDC_CONTRACT).call("decimals")
      const raw = (transaction: string, more: object = {}) =>
        ledger.call("simulateTransaction", { transaction, ...more })
      expect(yield* raw("AAAA")).toEqual({ error: "Could not unmarshal transaction", latestLedger: 1_001 })
      const two = yield* transaction(payer, [call, call], { signers: [] })
      expect((yield* raw(two.toEnvelope().toXdr("base64"))).error).toBe("Transaction contains more than one operation")
      const withMemo = yield* simulate(payer, call, {}, (builder) => builder.addMemo(Memo.text("x")))
      expect(withMemo.error).toBe("Transaction contains a memo. Soroban transactions do not support memos.")
      expect((yield* simulate(payer, call, { authMode: "maybe" })).error).toContain(
        "optional 'authMode' must be one of enforce,record,record_allow_nonroot"
      )
      expect((yield* simulate(payer, Operation.bumpSequence({ bumpTo: "0" }))).error).toContain(
        "transaction contains unsupported operation type"
      )
      expect((yield* simulate(payer, Operation.restoreFootprint({}))).error).toContain(
        "SorobanTransactionData must be provided"
      )
      const missing = new Contract(Asset.native().contractId("Another network")).call("decimals")
      expect((yield* simulate(payer, missing)).error).toMatch(
        /^HostError: Error\(Storage, MissingValue\)\n\nEvent log \(newest first\):\n {3}0: \[Diagnostic Event\]/
      )
    }).pipe(Effect.provide(ledgerLayer()))
  )
})

const shortLives = { settings: { ...testnet, ttl: { ...testnet.ttl, minPersistentLedgers: 10 } } }

describe("an archived entry", () => {
  it.effect("an archived entry needs a restore preamble and RestoreFootprint", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const payer = yield* fund("payer")
      const asset = new Asset("OLD", payer.publicKey())
      expect((yield* invoke(payer, Operation.createStellarAssetContract({ asset }))).status).toBe("SUCCESS")
      const contract = new Contract(asset.contractId(passphrase))
      expect((yield* simulate(payer, contract.call("decimals"))).restorePreamble).toBeUndefined()
      yield* ledger.closeMany(12)
      const announced = yield* simulate(payer, contract.call("decimals"))
      expect(announced.results[0].xdr).toBe(xdr.ScVal.scvU32(7).toXdr("base64"))
      const { restorePreamble } = announced
      expect(BigInt(restorePreamble.minResourceFee)).toBeGreaterThan(0n)
      const restored = yield* apply(
        yield* transaction(payer, [Operation.restoreFootprint({})], {
          fee: (BigInt(restorePreamble.minResourceFee) + 100n).toString(),
          configure: (builder) => builder.setSorobanData(restorePreamble.transactionData).setTimeout(0)
        })
      )
      expect(restored.status).toBe("SUCCESS")
      expect((restored.meta!.value as any).operations[0].changes.map((change: any) => change.type)).toEqual([
        "ledgerEntryRestored",
        "ledgerEntryRestored"
      ])
      expect((yield* simulate(payer, contract.call("decimals"))).restorePreamble).toBeUndefined()
    }).pipe(Effect.provide(ledgerLayer(shortLives)))
  )

  it.effect("a named archived entry is restored automatically; an unnamed one fails", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const payer = yield* fund("payer")
      const asset = new Asset("OLD", payer.publicKey())
      yield* invoke(payer, Operation.createStellarAssetContract({ asset }))
      const contract = new Contract(asset.contractId(passphrase))
      yield* ledger.closeMany(12)
      const { transactionData } = yield* simulate(payer, contract.call("symbol"))
      const data = xdr.SorobanTransactionData.fromXdr(transactionData, "base64").toXdrObject() as any
      expect(data.ext.resourceExt.archivedSorobanEntries).toEqual([0])
      const unmarked = xdr.SorobanTransactionData.fromXdrObject({ ...data, ext: { v: 0 } }).toXdr("base64")
      const failed = yield* invoke(payer, contract.call("symbol"), unmarked)
      expect((failed.result!.result as any).results[0].tr.value.type).toBe("invokeHostFunctionEntryArchived")
      expect((yield* invoke(payer, contract.call("symbol"), transactionData)).status).toBe("SUCCESS")
    }).pipe(Effect.provide(ledgerLayer(shortLives)))
  )

  it.effect("an extended entry is not archived", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const payer = yield* fund("payer")
      const asset = new Asset("OLD", payer.publicKey())
      yield* invoke(payer, Operation.createStellarAssetContract({ asset }))
      const contract = new Contract(asset.contractId(passphrase))
      const draft = new SorobanDataBuilder().setReadOnly([contract.getFootprint()]).build()
      const extend = Operation.extendFootprintTtl({ extendTo: 1_000 })
      const simulated = yield* simulate(payer, extend, {}, (builder) => builder.setSorobanData(draft))
      const done = yield* apply(
        yield* transaction(payer, [extend], {
          fee: (BigInt(simulated.minResourceFee) + 100n).toString(),
          configure: (builder) => builder.setSorobanData(simulated.transactionData).setTimeout(0)
        })
      )
      expect(done.status).toBe("SUCCESS")
      yield* ledger.closeMany(500)
      expect((yield* simulate(payer, contract.call("decimals"))).restorePreamble).toBeUndefined()
    }).pipe(Effect.provide(ledgerLayer(shortLives)))
  )
})

describe("a contract transaction", () => {
  it.effect("a failed contract transaction pays only its nonrefundable fee", () =>
    Effect.gen(function* () {
      const [buyer, seller] = [yield* fund("buyer", 10_0000000n), yield* fund("seller", 0n)]
      const simulated = yield* simulate(buyer, transfer(buyer, seller, 1n))
      const fee = BigInt(simulated.minResourceFee) + 100n
      const tx = yield* transaction(buyer, [transfer(buyer, seller, 99_0000000n)], {
        fee: fee.toString(),
        configure: (builder) => builder.setSorobanData(simulated.transactionData).setTimeout(0)
      })
      const failed = yield* apply(tx)
      expect(failed.status).toBe("FAILED")
      expect((failed.result!.result as any).results[0].tr.value.type).toBe("invokeHostFunctionTrapped")
      expect(failed.result!.feeCharged).toBeLessThan(fee)
      expect(failed.raw.diagnosticEventsXdr.length).toBeGreaterThan(0)
      const again = yield* invoke(buyer, transfer(buyer, seller, 2n))
      expect(again.status).toBe("SUCCESS")
    }).pipe(Effect.provide(ledgerLayer()))
  )
})
