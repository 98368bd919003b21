// The evidence of a payment on the ledger: a transaction with its authorization that moved its amount, or its nonce.
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect, Option, Result } from "effect"
import { LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import { credentialsOf } from "../../../kernel/stellar/AuthEntry.ts"
import { authOf } from "../../../kernel/stellar/ContractCall.ts"
import { readEnvelope, transactionIn } from "../../../kernel/stellar/Envelope.ts"
import {
  fateOf,
  findPayment,
  lateFate,
  ledgersOf,
  provesPayment
} from "../../../plugins/mcp-tools-pay/payer/proveSpent.ts"
import { makePayment } from "../../../runtime/redteam/buyer.ts"
import { executed } from "../../kernel/settlement/lives.ts"

const [payer, payTo] = [Keypair.random(), Keypair.random().publicKey()]
const transfer = { asset: "CUSDC", payTo, amount: 10n }
const moved = { contract: "CUSDC", from: payer.publicKey(), to: payTo, amount: 10n }

/** A payment's envelope and the authorization that it carries. */
const signed = Effect.promise(async () => {
  const { transaction } = await makePayment({ latestLedger: 900, nowSeconds: 1_700_000_000, payer, payTo, amount: 10n })
  const envelope = Result.getOrThrow(readEnvelope(transaction))
  const [entry] = transactionIn(envelope)!.operations.flatMap(authOf)
  const authorization = {
    payer: payer.publicKey(),
    nonce: BigInt(credentialsOf(entry!)!.nonce),
    expirationLedger: 1_000
  }
  return { envelope, authorization }
})

interface Shown {
  /** The ledger of the nonce's use; absent: unspent; null: spent, without its ledger. */
  readonly usedIn?: number | null
  readonly latest?: number
  readonly oldest?: number
  /** Ledgers of one scan. */
  readonly scanned?: number
  /** The executed transaction; absent: the node does not have it. */
  readonly transaction?: ReturnType<typeof executed>
}

const shownTransaction = (changes: Parameters<typeof executed>[0] = {}) =>
  executed({ ledger: 950, transfers: Option.some([moved]), ...changes })

/** A node, and the ranges that it scanned. */
const nodeOf = Effect.fnUntraced(function* ({ latest = 990, oldest = 1, scanned = 1_000, transaction, usedIn }: Shown) {
  const { authorization, envelope } = yield* signed
  const ranges: Array<string> = []
  const rpc = {
    transaction: () =>
      Effect.succeed(
        transaction === undefined
          ? { _tag: "NotFound" }
          : { _tag: "Included", executed: transaction, latestLedger: latest }
      ),
    nonceSpent: () =>
      Effect.succeed({
        latestLedger: latest,
        spent: usedIn !== undefined,
        inLedger: Option.fromNullishOr(usedIn)
      }),
    scan: ({ fromLedger, matches, toLedger }: Parameters<LedgerRpc["Service"]["scan"]>[0]) =>
      Effect.sync(() => {
        ranges.push(`${fromLedger}-${toLedger}`)
        const all =
          transaction === undefined || !matches(transaction.outerHash) ? [] : [{ executed: transaction, envelope }]
        return { found: all, scannedTo: Math.min(toLedger!, fromLedger + scanned - 1), oldestLedger: oldest }
      })
  } as unknown as LedgerRpc["Service"]
  return { authorization, ranges, rpc }
})

it.effect("a transaction proves a payment by its transfer and its authorization", () =>
  Effect.gen(function* () {
    const proves = Effect.fnUntraced(function* (shown: Shown, changes: object = {}) {
      const { authorization, rpc } = yield* nodeOf(shown)
      return yield* provesPayment(rpc, "hash", transfer, { ...authorization, ...changes })
    })
    const transaction = shownTransaction()
    expect(yield* proves({ transaction })).toBe(true)
    expect(yield* proves({})).toBe(false)
    expect(yield* proves({ transaction: shownTransaction({ succeeded: false }) })).toBe(false)
    expect(yield* proves({ transaction: shownTransaction({ transfers: Option.none() }) })).toBe(false)
    for (const other of [
      { contract: "C" },
      { from: payTo },
      { to: payer.publicKey() },
      { amount: 9n },
      { amount: 11n }
    ])
      expect(
        yield* proves({ transaction: shownTransaction({ transfers: Option.some([{ ...moved, ...other }]) }) })
      ).toBe(false)
    // An older payment of the same amount carries another nonce, or is another payer's.
    expect(yield* proves({ transaction }, { nonce: 1n })).toBe(false)
    const stranger = Keypair.random().publicKey()
    const theirs = shownTransaction({ transfers: Option.some([{ ...moved, from: stranger }]) })
    expect(yield* proves({ transaction: theirs }, { payer: stranger })).toBe(false)
  })
)

it.effect("finds a payment by the seller's transaction, then by its nonce", () =>
  Effect.gen(function* () {
    const find = Effect.fnUntraced(function* (shown: Shown, named?: string) {
      const { authorization, ranges, rpc } = yield* nodeOf(shown)
      return [yield* findPayment(rpc, transfer, authorization, named), ranges]
    })
    const transaction = shownTransaction()
    expect(yield* find({ transaction, usedIn: 950 }, "named")).toEqual([
      { transaction: "named", isNamed: true },
      ["950-950"]
    ])
    expect(yield* find({ transaction, usedIn: 950 })).toEqual([{ transaction: "inner", isNamed: false }, ["950-950"]])
    expect(yield* find({})).toEqual([undefined, []])
    expect(yield* find({}, "named")).toEqual([undefined, []])
    expect(yield* find({ transaction, usedIn: null })).toEqual([{ transaction: undefined, isNamed: false }, []])
    // The node shows another ledger's transaction, or a failed one.
    for (const other of [{ ledger: 949 }, { ledger: 951 }, { succeeded: false }])
      expect(yield* find({ transaction: shownTransaction(other), usedIn: 950 })).toEqual([
        { transaction: undefined, isNamed: false },
        ["950-950"]
      ])
  })
)

it.effect("an unspent nonce is final in the last ledger alone", () =>
  Effect.gen(function* () {
    const fate = Effect.fnUntraced(function* (latest: number, usedIn?: number) {
      const { authorization, rpc } = yield* nodeOf({ latest, ...(usedIn === undefined ? {} : { usedIn }) })
      return yield* fateOf(rpc, authorization)
    })
    expect(yield* fate(999)).toEqual({ fate: "alive", latestLedger: 999 })
    expect((yield* fate(1_000)).fate).toBe("dead")
    expect((yield* fate(1_001)).fate).toBe("undecidable")
    for (const latest of [999, 1_000, 1_001]) expect((yield* fate(latest, 950)).fate).toBe("spent")
  })
)

it.effect("after its end, every ledger of an authorization's life decides", () =>
  Effect.gen(function* () {
    expect([ledgersOf(60), ledgersOf(61)]).toEqual([12, 13])
    const late = Effect.fnUntraced(function* (shown: Shown) {
      const { authorization, ranges, rpc } = yield* nodeOf(shown)
      const { _tag } = yield* lateFate(rpc, authorization, 60)
      return [_tag, ranges]
    })
    expect(yield* late({ scanned: 5 })).toEqual(["Dead", ["988-1000", "993-1000", "998-1000"]])
    expect(yield* late({ transaction: shownTransaction({ ledger: 1_000 }) })).toEqual(["Paid", ["988-1000"]])
    expect(yield* late({ transaction: shownTransaction({ ledger: 988 }) })).toEqual(["Paid", ["988-1000"]])
    expect((yield* late({ transaction: shownTransaction({ ledger: 987 }) }))[0]).toBe("Dead")
    expect(yield* late({ oldest: 988 })).toEqual(["Dead", ["988-1000"]])
    expect(yield* late({ oldest: 989 })).toEqual(["Open", ["988-1000"]])
    expect(yield* late({ scanned: 0 })).toEqual(["Open", ["988-1000"]])
  })
)
