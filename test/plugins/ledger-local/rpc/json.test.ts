// Answers in JSON: the content of the base64, under Stellar RPC's names. Also the network's settings as ledger entries,
// read back by the reader that follows a real network's upgrades.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Asset, Contract, Operation, xdr } from "@stellar/stellar-sdk"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import {
  type NetworkSettings,
  testnet,
  withConfigSettings
} from "../../../../plugins/ledger-local/engine/state/NetworkSettings.ts"
import { codec } from "../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { apply, fund, keypair, ledgerLayer, passphrase, transaction } from "../support.ts"

interface Type {
  readonly fromJson: (json: any) => { readonly toXdr: (format: "base64") => string }
}

/** A field in base64 and as JSON, with its type. */
type Pair = readonly [base64: unknown, json: unknown, type: Type]

const encoded = (json: unknown, type: Type): unknown =>
  Array.isArray(json) ? json.map((one) => encoded(one, type)) : type.fromJson(json).toXdr("base64")

/** Compares each JSON with its base64, and returns the field names of an answer in JSON. */
const hold = (pairs: ReadonlyArray<Pair>): void => {
  for (const [base64, json, type] of pairs) {
    expect(base64).toBeDefined()
    expect(encoded(json, type)).toEqual(base64)
  }
}

const native = new Contract(Asset.native().contractId(passphrase))

const transfer = native.call(
  "transfer",
  xdr.ScVal.scvAddress(xdr.ScAddress.fromJson(keypair("a").publicKey())),
  xdr.ScVal.scvAddress(xdr.ScAddress.fromJson(keypair("b").publicKey())),
  xdr.ScVal.fromJson({ i128: "5" })
)

const draftOf = Effect.map(transaction(keypair("a"), [transfer], { signers: [] }), (tx) =>
  tx.toEnvelope().toXdr("base64")
)

/** A ledger with one contract call, and a function that requests both forms. */
const world = Effect.gen(function* () {
  const ledger = yield* LocalLedger
  for (const name of ["a", "b"]) yield* fund(name)
  const { minResourceFee, transactionData } = yield* ledger.call("simulateTransaction", { transaction: yield* draftOf })
  const paid = yield* apply(
    yield* transaction(keypair("a"), [transfer], {
      fee: (BigInt(minResourceFee) + 100n).toString(),
      configure: (builder) => builder.setSorobanData(transactionData).setTimeout(0)
    })
  )
  // The source's own authorization was not declared, so the call fails, with diagnostics to check.
  expect(paid.status).toBe("FAILED")
  const both = Effect.fnUntraced(function* (method: string, params: object = {}) {
    const base64 = yield* ledger.call(method, params)
    const json = yield* ledger.call(method, { ...params, xdrFormat: "json" })
    return [base64, json] as readonly [any, any]
  })
  return { ledger, both, hash: paid.raw.txHash as string }
})

