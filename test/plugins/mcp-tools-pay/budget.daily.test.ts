import { describe, expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Clock, Effect, FileSystem, Layer, Option, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { BudgetStore } from "../../../plugins/mcp-tools-pay/budget/BudgetStore.ts"
import { forgetReservations, postgresStore } from "../../../plugins/mcp-tools-pay/budget/postgresStore.ts"
import { makeHoldTurn } from "../../../plugins/mcp-tools-pay/budget/reconcileHolds.ts"
import {
  mayTransition,
  type Reservation,
  type ReservationState
} from "../../../plugins/mcp-tools-pay/budget/Reservation.ts"
import { encodeKeptPayment } from "../../../plugins/mcp-tools-pay/call/KeptWire.ts"
import { makeSeal, PaymentSeal } from "../../../plugins/mcp-tools-pay/payer/PaymentSeal.ts"
import { countingOwnMinute } from "../../../plugins/mcp-tools-pay/budget/openStore.ts"
import { fileStore, memoryStore, readTable } from "../../../plugins/mcp-tools-pay/budget/tableStore.ts"
import * as Locks from "../../../runtime/platform/folderLock.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"
import { describeDatabases } from "../../support/databases.ts"
import { settableClock } from "../../support/skewedClock.ts"

const ceilings = {
  perSession: 50n,
  perDay: 100n,
  perRecipient: 0n,
  perOrigin: 0n,
  perGrade: { proven: 0n, provisional: 0n },
  paymentsPerMinute: 0
}
const authorization = { payer: "GPAYER", nonce: -(2n ** 62n), expirationLedger: 100 }

const day = 86_400_000

let count = 0
const reservation = (more: Partial<Reservation> = {}): Reservation => ({
  id: `pay_${++count}`,
  day: "2026-01-01",
  agent: "key:a",
  session: "s1",
  invocation: `call ${++count}`,
  network: "ledger:testnet",
  asset: "CUSDC",
  payTo: "GSELLER",
  origin: "https://seller.example",
  grade: "provisional",
  amount: 10n,
  state: "reserved",
  createdAtMillis: 0,
  authorization: undefined,
  transaction: undefined,
  ...more
})

const untimed = (found: ReadonlyArray<Reservation>) => found.map(({ createdAtMillis: _, ...one }) => one)

/** Behavior common to every store. `minutePasses`: for a store with its own clock. */
const storeFacts = (store: BudgetStore["Service"], minutePasses: Effect.Effect<unknown, unknown> = Effect.void) =>
  Effect.gen(function* () {
    const fits = (more: Partial<Reservation>) => store.reserve(reservation(more), ceilings, 0)
    // A session, a day, another agent, asset and day; all concurrently.
    const all = yield* Effect.all(
      Array.from({ length: 8 }, () => fits({})),
      { concurrency: "unbounded" }
    )
    expect(all.filter((one) => one === "kept")).toHaveLength(5)
    expect(yield* fits({ session: "s2", amount: 50n })).toBe("kept")
    expect(yield* fits({ session: "s3", amount: 1n })).toBe("over")
    for (const other of [{ agent: "key:b" }, { asset: "CXLM" }, { day: "2026-01-02" }, { network: "ledger:pubnet" }])
      expect(yield* fits({ ...other, amount: 50n })).toBe("kept")

    // To one recipient, and a limited number within a minute, across assets.
    const toOne = { ...ceilings, perRecipient: 20n }
    const paid = (more: Partial<Reservation>, limits: typeof ceilings) =>
      store.reserve(reservation({ agent: "key:limits", ...more }), limits, 0)
    expect(yield* paid({ amount: 20n }, toOne)).toBe("kept")
    expect(yield* paid({ amount: 1n }, toOne)).toBe("over")
    expect(yield* paid({ amount: 1n, payTo: "GOTHER" }, toOne)).toBe("kept")
    // By origin and by grade, independently; a symbolic name does not count as an origin.
    const graded = {
      ...ceilings,
      perSession: 100n,
      perOrigin: 20n,
      perGrade: { proven: 0n, provisional: 30n }
    }
    const at = (amount: bigint, more: Partial<Reservation> = {}) =>
      store.reserve(reservation({ agent: "key:graded", amount, ...more }), graded, 0)
    expect(yield* at(20n)).toBe("kept")
    expect(yield* at(1n)).toBe("over")
    expect(yield* at(11n, { origin: "https://other.example" })).toBe("over")
    expect(yield* at(10n, { origin: "https://other.example" })).toBe("kept")
    expect(yield* at(1n, { origin: undefined })).toBe("over")
    expect(yield* at(21n, { origin: "https://proven.example", grade: "proven" })).toBe("over")
    expect(yield* at(20n, { origin: "https://proven.example", grade: "proven" })).toBe("kept")
    expect(yield* at(40n, { origin: undefined, grade: "proven" })).toBe("kept")
    const twice = { ...ceilings, paymentsPerMinute: 2 }
    expect(yield* paid({ asset: "CXLM", amount: 1n }, twice)).toBe("over")
    yield* minutePasses
    expect(yield* paid({ asset: "CXLM", amount: 1n, createdAtMillis: 60_001 }, twice)).toBe("kept")

    const one = reservation({ agent: "key:moves", invocation: "moves" })
    expect(yield* store.reserve(one, ceilings, 0)).toBe("kept")
    const moves = Effect.map(store.ofInvocation("moves"), ({ made, undelivered }) => [made, untimed(undelivered)])
    expect(yield* moves).toEqual([1, untimed([one])])
    expect(yield* store.move(one.id, { state: "settled" })).toBe(false)
    expect(yield* store.move(one.id, { state: "signed", authorization })).toBe(true)
    expect(yield* moves).toEqual([1, untimed([{ ...one, state: "signed", authorization }])])
    // A decision on the state before it was signed comes late.
    expect(yield* store.move(one.id, { state: "released", from: "reserved" })).toBe(false)
    expect(yield* store.move(one.id, { state: "unknown", transaction: "ab" })).toBe(true)
    expect(untimed((yield* store.open).filter(({ id }) => id === one.id))).toEqual(
      untimed([{ ...one, state: "unknown", authorization, transaction: "ab" }])
    )
    expect(yield* store.move(one.id, { state: "settled", receipt: "a.b.c" })).toBe(true)
    expect(yield* store.move(one.id, { state: "released" })).toBe(false)
    // Only its agent can read a receipt.
    const receipts = (agent: string) =>
      Effect.map(store.receipts(agent), (found) => found.map(({ id, receipt }) => [id, receipt]))
    expect(yield* receipts("key:moves")).toEqual([[one.id, "a.b.c"]])
    expect(yield* receipts("key:a")).toEqual([])
    expect(yield* store.move("pay_none", { state: "released" })).toBe(false)
    expect(yield* store.ofInvocation("moves")).toEqual({ made: 1, undelivered: [], released: [] })

    // Content stored with an undelivered payment is available to any call that finishes it, and is deleted with it.
    const open = reservation({ agent: "key:kept beside", invocation: "kept beside", amount: 1n })
    const again = reservation({ agent: "key:kept beside", invocation: "kept beside", amount: 1n })
    expect(yield* store.keep(open.id, { payment: "none" })).toBe(false)
    for (const [made, one] of [open, again].entries()) {
      expect(yield* store.reserve(one, ceilings, made)).toBe("kept")
      yield* store.move(one.id, { state: "signed", authorization })
      expect(yield* store.keep(one.id, { payment: "signed" })).toBe(true)
      if (one === open) yield* store.move(one.id, { state: "released" })
    }
    expect(yield* store.kept(open.id)).toEqual({})
    expect(yield* store.keep(again.id, { content: "answer" })).toBe(true)
    expect(yield* store.kept(again.id)).toEqual({ payment: "signed", content: "answer" })
    yield* store.move(again.id, { state: "released" })
    const beside = yield* store.ofInvocation("kept beside")
    expect([beside.undelivered.map(({ id }) => id), beside.released]).toEqual([[again.id], [again.id, open.id]])
    yield* store.forget(again.id)
    expect((yield* store.ofInvocation("kept beside")).undelivered).toEqual([])

    // An agent that never acknowledges fills the space for contents, and gives way to others that have less.
    const contents = Effect.fnUntraced(function* (agent: string, content: string) {
      const one = reservation({ agent, invocation: content, amount: 1n })
      expect(yield* store.reserve(one, ceilings, 0)).toBe("kept")
      yield* store.move(one.id, { state: "signed", authorization })
      const isKept = yield* store.keep(one.id, { payment: "signed", content: content.padEnd(40) }, 100)
      return { one, isKept }
    })
    const [first, second] = [yield* contents("key:flood", "first"), yield* contents("key:flood", "second")]
    const quiet = yield* contents("key:quiet", "quiet")
    const third = yield* contents("key:flood", "third")
    expect([first, second, quiet, third].map(({ isKept }) => isKept)).toEqual([true, true, true, false])
    const left = yield* Effect.forEach([first, second, quiet], ({ one }) => store.kept(one.id))
    expect(left.map(({ content, payment }) => [payment, content?.trim()])).toEqual([
      ["signed", undefined],
      ["signed", "second"],
      ["signed", "quiet"]
    ])

    // Of concurrent calls that read one invocation one pays; a call that reads again may pay again.
    const same = (made: number) =>
      store.reserve(reservation({ agent: "key:same", invocation: "same", amount: 1n }), ceilings, made)
    const concurrently = yield* Effect.all([same(0), same(0), same(0)], { concurrency: "unbounded" })
    expect(concurrently.sort()).toEqual(["changed", "changed", "kept"])
    expect([yield* same(0), yield* same(1)]).toEqual(["changed", "kept"])

    const freed = reservation({ agent: "key:freed", amount: 50n })
    expect(yield* store.reserve(freed, ceilings, 0)).toBe("kept")
    expect(yield* store.reserve(reservation({ agent: "key:freed" }), ceilings, 0)).toBe("over")
    yield* store.move(freed.id, { state: "released" })
    expect(yield* store.reserve(reservation({ agent: "key:freed" }), ceilings, 0)).toBe("kept")
  })

describe("a budget", () => {
  it.effect("a budget in memory holds its ceilings over concurrent calls [S211, S217]", () =>
    Effect.flatMap(memoryStore, storeFacts)
  )

  it.effect("a budget file survives a restart and is shared by processes [S104, S217]", () =>
    Effect.gen(function* () {
      const folder = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped()
      const held = reservation({ agent: "key:kept", invocation: "kept" })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const store = yield* fileStore(folder)
          yield* storeFacts(store)
          yield* store.reserve(held, ceilings, 0)
          yield* store.move(held.id, { state: "signed", authorization })
          // A second process reads and writes the same table.
          const second = yield* fileStore(folder)
          expect((yield* second.ofInvocation("kept")).made).toBe(1)
          const shared = { ...ceilings, perDay: 200n, perSession: 200n }
          const racing = Array.from({ length: 8 }, (_, at) =>
            (at % 2 === 0 ? store : second).reserve(
              reservation({ agent: "key:shared", invocation: `shared-${at}`, amount: 100n }),
              shared,
              0
            )
          )
          const reserved = yield* Effect.all(racing, { concurrency: "unbounded" })
          expect(reserved.filter((one) => one === "kept")).toHaveLength(2)
          // A read-only process may open it while another one writes.
          expect((yield* readTable(folder)).find(({ id }) => id === held.id)?.state).toBe("signed")
        })
      )
      const again = yield* fileStore(folder)
      expect((yield* again.ofInvocation("kept")).undelivered).toEqual([{ ...held, state: "signed", authorization }])
    }).pipe(Effect.scoped, Effect.provide(Layer.merge(NodeServices.layer, Locks.layer)))
  )

  it.effect("the minute of a rate follows ledgers, not the machine's clock [S217]", () =>
    Effect.gen(function* () {
      const limited = { ...ceilings, paymentsPerMinute: 1 }
      const at = (createdAtMillis: number, ledgerSeconds: number) =>
        reservation({
          agent: "key:clock",
          invocation: `at-${createdAtMillis}`,
          amount: 1n,
          createdAtMillis,
          ledgerSeconds
        })
      for (const store of [yield* memoryStore, countingOwnMinute(yield* memoryStore)]) {
        expect(yield* store.reserve(at(0, 1_000), limited, 0)).toBe("kept")
        // Three minutes forward, or a day back.
        expect(yield* store.reserve(at(180_000, 1_005), limited, 0)).toBe("over")
        expect(yield* store.reserve(at(-86_400_000, 1_005), limited, 0)).toBe("over")
      }
      const store = yield* memoryStore
      yield* store.reserve(at(0, 1_000), limited, 0)
      expect(yield* store.reserve(at(1, 1_060), limited, 0)).toBe("kept")
      // A ledger that uses the machine's clock: the process's own count applies.
      const own = countingOwnMinute(yield* memoryStore)
      expect(yield* own.reserve(at(0, 1_000), limited, 0)).toBe("kept")
      expect(yield* own.reserve(at(180_000, 1_180), limited, 0)).toBe("over")
    })
  )

  it.effect("the budget drops a day only when a later one is counted [S104]", () =>
    Effect.gen(function* () {
      const store = yield* memoryStore
      const on = (counted: string, amount: bigint) =>
        Effect.flatMap(Clock.currentTimeMillis, (createdAtMillis) =>
          store.reserve(reservation({ day: counted, amount, createdAtMillis, invocation: "one" }), ceilings, 0)
        )
      const spent = reservation({ day: "2026-01-01", amount: 50n })
      yield* store.reserve(spent, ceilings, 0)
      yield* store.move(spent.id, { state: "signed", authorization })
      yield* store.move(spent.id, { state: "settled" })
      yield* TestClock.adjust("30 days")
      yield* store.reserve(reservation({ agent: "key:other", day: "2026-01-01" }), ceilings, 0)
      expect(yield* on("2026-01-01", 1n)).toBe("over")
      yield* store.reserve(reservation({ agent: "key:other", day: "2026-01-04" }), ceilings, 0)
      expect(yield* on("2026-01-01", 50n)).toBe("kept")
    })
  )

  it("a reservation never leaves settled or released, nor frees spent money [S104]", () => {
    const states: ReadonlyArray<ReservationState> = ["reserved", "signed", "unknown", "spent", "settled", "released"]
    const moves = states.flatMap((from) => states.filter((to) => mayTransition(from, to)).map((to) => `${from} ${to}`))
    expect(moves).toEqual([
      "reserved signed",
      "reserved released",
      "signed unknown",
      "signed spent",
      "signed settled",
      "signed released",
      "unknown spent",
      "unknown settled",
      "unknown released",
      "spent settled"
    ])
  })
})

