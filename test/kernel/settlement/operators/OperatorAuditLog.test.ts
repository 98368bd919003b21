// The audit trail of operators: a row before the action and one after it, in a real database; rows never change.
import { expect } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import { makeAuditLog } from "../../../../kernel/settlement/operators/OperatorAuditLog.ts"
import { describeDatabases, onOneDatabase } from "../../../support/databases.ts"

const entry = { person: "ada", via: "api", action: "rotate", subject: "sponsor", reason: "a leak" } as const
const log = Effect.map(SqlClient.SqlClient, makeAuditLog)
const away = new SqlError.SqlError({ reason: new SqlError.UnknownError({ cause: new Error("away") }) })

describeDatabases(
  "operators' audit trail",
  onOneDatabase((it) => {
    it.effect("an act is recorded before it runs, and with its change after", () =>
      Effect.gen(function* () {
        const { list, record } = yield* log
        const during = yield* record(entry, list({ limit: 1 }), () => ({ before: "3", after: "4" }))
        expect(during).toMatchObject([{ ...entry, before: null, after: null, outcome: "asked" }])
        expect(yield* list({ limit: 1 })).toMatchObject([{ ...entry, before: "3", after: "4", outcome: "done" }])
      })
    )

    it.effect("a refused act has its reason, and one of an unknown end stays asked", () =>
      Effect.gen(function* () {
        const { list, record } = yield* log
        yield* Effect.exit(record(entry, Effect.fail({ message: "it is still in use" })))
        yield* Effect.exit(record(entry, Effect.fail(away)))
        const [unknown, refused] = yield* list({ limit: 2 })
        expect([unknown!.outcome, refused!.outcome]).toEqual(["asked", "it is still in use"])
        expect(yield* list({ before: unknown!.id, limit: 1 })).toEqual([refused])
      })
    )

    it.effect("a read has one row a period, and only a list with reads has it", () =>
      Effect.gen(function* () {
        const { list, recordOnce } = yield* log
        const read = { ...entry, action: "read", subject: "/metrics" }
        for (let times = 0; times < 3; times++) yield* recordOnce(read, 60_000)
        const readsOf = Effect.map(list({ limit: 9, withReads: true }), (acts) =>
          acts.filter(({ subject }) => subject === "/metrics")
        )
        expect(yield* readsOf).toMatchObject([{ ...read, outcome: "done" }])
        expect((yield* list({ limit: 9 })).filter(({ action }) => action === "read")).toEqual([])
        yield* TestClock.adjust("1 minute")
        yield* recordOnce(read, 60_000)
        expect(yield* readsOf).toHaveLength(2)
      })
    )

    it.effect("no row can be changed or deleted before thirty days", () =>
      Effect.gen(function* () {
        const { recordDone } = yield* log
        yield* recordDone(entry, "done", { after: "x" })
        const sql = yield* SqlClient.SqlClient
        for (const change of [
          sql`update kernel_operator_acts set person = 'eve'`,
          sql`delete from kernel_operator_acts`,
          sql`truncate kernel_operator_acts`
        ])
          expect(Exit.isFailure(yield* Effect.exit(change))).toBe(true)
      })
    )

    it.effect("an act that cannot be recorded is not done", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { record } = yield* log
        yield* sql`alter table kernel_operator_acts rename to acts_away`
        let acted = false
        const exit = yield* Effect.exit(
          record(
            entry,
            Effect.sync(() => void (acted = true))
          )
        )
        yield* sql`alter table acts_away rename to kernel_operator_acts`
        expect([Exit.isFailure(exit), acted]).toEqual([true, false])
      })
    )
  })
)