describe("an answer in JSON", () => {
  it.effect("a JSON transaction equals its base64", () =>
    Effect.gen(function* () {
      const { both, hash } = yield* world
      const [one, inJson] = yield* both("getTransaction", { hash })
      const [{ transactions }, listed] = yield* both("getTransactions", { startLedger: 1_000 })
      for (const [base64, json] of [
        [one, inJson],
        ...transactions.map((tx: any, i: number) => [tx, listed.transactions[i]])
      ]) {
        hold([
          [base64.envelopeXdr, json.envelopeJson, xdr.TransactionEnvelope],
          [base64.resultXdr, json.resultJson, xdr.TransactionResult],
          [base64.resultMetaXdr, json.resultMetaJson, xdr.TransactionMeta],
          [base64.events.transactionEventsXdr, json.events.transactionEventsJson, xdr.TransactionEvent],
          [base64.events.contractEventsXdr, json.events.contractEventsJson, xdr.ContractEvent]
        ])
        expect(JSON.stringify(json)).not.toMatch(/Xdr"/)
        expect(json.txHash).toBe(base64.txHash)
      }
      hold([[one.diagnosticEventsXdr, inJson.diagnosticEventsJson, xdr.DiagnosticEvent]])
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("JSON ledgers, entries and events keep the real RPC's empty fields", () =>
    Effect.gen(function* () {
      const { both, hash, ledger } = yield* world
      const [{ ledgers }, inJson] = yield* both("getLedgers", { startLedger: 1_000 })
      for (const [i, base64] of ledgers.entries()) {
        const json = inJson.ledgers[i]
        expect([json.headerXdr, json.metadataXdr]).toEqual(["", ""])
        hold([
          [base64.headerXdr, json.headerJson, xdr.LedgerHeaderHistoryEntry],
          [base64.metadataXdr, json.metadataJson, xdr.LedgerCloseMeta]
        ])
      }
      const key = codec.LedgerKey.encode({
        type: 0,
        account: { accountId: { type: 0, ed25519: keypair("a").rawPublicKey() } }
      })
      const keys = [Buffer.from(key).toString("base64")]
      const [{ entries }, entriesInJson] = yield* both("getLedgerEntries", { keys })
      expect(Object.keys(entriesInJson.entries[0]).sort()).toEqual([
        "dataJson",
        "extJson",
        "keyJson",
        "lastModifiedLedgerSeq"
      ])
      hold([
        [entries[0].key, entriesInJson.entries[0].keyJson, xdr.LedgerKey],
        [entries[0].xdr, entriesInJson.entries[0].dataJson, xdr.LedgerEntryData],
        [entries[0].extXdr, entriesInJson.entries[0].extJson, xdr.LedgerEntryExt]
      ])
      const [{ events }, eventsInJson] = yield* both("getEvents", { startLedger: 1_000 })
      expect(events.length).toBeGreaterThan(2)
      // In the form of the network's own converter, which differs from the SDK's.
      const [, reported] = yield* both("getTransaction", { hash })
      expect(Object.keys(reported.events.transactionEventsJson[0].event)).toEqual([
        "ext",
        "contract_id",
        "type_",
        "body"
      ])
      for (const [i, event] of events.entries())
        hold([
          [event.topic, eventsInJson.events[i].topicJson, xdr.ScVal],
          [event.value, eventsInJson.events[i].valueJson, xdr.ScVal]
        ])
      const [latest, latestInJson] = yield* both("getLatestLedger")
      hold([[latest.headerXdr, latestInJson.headerJson, xdr.LedgerHeader]])
      expect(ledger.ledger.latest.sequence).toBe(1_003)
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("formats simulations and refusals as JSON, and refuses unknown formats", () =>
    Effect.gen(function* () {
      const { both, ledger } = yield* world
      // With a seed the nonce is the same in both.
      const [simulated, inJson] = yield* both("simulateTransaction", { transaction: yield* draftOf })
      hold([
        [simulated.transactionData, inJson.transactionDataJson, xdr.SorobanTransactionData],
        [simulated.results[0].xdr, inJson.results[0].returnValueJson, xdr.ScVal],
        [simulated.results[0].auth, inJson.results[0].authJson, xdr.SorobanAuthorizationEntry],
        [simulated.events, inJson.eventsJson, xdr.DiagnosticEvent]
      ])
      for (const [i, change] of simulated.stateChanges.entries()) {
        const json = inJson.stateChanges[i]
        expect([json.before, json.after, json.key]).toEqual([null, null, undefined])
        hold([
          [change.key, json.keyJson, xdr.LedgerKey],
          [change.after, json.afterJson, xdr.LedgerEntry]
        ])
      }
      const unsigned = yield* transaction(keypair("a"), [Operation.bumpSequence({ bumpTo: "1" })], { signers: [] })
      const [refused, refusedInJson] = yield* both("sendTransaction", {
        transaction: unsigned.toEnvelope().toXdr("base64")
      })
      hold([[refused.errorResultXdr, refusedInJson.errorResultJson, xdr.TransactionResult]])
      const asked = { jsonrpc: "2.0", id: 1, method: "getEvents", params: { startLedger: 1_000, xdrFormat: "xml" } }
      expect((yield* ledger.rpc(asked)).error).toEqual({
        code: -32602,
        message: "got 'xml': expected base64, json for optional 'xdrFormat'"
      })
    }).pipe(Effect.provide(ledgerLayer({ seed: "json" })))
  )
})

describe("the network's settings", () => {
  it.effect("configuration entries contain the settings in effect", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const keys = Array.from({ length: 21 }, (_, configSettingId) =>
        Buffer.from(codec.LedgerKey.encode({ type: 8, configSetting: { configSettingId } })).toString("base64")
      )
      const { entries } = yield* ledger.call("getLedgerEntries", { keys })
      const settings = entries.map(({ xdr: data }: { readonly xdr: string }) => {
        const decoded = codec.LedgerEntryData.decode(Buffer.from(data, "base64"))
        if (decoded.type !== 8) throw new Error("not a setting")
        return decoded.configSetting
      })
      expect(settings.map(({ configSettingID }: { readonly configSettingID: number }) => configSettingID)).toEqual([
        0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 14, 15, 17, 19
      ])
      const zero = <A extends object>(of: A): A =>
        Object.fromEntries(Object.entries(of).map(([name, value]) => [name, typeof value === "bigint" ? 0n : 0])) as A
      const blank: NetworkSettings = {
        ...testnet,
        fees: zero(testnet.fees),
        ttl: zero(testnet.ttl),
        limits: zero(testnet.limits),
        cpuCosts: Object.fromEntries(
          Object.keys(testnet.cpuCosts).map((name) => [name, { constant: 0, linear128: 0 }])
        ) as unknown as NetworkSettings["cpuCosts"]
      }
      expect(withConfigSettings(blank, settings)).toEqual(testnet)
    }).pipe(Effect.provide(ledgerLayer()))
  )
})
