// Scanning ledgers page by page, and reading entries in one answer, over a scripted RPC: which answers are accepted,
// and how far a scan reports to reach.
import { describe, expect, it } from "@effect/vitest"
import { Keypair, xdr as sdkXdr } from "@stellar/stellar-sdk"
import { xdr } from "@stellar/stellar-sdk/base"
import { Duration, Effect, Layer } from "effect"
import { Base64, Hex } from "effect/encoding"
import { LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import { snapshotKeys } from "../../../kernel/ledger/ledgerEntries.ts"
import { layer } from "../../../kernel/ledger/makeLedgerRpc.ts"
import {
  cancelTransaction,
  encodeEnvelope,
  networkIdOf,
  transactionHash,
  withSignatures
} from "../../../kernel/stellar/Envelope.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"
import * as NodeHttpCalls from "../../../runtime/platform/nodeHttpCalls.ts"
import { type ScriptedRpc, startScriptedRpc, testPassphrase } from "../../support/scriptedRpc.ts"

const platform = Layer.merge(NodeCrypto.layer, NodeHttpCalls.layer)

const over = <A, E>(server: ScriptedRpc, use: (rpc: LedgerRpc["Service"]) => Effect.Effect<A, E>) =>
  Effect.flatMap(LedgerRpc, use).pipe(
    Effect.provide(layer({ urls: [server.url], passphrase: testPassphrase, timeout: Duration.seconds(5) })),
    Effect.provide(platform)
  )

const channel = Keypair.random().publicKey()
const transactionWith = (sequence: bigint) =>
  cancelTransaction({ channel, sequence, bounds: { ledgerMax: 100, timeMax: 0n } })
const hashOf = (sequence: bigint) =>
  Effect.map(Crypto, (crypto) =>
    Hex.encode(transactionHash(crypto, networkIdOf(crypto, testPassphrase), transactionWith(sequence)))
  ).pipe(Effect.provide(platform))
const success = Base64.encode(
  xdr.TransactionResult.schema.encode({ feeCharged: 321n, result: { code: 0, results: [] }, ext: { v: 0 } } as never)
)
const row = (txHash: string, sequence: bigint, ledger: number) => ({
  status: "SUCCESS",
  txHash,
  ledger,
  createdAt: "1700000000",
  envelopeXdr: encodeEnvelope(withSignatures(transactionWith(sequence), [])),
  resultXdr: success
})
const strangers = (count: number, ledger: number) =>
  Array.from({ length: count }, (_, index) => row(String(index).padStart(64, "0"), 1n, ledger))
const page = (transactions: ReadonlyArray<unknown>, cursor?: string) => ({
  result: { latestLedger: 50, oldestLedger: 1, transactions, ...(cursor === undefined ? {} : { cursor }) }
})

describe("a ledger scan", () => {
  it.live("a scan accepts a transaction only under its envelope's hash", () =>
    Effect.gen(function* () {
      const [ours, other] = [yield* hashOf(7n), yield* hashOf(8n)]
      const server = yield* startScriptedRpc({ getTransactions: page([row(ours, 7n, 40)]) })
      const request = { fromLedger: 40, matches: (hash: string) => hash === ours }
      const { found } = yield* over(server, (rpc) => rpc.scan(request))
      expect(found.map(({ executed }) => [executed.innerHash, executed.ledger])).toEqual([[ours, 40]])
      // Another transaction's envelope under the requested hash.
      server.script["getTransactions"] = page([row(ours, 8n, 40)])
      expect((yield* Effect.flip(over(server, (rpc) => rpc.scan(request))))._tag).toBe("LedgerUnavailable")
      expect(other).not.toBe(ours)
    }).pipe(Effect.scoped)
  )

  it.live("a full page does not count its last ledger as scanned", () =>
    Effect.gen(function* () {
      const ours = yield* hashOf(7n)
      const server = yield* startScriptedRpc({ getTransactions: page(strangers(100, 41)) })
      const scan = (toLedger: number) =>
        over(server, (rpc) => rpc.scan({ fromLedger: 40, toLedger, matches: (hash) => hash === ours }))
      expect(yield* scan(41)).toMatchObject({ scannedTo: 40, found: [] })
      const pages = [page(strangers(100, 41), "next"), page([row(ours, 7n, 41)])]
      server.script["getTransactions"] = () => pages.shift()!
      const { found, scannedTo } = yield* scan(41)
      expect([found.length, scannedTo]).toEqual([1, 50])
    }).pipe(Effect.scoped)
  )
})

describe("channel state", () => {
  const nonce = { address: channel, nonce: 5n }
  const [accountKey = "", nonceKey = ""] = snapshotKeys([{ channel, nonce }])
  const accountXdr = (address: string, sequence: bigint) =>
    Base64.encode(
      xdr.LedgerEntryData.schema.encode({
        type: 0,
        account: {
          accountId: sdkXdr.PublicKey.publicKeyTypeEd25519(Keypair.fromPublicKey(address).rawPublicKey()).toXdrObject(),
          balance: 1n,
          seqNum: sequence,
          numSubEntries: 0,
          inflationDest: null,
          flags: 0,
          homeDomain: "",
          thresholds: new Uint8Array(4),
          signers: [],
          ext: { v: 0 }
        }
      } as never)
    )
  const entries = (all: ReadonlyArray<unknown>) => ({ result: { latestLedger: 50, entries: all } })
  const ask = (server: ScriptedRpc) => over(server, (rpc) => rpc.snapshots([{ channel, nonce }]))

  it.live("reads sequence number and nonce as of one ledger", () =>
    Effect.gen(function* () {
      const account = { key: accountKey, xdr: accountXdr(channel, 9n), lastModifiedLedgerSeq: 30 }
      const used = { key: nonceKey, xdr: "AAAA", lastModifiedLedgerSeq: 44 }
      const server = yield* startScriptedRpc({ getLedgerEntries: entries([used, account]) })
      expect(yield* ask(server)).toEqual({ latestLedger: 50, endpoint: 0, snapshots: [{ sequence: 9n, nonce: 44 }] })
      server.script["getLedgerEntries"] = entries([account])
      expect(yield* ask(server)).toEqual({
        latestLedger: 50,
        endpoint: 0,
        snapshots: [{ sequence: 9n, nonce: "unspent" }]
      })
      server.script["getLedgerEntries"] = entries([])
      expect(yield* ask(server)).toEqual({
        latestLedger: 50,
        endpoint: 0,
        snapshots: [{ sequence: undefined, nonce: "unspent" }]
      })
      // Both are asked for in one call.
      expect(server.asked.filter((method) => method === "getLedgerEntries")).toHaveLength(3)
    }).pipe(Effect.scoped)
  )

  it.live("rejects another account's entry and a spent nonce without its ledger", () =>
    Effect.gen(function* () {
      const server = yield* startScriptedRpc({
        getLedgerEntries: entries([{ key: accountKey, xdr: accountXdr(Keypair.random().publicKey(), 9n) }])
      })
      expect((yield* Effect.flip(ask(server)))._tag).toBe("LedgerUnavailable")
      server.script["getLedgerEntries"] = entries([{ key: nonceKey, xdr: "AAAA" }])
      expect((yield* Effect.flip(ask(server)))._tag).toBe("LedgerUnavailable")
    }).pipe(Effect.scoped)
  )
})
