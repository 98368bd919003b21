// The audit's own reading of the ledger, over a scripted RPC.
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { xdr } from "@stellar/stellar-sdk/base"
import { Duration, Effect, Layer } from "effect"
import { Base64 } from "effect/encoding"
import { readLedger } from "../../../kernel/audit/readLedger.ts"
import { cancelTransaction, encodeEnvelope, withSignatures } from "../../../kernel/stellar/Envelope.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"
import * as NodeHttpCalls from "../../../runtime/platform/nodeHttpCalls.ts"
import { startScriptedRpc, testPassphrase } from "../../support/scriptedRpc.ts"

const channel = Keypair.random().publicKey()
const result = { feeCharged: 321n, result: { code: 0, results: [] }, ext: { v: 0 } }
const changes = { txChangesBefore: [], operations: [], txChangesAfter: [] }
const meta = { v: 3, v3: { ext: { v: 0 }, ...changes, sorobanMeta: null } }
const row = (sequence: bigint, source = channel) => ({
  status: "SUCCESS",
  ledger: 40,
  envelopeXdr: encodeEnvelope(
    withSignatures(cancelTransaction({ channel: source, sequence, bounds: { ledgerMax: 100, timeMax: 0n } }), [])
  ),
  resultXdr: Base64.encode(xdr.TransactionResult.schema.encode(result as never)),
  resultMetaXdr: Base64.encode(xdr.TransactionMeta.schema.encode(meta as never))
})

it.live("reads every page, and only transactions of the accounts", () =>
  Effect.gen(function* () {
    const pages = [[row(1n)], [row(9n, Keypair.random().publicKey())], [row(2n), row(3n)], []]
    const server = yield* startScriptedRpc({
      getHealth: { result: { oldestLedger: 7, latestLedger: 50 } },
      getTransactions: ({ pagination: { cursor }, startLedger }) => {
        const at = Number(cursor ?? 0)
        expect(startLedger).toBe(at === 0 ? 20 : undefined)
        return { result: { latestLedger: 50 + at, transactions: pages[at], cursor: String(at + 1) } }
      },
      getLedgerEntries: { result: { latestLedger: 50, entries: [] } }
    })
    const view = yield* readLedger({
      url: server.url,
      passphrase: testPassphrase,
      timeout: Duration.seconds(5),
      accounts: new Set([channel]),
      sinceLedger: 20
    })
    expect(view.entries.map(({ feeChargedStroops, sequence }) => [sequence, feeChargedStroops])).toEqual([
      [1n, 321n],
      [2n, 321n],
      [3n, 321n]
    ])
    expect([view.fromLedger, view.toLedger]).toEqual([20, 53])
  }).pipe(Effect.scoped, Effect.provide(Layer.merge(NodeCrypto.layer, NodeHttpCalls.layer)))
)
