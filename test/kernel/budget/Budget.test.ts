import { expect, layer } from "@effect/vitest"
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { describe } from "vitest"
import { Budget, BudgetTime } from "../../../kernel/budget/Budget.ts"
import type { Reservation } from "../../../kernel/budget/Reservation.ts"
import { inTransaction } from "../../../kernel/database/Database.ts"
import { countStatements } from "../../support/countStatements.ts"
import { databaseKinds } from "../../support/databases.ts"
import { books, byMachineClock, emptyStore, storeLayer } from "../settlement/store.ts"

const keyed = (id: string) => ({ id, keyed: true })
const anonymous = (id: string) => ({ id, keyed: false })
const middayMillis = Date.UTC(2026, 0, 1, 12)

const days = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) =>
    sql<{
      day: string
      reserved: bigint
      committed: bigint
    }>`select day::text as day, reserved_stroops as reserved, committed_stroops as committed
    from kernel_sponsor_budget order by day`
)

/** Runs an effect on a stopped clock. */
const at = <A, E, R>(millis: number, effect: Effect.Effect<A, E, R>) =>
  Effect.clockWith((clock) =>
    Effect.provideService(
      effect,
      Clock.Clock,
      Object.assign(Object.create(clock), {
        currentTimeMillisUnsafe: () => millis,
        currentTimeMillis: Effect.succeed(millis)
      })
    )
  )

