// The RPC's answers through the official SDK's `rpc.Server`: every list in pages, every limit with its message, every
// state of a transaction. If the SDK cannot parse an answer here, it could not parse it on the network either.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Asset, Keypair, Operation, rpc, scValToNative, xdr } from "@stellar/stellar-sdk"
import { Listeners } from "../../../../kernel/platform/Listeners.ts"
import { BODY_BYTES_MAX, handle } from "../../../../plugins/ledger-local/httpApi.ts"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { NATIVE_CONTRACT, USDC_CONTRACT } from "../../../../plugins/ledger-local/node/accounts.ts"
import { layer as nodeListeners } from "../../../../runtime/platform/nodeListeners.ts"
import { feeBump, fund, keypair, ledgerLayer, transaction, usdcAsset } from "../support.ts"

const connected = Effect.gen(function* () {
  const ledger = yield* LocalLedger
  const listeners = yield* Listeners
  const { port } = yield* listeners.open({ host: "127.0.0.1", port: 0, bodyBytesMax: BODY_BYTES_MAX }, (request) =>
    handle(ledger, request)
  )
  return { ledger, server: new rpc.Server(`http://127.0.0.1:${port}`, { allowHttp: true }) }
})

/** The SDK's exception for an answer with an `error`. */
const refusal = (ask: () => Promise<unknown>) =>
  Effect.promise(() =>
    ask().then(
      () => undefined,
      (error: { readonly code: number; readonly message: string }) => ({ code: error.code, message: error.message })
    )
  )

const payment = (amount: string) =>
  Operation.payment({ destination: keypair("b").publicKey(), asset: Asset.native(), amount })

const test = (name: string, body: Effect.Effect<void, any, any>) =>
  it.live(
    name,
    () => body.pipe(Effect.scoped, Effect.provide(Layer.mergeAll(ledgerLayer(), nodeListeners))) as Effect.Effect<void>
  )

