// The sponsor's own transactions: followed until the ledger shows their end, sent again before it, and bid higher.
import { expect, layer } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Context, Effect, Layer, Logger } from "effect"
import { SqlClient } from "effect/sql"
import { Network } from "../../../../kernel/config/Network.ts"
import { LedgerClock } from "../../../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc, type TransactionAnswer } from "../../../../kernel/ledger/LedgerRpc.ts"
import { SponsorTransactions } from "../../../../kernel/settlement/sponsor/SponsorTransactions.ts"
import { Signer } from "../../../../kernel/signer/Signer.ts"
import { encodeEnvelope, withSignatures } from "../../../../kernel/stellar/Envelope.ts"
import { describeDatabases } from "../../../support/databases.ts"
import { layerTest } from "../../../support/layerTest.ts"
import { executed } from "../lives.ts"

const operations = [{ _tag: "Anchor", hash: new Uint8Array(32) }] as const

/** A new sponsor's transactions at ledger 1,000, and the requests to its node. */
const makeWorld = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const sponsor = Keypair.random().publicKey()
  const state = {
    head: 1_000,
    isFirstWord: false,
    /** The node's ledgers. */
    latest: 1_000,
    oldest: 1,
    sequence: 7n as bigint | undefined,
    shown: undefined as Parameters<typeof executed>[0] | undefined,
    sent: [] as Array<string>,
    fees: [] as Array<number>
  }
  const answer = (): TransactionAnswer =>
    state.shown === undefined
      ? { _tag: "NotFound", latestLedger: state.latest, oldestLedger: state.oldest }
      : ({ _tag: "Included", executed: executed(state.shown), latestLedger: state.latest } as TransactionAnswer)
  const built = yield* Layer.build(
    Layer.fresh(SponsorTransactions.layer).pipe(
      Layer.provide([
        Layer.succeed(SqlClient.SqlClient, sql),
        layerTest(Network, { id: "ledger:testnet" }),
        layerTest(LedgerClock, {
          now: Effect.sync(() => ({ sequence: state.head, isFirstWord: state.isFirstWord }) as never)
        }),
        layerTest(Signer, {
          sponsor,
          signSponsor: (transaction) =>
            Effect.sync(() => {
              state.fees.push(transaction.fee)
              const hash = `${sponsor} ${state.fees.length}`
              return { envelope: encodeEnvelope(withSignatures(transaction, [])), hash }
            })
        }),
        layerTest(LedgerRpc, {
          transaction: () => Effect.sync(answer),
          accounts: () =>
            Effect.sync(() => ({
              latestLedger: state.latest,
              accounts: new Map(
                state.sequence === undefined
                  ? []
                  : [[sponsor, { address: sponsor, sequence: state.sequence, balanceStroops: 1n, reserveStroops: 0n }]]
              )
            })),
          send: (_, hash) => Effect.sync(() => void state.sent.push(hash.split(" ")[1]!)) as never
        })
      ])
    )
  )
  const { last, settleOpen, submit } = Context.get(built, SponsorTransactions)
  /** Submits after the newest one. */
  const next = Effect.flatMap(last, ({ hash }) => submit("anchor", operations, hash))
  const rows = Effect.map(
    sql<{ state: string; fee: bigint | null; ledger: bigint | null }>`select state, fee_charged_stroops as fee, ledger
      from kernel_sponsor_transactions where sponsor = ${sponsor} order by recorded_at`,
    (all) => all.map(({ fee, ledger, state }) => [state, fee, ledger])
  )
  return { next, rows, settleOpen, sponsor, state, submit }
})

/** The end of a transaction that is valid until ledger 1,030, by what the node shows. */
const endOf = Effect.fnUntraced(function* (shown: Partial<Effect.Success<typeof makeWorld>["state"]>) {
  const { next, rows, settleOpen, state } = yield* makeWorld
  yield* next
  Object.assign(state, shown)
  const isSettled = yield* settleOpen
  const [[word, fee, ledger] = []] = yield* rows
  expect(isSettled).toBe(word !== "open")
  return [word, fee, ledger, state.sent.length]
})