for (const kind of databaseKinds) {
  const limits = {
    sponsoredPerPrincipalPerDayStroopsMax: 300_000n,
    sponsoredPerDayStroopsMax: 600_000n,
    sponsoredByKeyPerDayStroopsMax: new Map([["key:large", 450_000n]])
  }
  describe(`the sponsor's budget on ${kind}`, () =>
    layer(
      storeLayer(kind, limits),
      byMachineClock
    )((it) => {
      const fresh = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.andThen(emptyStore(1), effect)

      it.effect("reserves the maximum and commits the ledger's charge [S102, S103, S270]", () =>
        fresh(
          Effect.gen(function* () {
            const budget = yield* Budget
            const reservation = yield* budget.reserve(keyed("key:a"), 50_000n, 3)
            expect(reservation).toMatchObject({ principal: "key:a", keyed: true, stroops: 50_000n })
            expect((yield* books).own).toEqual({ reserved: 50_000n, committed: 0n })
            yield* budget.commit(reservation!, 12_345n)
            expect(yield* books).toEqual({
              own: { reserved: 0n, committed: 12_345n },
              all: { reserved: 0n, committed: 12_345n }
            })
            const released = yield* budget.reserve(keyed("key:a"), 50_000n, 4)
            yield* budget.commit(released!, 0n)
            expect(yield* books).toEqual({
              own: { reserved: 0n, committed: 12_345n },
              all: { reserved: 0n, committed: 12_345n }
            })
          })
        )
      )

      it.effect("the budget is exact per principal, also for concurrent reservations [S245, S270]", () =>
        fresh(
          Effect.gen(function* () {
            const budget = yield* Budget
            const tries = yield* Effect.forEach(
              Array.from({ length: 9 }, (_, spread) => spread),
              (spread) => inTransaction(budget.reserve(keyed("key:a"), 50_000n, spread)),
              { concurrency: "unbounded" }
            )
            expect(tries.filter((reservation) => reservation !== undefined)).toHaveLength(6)
            expect(yield* budget.fits(keyed("key:a"), 1n)).toBe(false)
            expect(yield* budget.fits(keyed("key:b"), 300_000n)).toBe(true)
            expect(yield* budget.reserve(keyed("key:b"), 300_001n, 0)).toBeUndefined()
            expect(yield* books).toMatchObject({ own: { reserved: 300_000n }, all: { reserved: 300_000n } })
          })
        )
      )

      it.effect("the budget is read once for concurrent requests, each with its own decision", () =>
        fresh(
          Effect.gen(function* () {
            const budget = yield* Budget
            yield* budget.reserve(keyed("key:full"), 300_000n, 1)
            const caller = [...Array.from({ length: 20 }, () => "key:empty"), "key:other", "key:full"]
            const { statements, value } = yield* countStatements(
              Effect.forEach(caller, (id) => budget.fits(keyed(id), 1n), { concurrency: "unbounded" })
            )
            expect(value).toEqual(caller.map((id) => id !== "key:full"))
            expect(statements).toBe(1)
          })
        )
      )

      it.effect("reserves half of the budget for callers with a key [S245, S270]", () =>
        fresh(
          Effect.gen(function* () {
            const budget = yield* Budget
            expect(yield* budget.reserve(anonymous("ip:1"), 200_000n, 0)).toBeDefined()
            expect(yield* budget.fits(anonymous("ip:2"), 100_001n)).toBe(false)
            expect(yield* budget.reserve(anonymous("ip:2"), 100_001n, 1)).toBeUndefined()
            expect(yield* budget.reserve(anonymous("ip:2"), 100_000n, 2)).toBeDefined()
            expect(yield* budget.reserve(anonymous("ip:3"), 1n, 3)).toBeUndefined()
            expect(yield* budget.reserve(keyed("key:a"), 300_000n, 4)).toBeDefined()
            expect(yield* budget.fits(keyed("key:b"), 1n)).toBe(false)
            expect(yield* budget.reserve(keyed("key:b"), 1n, 5)).toBeUndefined()
          })
        )
      )

      it.effect("a reservation commits on its UTC day, and each day starts fresh [S102]", () =>
        fresh(
          Effect.gen(function* () {
            const budget = yield* Budget
            const tomorrow = middayMillis + 86_400_000
            const before = yield* at(middayMillis, budget.reserve(keyed("key:a"), 300_000n, 0))
            expect(before).toMatchObject({ day: "2026-01-01" })
            expect(yield* at(middayMillis, budget.fits(keyed("key:a"), 1n))).toBe(false)
            expect(yield* at(tomorrow, budget.fits(keyed("key:a"), 300_000n))).toBe(true)
            const after = yield* at(tomorrow, budget.reserve(keyed("key:a"), 100_000n, 0))
            yield* at(tomorrow, budget.commit(before!, 7_000n))
            expect(yield* days).toEqual([
              { day: "2026-01-01", reserved: 0n, committed: 7_000n },
              { day: "2026-01-02", reserved: 100_000n, committed: 0n }
            ])
            yield* budget.commit(after!, 8_000n)
            expect(yield* books).toEqual({
              own: { reserved: 0n, committed: 15_000n },
              all: { reserved: 0n, committed: 15_000n }
            })
          })
        )
      )

      it.effect("the budget counts the ledger's days, not this machine's [S102]", () =>
        fresh(
          Effect.gen(function* () {
            let ledgerMillis = middayMillis
            const time = Effect.sync(() => ledgerMillis)
            const budget = Context.get(
              yield* Layer.build(Layer.fresh(Budget.layer)).pipe(Effect.provideService(BudgetTime, time)),
              Budget
            )
            const wrongYear = Date.UTC(2031, 5, 5)
            expect(yield* at(wrongYear, budget.reserve(keyed("key:a"), 300_000n, 0))).toMatchObject({
              day: "2026-01-01"
            })
            expect(yield* at(wrongYear + 86_400_000, budget.fits(keyed("key:a"), 1n))).toBe(false)
            ledgerMillis += 86_400_000
            expect(yield* at(wrongYear, budget.fits(keyed("key:a"), 300_000n))).toBe(true)
          })
        )
      )

      it.effect("the budget bounds each key separately and reports its use [S245, S300]", () =>
        fresh(
          Effect.gen(function* () {
            const budget = yield* Budget
            expect(yield* budget.reserve(keyed("key:large"), 400_000n, 0)).toBeDefined()
            expect(yield* budget.fits(keyed("key:large"), 50_001n)).toBe(false)
            expect(yield* budget.reserve(keyed("key:large"), 50_001n, 0)).toBeUndefined()
            expect(yield* budget.reserve(keyed("key:small"), 300_001n, 0)).toBeUndefined()
            expect(yield* budget.reserve(anonymous("ip:1"), 1_000n, 0)).toBeDefined()
            expect(yield* budget.status).toMatchObject({
              all: { usedStroops: 401_000n, maxStroops: 600_000n },
              anonymous: { usedStroops: 1_000n, maxStroops: 300_000n },
              keyed: [{ principal: "key:large", usedStroops: 400_000n, maxStroops: 450_000n }]
            })
          })
        )
      )

      it.effect("a rolled back transaction leaves no reservation", () =>
        fresh(
          Effect.gen(function* () {
            const budget = yield* Budget
            const undone: Effect.Effect<Reservation | undefined, unknown, any> = inTransaction(
              Effect.andThen(budget.reserve(keyed("key:a"), 50_000n, 0), Effect.fail("no"))
            )
            expect(yield* Effect.flip(undone)).toBe("no")
            const interrupted = inTransaction(
              Effect.andThen(budget.reserve(keyed("key:a"), 50_000n, 0), Effect.interrupt)
            )
            yield* Effect.exit(interrupted)
            const zero = { reserved: 0n, committed: 0n }
            expect(yield* books).toEqual({ own: zero, all: zero })
          })
        )
      )

      it.effect("records a charge without a reservation, even beyond the budget", () =>
        fresh(
          Effect.gen(function* () {
            const budget = yield* Budget
            yield* budget.charge(keyed("key:a"), 290_000n, 0)
            yield* budget.charge(keyed("key:a"), 20_000n, 0)
            expect(yield* books).toEqual({
              own: { reserved: 0n, committed: 310_000n },
              all: { reserved: 0n, committed: 310_000n }
            })
            expect(yield* budget.fits(keyed("key:a"), 1n)).toBe(false)
          })
        )
      )
    }))
}