describe("rpc.Server", () => {
  test(
    "pages through events by cursor, each once and in order, for any page size",
    Effect.gen(function* () {
      const { ledger, server } = yield* connected
      const a = yield* fund("a")
      yield* fund("b")
      for (let ledgers = 0; ledgers < 3; ledgers++) {
        const tx = yield* transaction(a, [payment("1"), payment("2"), payment("3")], { fee: "100" })
        yield* Effect.promise(() => server.sendTransaction(tx))
        yield* ledger.close
      }
      const transfers: rpc.Api.EventFilter = {
        type: "contract",
        contractIds: [NATIVE_CONTRACT],
        topics: [[xdr.ScVal.scvSymbol("transfer").toXdr("base64"), "**"]]
      }
      const all = yield* Effect.promise(() => server.getEvents({ startLedger: 1_003, filters: [transfers] }))
      expect(all.events.map(({ value }) => scValToNative(value))).toEqual(
        [1n, 2n, 3n, 1n, 2n, 3n, 1n, 2n, 3n].map((n) => n * 1_0000000n)
      )
      for (const limit of [1, 2, 4, 9, 100]) {
        const ids: Array<string> = []
        let page = yield* Effect.promise(() => server.getEvents({ startLedger: 1_003, filters: [transfers], limit }))
        while (page.events.length > 0) {
          ids.push(...page.events.map(({ id }) => id))
          const { cursor } = page
          page = yield* Effect.promise(() => server.getEvents({ cursor, filters: [transfers], limit }))
        }
        expect(ids).toEqual(all.events.map(({ id }) => id))
        expect([...ids].sort()).toEqual(ids)
      }
      const bounded = yield* Effect.promise(() =>
        server.getEvents({ startLedger: 1_003, endLedger: 1_004, filters: [transfers] })
      )
      expect(new Set(bounded.events.map(({ ledger: at }) => at))).toEqual(new Set([1_003]))
      expect(all).toMatchObject({ oldestLedger: 1_000, latestLedger: ledger.ledger.latest.sequence })
    })
  )

  test(
    "pages through transactions and ledgers by cursor",
    Effect.gen(function* () {
      const { server } = yield* connected
      for (const name of ["a", "b", "c", "d", "e"]) yield* fund(name)
      const hashes: Array<string> = []
      let page = yield* Effect.promise(() => server.getTransactions({ startLedger: 1_000, pagination: { limit: 2 } }))
      expect(page.transactions.map(({ status }) => status)).toEqual(["SUCCESS", "SUCCESS"])
      while (page.transactions.length > 0) {
        hashes.push(...page.transactions.map(({ txHash }) => txHash))
        const { cursor } = page
        page = yield* Effect.promise(() => server.getTransactions({ pagination: { cursor, limit: 2 } }))
      }
      expect(new Set(hashes).size).toBe(5)
      const first = yield* Effect.promise(() => server.getLedgers({ startLedger: 1_000, pagination: { limit: 4 } }))
      const second = yield* Effect.promise(() => server.getLedgers({ pagination: { cursor: first.cursor, limit: 4 } }))
      expect([...first.ledgers, ...second.ledgers].map(({ sequence }) => sequence)).toEqual([
        1_000, 1_001, 1_002, 1_003, 1_004, 1_005
      ])
      const chained = [...first.ledgers, ...second.ledgers]
      for (const [i, { headerXdr }] of chained.entries()) {
        if (i > 0) expect(headerXdr.header.previousLedgerHash.toXdr("hex")).toBe(chained[i - 1]!.hash)
      }
    })
  )

  test(
    "returns the network's error message at each limit",
    Effect.gen(function* () {
      const { server } = yield* connected
      const a = yield* fund("a")
      const key = xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId: a.xdrAccountId() }))
      const keys = (count: number) => Array.from({ length: count }, () => key)
      expect((yield* Effect.promise(() => server.getLedgerEntries(...keys(200)))).entries).toHaveLength(200)
      expect(yield* refusal(() => server.getLedgerEntries(...keys(201)))).toEqual({
        code: -32602,
        message: "key count (201) exceeds maximum supported (200)"
      })
      expect(
        yield* refusal(() => server.getEvents({ startLedger: 1_000, filters: Array.from({ length: 6 }, () => ({})) }))
      ).toMatchObject({
        code: -32602,
        message: "maximum 5 filters per request"
      })
      expect(yield* refusal(() => server.getEvents({ startLedger: 9_999, filters: [] }))).toMatchObject({
        code: -32600,
        message: "startLedger must be within the ledger range: 1000 - 1001"
      })
      expect(
        yield* refusal(() => server.getTransactions({ startLedger: 1_000, pagination: { limit: 201 } }))
      ).toMatchObject({ code: -32602 })
      expect(yield* refusal(() => server.getLedgers({ startLedger: 1, pagination: { limit: 1 } }))).toMatchObject({
        message: expect.stringContaining("must be between the oldest ledger: 1000 and the latest ledger: 1001")
      })
    })
  )

  test(
    "reports a transaction's states from unknown to included",
    Effect.gen(function* () {
      const { ledger, server } = yield* connected
      const a = yield* fund("a")
      yield* fund("b")
      const tx = yield* transaction(a, [payment("1")])
      const hash = Buffer.from(tx.hash()).toString("hex")
      const found = () => Effect.promise(() => server.getTransaction(hash))
      const send = (one: Parameters<typeof server.sendTransaction>[0]) =>
        Effect.promise(() => server.sendTransaction(one))
      expect(yield* found()).toMatchObject({ status: "NOT_FOUND", oldestLedger: 1_000, latestLedger: 1_002 })
      expect(yield* send(tx)).toMatchObject({ status: "PENDING", hash, latestLedger: 1_002 })
      expect((yield* send(tx)).status).toBe("DUPLICATE")
      const next = yield* transaction(a, [payment("1")], { sequence: BigInt(tx.sequence) + 1n })
      expect((yield* send(next)).status).toBe("TRY_AGAIN_LATER")
      yield* ledger.close
      expect(yield* found()).toMatchObject({ status: "SUCCESS", applicationOrder: 1, feeBump: false, ledger: 1_003 })
      const spent = yield* send(tx)
      expect([spent.status, (spent as any).errorResult.result.type]).toEqual(["ERROR", "txBadSeq"])
      const poor = yield* transaction(a, [payment("999999")])
      const sent = yield* send(poor)
      yield* ledger.close
      const failed = yield* Effect.promise(() => server.getTransaction(sent.hash))
      expect([failed.status, (failed as any).resultXdr.result.type]).toEqual(["FAILED", "txFailed"])
    })
  )

  test(
    "finds a fee bump by both hashes, and its fee in statistics",
    Effect.gen(function* () {
      const { ledger, server } = yield* connected
      const [a, sponsor] = [yield* fund("a"), yield* fund("sponsor")]
      yield* fund("b")
      const inner = yield* transaction(a, [payment("1")])
      const bump = feeBump(sponsor, "500", inner)
      yield* Effect.promise(() => server.sendTransaction(bump))
      yield* ledger.close
      for (const tx of [inner, bump]) {
        const found = yield* Effect.promise(() => server.getTransaction(Buffer.from(tx.hash()).toString("hex")))
        expect([found.status, (found as any).feeBump]).toEqual(["SUCCESS", true])
      }
      const stats = yield* Effect.promise(() => server.getFeeStats())
      for (const fees of [stats.inclusionFee, stats.sorobanInclusionFee]) {
        expect(Object.keys(fees).sort()).toEqual([
          "ledgerCount",
          "max",
          "min",
          "mode",
          "p10",
          "p20",
          "p30",
          "p40",
          "p50",
          "p60",
          "p70",
          "p80",
          "p90",
          "p95",
          "p99",
          "transactionCount"
        ])
      }
      expect(stats.inclusionFee).toMatchObject({ transactionCount: "4", min: "100" })
      expect(stats.sorobanInclusionFee).toMatchObject({ transactionCount: "0", max: "0" })
    })
  )

  test(
    "rpc.Server helpers read balances, trustlines and contract data",
    Effect.gen(function* () {
      const { server } = yield* connected
      const a = yield* fund("a", 12_5000000n)
      expect((yield* Effect.promise(() => server.getTrustline(a.publicKey(), usdcAsset))).balance).toBe(12_5000000n)
      expect((yield* Effect.promise(() => server.getAccountEntry(a.publicKey()))).balance).toBe(10_000_0000000n)
      const instance = yield* Effect.promise(() =>
        server.getContractData(USDC_CONTRACT, xdr.ScVal.scvLedgerKeyContractInstance())
      )
      expect(instance.liveUntilLedgerSeq).toBeGreaterThan(instance.lastModifiedLedgerSeq!)
      expect((yield* refusal(() => server.getAccount(Keypair.random().publicKey())))?.message).toContain(
        "Account not found"
      )
      const health = yield* Effect.promise(() => server.getHealth())
      expect(health).toMatchObject({
        status: "healthy",
        oldestLedger: 1_000,
        latestLedger: 1_001,
        ledgerRetentionWindow: 17_280
      })
    })
  )
})