describeDatabases("a sponsor's transaction", (database) => {
  layer(database, { timeout: "240 seconds" })((it) => {
    it.effect("ends by its execution, with its cost", () =>
      Effect.gen(function* () {
        expect(yield* endOf({ shown: { ledger: 1_002 } })).toEqual(["landed", 4_321n, 1_002n, 1])
        expect(yield* endOf({ shown: { succeeded: false } })).toEqual(["failed", 4_321n, 1_003n, 1])
      }).pipe(Effect.scoped)
    )

    it.effect("is logged when the ledger fails it", () =>
      Effect.gen(function* () {
        const lines: Array<string> = []
        const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
        yield* endOf({ shown: { ledger: 1_002 } }).pipe(Effect.provide(Logger.layer([logger])))
        expect(lines).toEqual([])
        yield* endOf({ shown: { succeeded: false } }).pipe(Effect.provide(Logger.layer([logger])))
        expect(lines).toEqual([expect.stringMatching(/^a transaction of the sponsor failed on the ledger/)])
      }).pipe(Effect.scoped)
    )

    it.effect("is sent again until its last ledger has passed", () =>
      Effect.gen(function* () {
        expect(yield* endOf({ head: 1_029, latest: 1_029 })).toEqual(["open", null, null, 2])
        expect(yield* endOf({ head: 1_030, latest: 1_030 })).toEqual(["expired", 0n, null, 1])
        // A node ahead of the head, and a head that nothing confirms.
        expect(yield* endOf({ head: 1_029, latest: 1_040 })).toEqual(["open", null, null, 2])
        expect(yield* endOf({ head: 1_040, latest: 1_040, isFirstWord: true })).toEqual(["open", null, null, 2])
      }).pipe(Effect.scoped)
    )

    it.effect("beyond the node's history, the sponsor's number decides", () =>
      Effect.gen(function* () {
        const passed = { head: 1_030, latest: 1_030 }
        expect(yield* endOf({ ...passed, oldest: 1_000 })).toEqual(["expired", 0n, null, 1])
        const forgotten = { ...passed, oldest: 1_001 }
        expect(yield* endOf({ ...forgotten, sequence: 7n })).toEqual(["expired", 0n, null, 1])
        expect(yield* endOf({ ...forgotten, sequence: 8n })).toEqual(["landed", null, null, 1])
        expect(yield* endOf({ ...forgotten, sequence: 9n })).toEqual(["landed", null, null, 1])
        expect(yield* endOf({ ...forgotten, sequence: undefined })).toEqual(["expired", 0n, null, 1])
      }).pipe(Effect.scoped)
    )

    it.effect("is the only open one, and follows the newest", () =>
      Effect.gen(function* () {
        const { next, rows, settleOpen, state, submit } = yield* makeWorld
        expect(yield* settleOpen).toBe(true)
        yield* submit("anchor", operations, "an older one")
        expect(yield* rows).toEqual([])
        yield* next
        yield* next
        expect([(yield* rows).length, state.sent]).toEqual([1, ["2"]])
        state.sequence = undefined
        state.shown = {}
        yield* settleOpen
        // The account is not on the ledger.
        yield* next
        expect((yield* rows).length).toBe(1)
      }).pipe(Effect.scoped)
    )

    it.effect("bids ten times more after each expiry, and rests after a failure", () =>
      Effect.gen(function* () {
        const { next, rows, settleOpen, state } = yield* makeWorld
        const ended = Effect.fnUntraced(function* (shown: typeof state.shown) {
          yield* next
          state.shown = shown
          state.head = state.latest += 30
          yield* settleOpen
          state.shown = undefined
        })
        for (const shown of [undefined, undefined, undefined, {}, undefined, { succeeded: false }]) yield* ended(shown)
        expect(state.fees).toEqual([1_000, 10_000, 100_000, 100_000, 1_000, 10_000])
        expect((yield* rows).map(([word]) => word)).toEqual([
          "expired",
          "expired",
          "expired",
          "landed",
          "expired",
          "failed"
        ])
        yield* next
        expect(state.fees).toHaveLength(6)
      }).pipe(Effect.scoped)
    )
  })
})