describeDatabases(
  "a budget",
  (database) => {
    it.effect(
      "two replicas sharing a PostgreSQL budget never exceed a ceiling together [S211, S217, S303]",
      () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const older = sql`update mcp_tools_reservations set created_at = created_at - interval '61 seconds'`
          yield* storeFacts(yield* postgresStore, older)
          const [one, two] = [yield* postgresStore, yield* postgresStore]
          const all = yield* Effect.all(
            Array.from({ length: 12 }, (_, i) =>
              (i % 2 === 0 ? one : two).reserve(reservation({ agent: "key:both" }), ceilings, 0)
            ),
            { concurrency: "unbounded" }
          )
          expect(all.filter((one) => one === "kept")).toHaveLength(5)
        }).pipe(Effect.provide(database)),
      240_000
    )

    it.effect(
      "a PostgreSQL budget counts its minute by the database's clock",
      () =>
        Effect.gen(function* () {
          const [one, two] = [yield* postgresStore, yield* postgresStore]
          const single = { ...ceilings, paymentsPerMinute: 1 }
          const at = (createdAtMillis: number) => reservation({ agent: "key:clocks", createdAtMillis })
          expect(yield* one.reserve(at(0), single, 0)).toBe("kept")
          for (const off of [2, -2, 3 * 1_440]) expect(yield* two.reserve(at(off * 60_000), single, 0)).toBe("over")
          const now = yield* Clock.currentTimeMillis
          const [age] = (yield* two.open)
            .filter(({ agent }) => agent === "key:clocks")
            .map((own) => now - own.createdAtMillis)
          expect(age).toBeGreaterThanOrEqual(0)
          expect(age).toBeLessThan(60_000)
        }).pipe(Effect.provide(database)),
      240_000
    )

    it.effect(
      "PostgreSQL prunes only ended reservations of days no longer counted",
      () =>
        Effect.gen(function* () {
          const [sql, store] = [yield* SqlClient.SqlClient, yield* postgresStore]
          const states: ReadonlyArray<ReservationState> = [
            "reserved",
            "signed",
            "unknown",
            "spent",
            "settled",
            "released"
          ]
          // This machine's clock is decades behind and is not used.
          yield* TestClock.setTime(400 * day)
          for (const [when, seconds, counted] of [
            ["old", 1, "2026-01-01"],
            ["today", 1, "2026-01-02"],
            ["new", -60, "2026-01-04"]
          ] as const)
            for (const state of states) {
              const one = reservation({
                id: `${when} ${state}`,
                agent: `key:age ${state}`,
                day: counted
              })
              yield* store.reserve(one, ceilings, 0)
              yield* store.move(one.id, { state: "signed", authorization })
              yield* sql`update mcp_tools_reservations set state = ${state},
                created_at = clock_timestamp() - interval '3 days' - ${seconds}::int * interval '1 second'
                where id = ${one.id}`
            }
          const kept = Effect.map(
            sql<{ id: string }>`select id from mcp_tools_reservations where agent like 'key:age %' order by id`,
            (rows) => rows.map(({ id }) => id)
          )
          expect(yield* forgetReservations(3 * day)).toBe(false)
          expect(yield* kept).toEqual(
            [
              ...states.map((state) => `new ${state}`),
              // Money spent without delivery is never paid again, however old it is.
              ...["old reserved", "old signed", "old spent", "old unknown"],
              // Three days are counted, regardless of the machine's clock.
              ...states.filter((state) => state !== "released").map((state) => `today ${state}`)
            ].toSorted()
          )
        }).pipe(Effect.provide(database)),
      240_000
    )
  },
  ["mcp-tools"]
)

