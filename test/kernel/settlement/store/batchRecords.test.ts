// Concurrent records while one principal's are blocked: another transaction may lock a row of the budget, and each of
// that principal's records then waits for the lock timeout.
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { Budget } from "../../../../kernel/budget/Budget.ts"
import { Limits } from "../../../../kernel/config/Limits.ts"
import { Facts } from "../../../../kernel/facts/Facts.ts"
import { batchRecords } from "../../../../kernel/settlement/store/batchRecords.ts"
import type { NewSettlement, RecordAnswer } from "../../../../kernel/settlement/store/Settlements.ts"
import { layerTest } from "../../../support/layerTest.ts"

const settlementOf = (principal: string) =>
  ({ channel: { address: `channel of ${principal}` }, principal: { keyed: true, source: principal } }) as never

/** A single record does not call any of these. */
const unused = Layer.mergeAll(
  layerTest(SqlClient.SqlClient, {}),
  layerTest(Budget, {}),
  layerTest(Facts, {}),
  layerTest(Limits, {})
)

it.effect("a record never waits for another principal's, concurrent or later", () =>
  Effect.gen(function* () {
    const held = yield* Deferred.make<RecordAnswer>()
    const { record } = yield* batchRecords("here", ({ principal }: NewSettlement) =>
      principal.source === "key:slow" ? Deferred.await(held) : Effect.succeed<RecordAnswer>({ _tag: "Recorded" })
    )
    const begin = (principal: string) => Effect.forkChild(record(settlementOf(principal)), { startImmediately: true })
    const [slow, quick] = [yield* begin("key:slow"), yield* begin("key:quick")]
    for (let turns = 0; turns < 20; turns++) yield* Effect.yieldNow
    expect([slow.pollUnsafe(), quick.pollUnsafe()?._tag]).toEqual([undefined, "Success"])
    const later = yield* begin("key:quick")
    for (let turns = 0; turns < 20; turns++) yield* Effect.yieldNow
    expect([slow.pollUnsafe(), later.pollUnsafe()?._tag]).toEqual([undefined, "Success"])
    yield* Deferred.succeed<RecordAnswer, never>(held, { _tag: "BudgetExceeded" })
    expect(yield* Fiber.join(slow)).toEqual({ _tag: "BudgetExceeded" })
  }).pipe(Effect.provide(unused), Effect.scoped)
)

it.effect("a batch of records that times out is unknown and not retried", () =>
  Effect.gen(function* () {
    const alone: Array<string> = []
    const timedOut = new SqlError.SqlError({ reason: new SqlError.StatementTimeoutError({ cause: "too long" }) })
    const batch = Layer.mergeAll(unused, Layer.succeed(Budget, { reserving: () => Effect.fail(timedOut) } as never))
    const answers = yield* Effect.gen(function* () {
      const { record } = yield* batchRecords("here", ({ channel }: NewSettlement) => {
        alone.push(channel.address)
        return Effect.succeed<RecordAnswer>({ _tag: "Recorded" })
      })
      const brought = ["one", "two", "three"].map(
        (address) =>
          ({
            id: "00000000",
            budgetStroops: 1n,
            channel: { address },
            principal: { keyed: true, source: "key:a" }
          }) as never
      )
      return yield* Effect.forEach(brought, (one) => Effect.exit(record(one)), { concurrency: "unbounded" })
    }).pipe(Effect.provide(batch))
    const failed = answers.filter(({ _tag }) => _tag === "Failure").length
    expect(failed).toBeGreaterThan(1)
    expect(alone.length).toBe(answers.length - failed)
  }).pipe(Effect.scoped)
)