describe("a held reservation", () => {
  const seal = makeSeal(Effect.runSync(Effect.provide(Crypto, NodeCrypto.layer)), Redacted.make(new Uint8Array(32)))
  const option = {
    scheme: "exact",
    network: "ledger:testnet",
    asset: "CUSDC",
    amount: 10n,
    payTo: "GSELLER",
    maxTimeoutSeconds: 60,
    feesSponsored: true,
    extra: "{}",
    sent: {}
  }
  const paymentOf = ({ id, invocation: key }: Reservation) =>
    seal.seal(
      id,
      encodeKeptPayment({
        identifier: id,
        payment: {},
        authorization,
        replaces: [],
        invocation: {
          key,
          ref: "v1.ref",
          versionHash: "v",
          option,
          about: { kind: "http", origin: "https://seller.example", grade: "proven" }
        }
      })
    )

  /** A ledger that records the queried nonces; its node has the ledgers from `oldestLedger`, without the payment. */
  const ledgerAt = (latestLedger: number, spent: boolean, oldestLedger: number) =>
    LedgerRpc.of({
      nonceSpent: () => Effect.succeed({ latestLedger, spent, inLedger: Option.none() }),
      transaction: () => Effect.succeed({ _tag: "NotFound", latestLedger, oldestLedger }),
      scan: () => Effect.succeed({ scannedTo: latestLedger, oldestLedger, found: [] })
    } as never)

  const after = (
    state: ReservationState,
    latestLedger: number,
    spent: boolean,
    { isKept = true, oldestLedger = 1 }: { readonly isKept?: boolean; readonly oldestLedger?: number } = {}
  ) =>
    Effect.gen(function* () {
      const store = yield* memoryStore
      const one = reservation({ createdAtMillis: 0, invocation: "held" })
      yield* store.reserve(one, ceilings, 0)
      if (state !== "reserved") yield* store.move(one.id, { state: "signed", authorization })
      if (state !== "reserved" && isKept) yield* store.keep(one.id, { payment: paymentOf(one) })
      if (state === "unknown") yield* store.move(one.id, { state: "unknown", transaction: "ab" })
      yield* TestClock.adjust("4 minutes")
      const { every, turn } = yield* makeHoldTurn.pipe(
        Effect.provideService(BudgetStore, store),
        Effect.provideService(PaymentSeal, seal),
        Effect.provideService(LedgerRpc, ledgerAt(latestLedger, spent, oldestLedger))
      )
      yield* turn
      const [open] = yield* store.open
      const [known] = (yield* store.ofInvocation("held")).undelivered
      return { state: open?.state ?? known?.state ?? "released", every: yield* every }
    })

  it.effect("a held reservation is decided by its nonce or its last ledger [S104]", () =>
    Effect.gen(function* () {
      for (const state of ["signed", "unknown"] as const) {
        expect((yield* after(state, 60, true)).state).toBe("spent")
        expect((yield* after(state, 60, false)).state).toBe(state)
        expect((yield* after(state, 99, false)).state).toBe(state)
        expect((yield* after(state, 100, false)).state).toBe("released")
      }
    })
  )

  it.effect("a reservation with an expired nonce entry is decided by its ledgers [S104]", () =>
    Effect.gen(function* () {
      for (const state of ["signed", "unknown"] as const) {
        expect((yield* after(state, 101, false)).state).toBe("released")
        // The search starts at the ledger after the payment's base ledger.
        expect((yield* after(state, 101, false, { oldestLedger: 88 })).state).toBe("released")
        expect((yield* after(state, 101, false, { oldestLedger: 89 })).state).toBe("unknown")
      }
    })
  )

  it.effect("a reservation is released after its last ledger if never sent [S104]", () =>
    Effect.gen(function* () {
      const never = { isKept: false, oldestLedger: 100 }
      expect((yield* after("signed", 99, false, never)).state).toBe("signed")
      expect((yield* after("signed", 101, false, never)).state).toBe("released")
      // A payment sent by a version that stored no payments.
      expect((yield* after("unknown", 101, false, never)).state).toBe("unknown")
    })
  )

  it.effect("a process that signed for less does not lower a channel's totals", () =>
    Effect.gen(function* () {
      const store = yield* memoryStore
      yield* store.keepTotals("channel", { counted: 200n, sent: 300n })
      // Read before the other process's voucher, written after it.
      yield* store.keepTotals("channel", { counted: 250n, sent: 250n })
      expect(yield* store.totals("channel")).toEqual({ counted: 250n, sent: 300n })
      expect(yield* store.totals("another")).toEqual({ counted: 0n, sent: 0n })
    })
  )

  it.effect("a set clock neither ends nor stretches the replay window [S212]", () =>
    Effect.gen(function* () {
      const { clock, set } = yield* settableClock
      yield* Effect.gen(function* () {
        const store = yield* memoryStore
        const one = reservation({ invocation: "bought" })
        yield* store.reserve(one, ceilings, 0)
        yield* store.move(one.id, { state: "signed", authorization })
        yield* store.move(one.id, { state: "spent" })
        yield* store.move(one.id, { state: "acknowledged" })
        const isReplayed = Effect.gen(function* () {
          yield* store.settleAcknowledged(600_000)
          return (yield* store.ofInvocation("bought")).undelivered.length === 1
        })
        for (const millis of [3_600_000, -2 * day]) {
          set(millis)
          expect(yield* isReplayed).toBe(true)
        }
        yield* TestClock.adjust("9 minutes")
        expect(yield* isReplayed).toBe(true)
        yield* TestClock.adjust("1 minute")
        expect(yield* isReplayed).toBe(false)
      }).pipe(Effect.provideService(Clock.Clock, clock))
    })
  )

  it.effect("a voucher that its process never stored does not block its call [S104]", () =>
    Effect.gen(function* () {
      const held = Effect.fnUntraced(function* (minutes: number, payment?: string) {
        const store = yield* memoryStore
        const one = reservation({ createdAtMillis: yield* Clock.currentTimeMillis, invocation: "held", amount: 0n })
        yield* store.reserve(one, ceilings, 0)
        yield* store.move(one.id, { state: "signed" })
        if (payment !== undefined) yield* store.keep(one.id, { payment })
        yield* TestClock.adjust(`${minutes} minutes`)
        const { turn } = yield* makeHoldTurn.pipe(
          Effect.provideService(BudgetStore, store),
          Effect.provideService(PaymentSeal, seal),
          Effect.provideService(LedgerRpc, ledgerAt(60, false, 1))
        )
        yield* turn
        // A process that was only slow can store and send nothing any more.
        const isLate = yield* store.keep(one.id, { payment: "late" })
        return [(yield* store.ofInvocation("held")).undelivered.map(({ state }) => state), isLate]
      })
      expect(yield* held(2)).toEqual([["signed"], true])
      expect(yield* held(4)).toEqual([[], false])
      expect(yield* held(4, "sealed")).toEqual([["signed"], true])
    })
  )

  it.effect("a held reservation is checked every 15 seconds, each ledger near expiry [S104]", () =>
    Effect.gen(function* () {
      expect(String((yield* after("unknown", 60, false)).every)).toContain("15000")
      expect(String((yield* after("unknown", 95, false)).every)).toContain("500")
    })
  )

  it.effect("an unsigned reservation is released when its call has died [S104]", () =>
    Effect.gen(function* () {
      expect((yield* after("reserved", 60, false)).state).toBe("released")
    })
  )
})
