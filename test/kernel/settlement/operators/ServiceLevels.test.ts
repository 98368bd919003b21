// Service levels by a test's clock: a running service is never called interrupted, and a stopped one is, to the minute.
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Supervisor } from "../../../../kernel/actor/Supervisor.ts"
import { ServiceLevels } from "../../../../kernel/settlement/operators/ServiceLevels.ts"
import { describeDatabases, onOneDatabase } from "../../../support/databases.ts"

/** The clock of a test begins at 0, and moves through each turn of the database's own actors. */
const beginning = Date.parse("1970-01-01T00:20:59.950Z")

const running = <A, E>(use: Effect.Effect<A, E, ServiceLevels | SqlClient.SqlClient>) =>
  Effect.scoped(Effect.provide(use, ServiceLevels.layer, { local: true })).pipe(
    Effect.provide(Supervisor.layer, { local: true })
  )

/** Time passes, and the turn that is due then ends, which waits for the database in real time. */
const pass = (millis: number) => Effect.andThen(TestClock.adjust(millis), TestClock.withLive(Effect.sleep("30 millis")))

describeDatabases(
  "service levels",
  onOneDatabase((it) => {
    it.effect("a stop of minutes is exactly the minutes that no beat met, also across a day's end", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`delete from kernel_heartbeats`
        yield* TestClock.setTime(Date.parse("1970-01-01T00:05:30Z"))
        for (const at of ["1969-12-31T23:50Z", "1969-12-31T23:51Z", "1970-01-01T00:03Z", "1970-01-01T00:04Z"])
          yield* sql`insert into kernel_heartbeats values (${new Date(at)})`
        const levels = yield* running(Effect.flatMap(ServiceLevels, ({ read }) => read))
        expect(levels).toMatchObject({ checks: 15, met: 4, observedFrom: new Date("1969-12-31T23:50Z") })
        expect(levels.gaps).toEqual([{ from: new Date("1969-12-31T23:52Z"), to: new Date("1970-01-01T00:03Z") }])
        expect(levels.days.slice(-2)).toEqual([
          { day: "1969-12-31", checks: 10, met: 2 },
          { day: "1970-01-01", checks: 5, met: 2 }
        ])
        expect(levels.days).toHaveLength(30)
      })
    )

    it.effect("a facilitator without a beat has no check, and one that is down has a gap that lasts", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`delete from kernel_heartbeats`
        yield* TestClock.setTime(Date.parse("1970-01-01T00:15:30Z"))
        const read = Effect.flatMap(ServiceLevels, ({ read }) => read)
        yield* sql`alter table kernel_heartbeats rename to heartbeats_away`
        yield* sql`create view kernel_heartbeats as select * from heartbeats_away where false`
        expect(yield* running(read)).toMatchObject({ checks: 0, met: 0, observedFrom: null, gaps: [] })
        yield* sql`drop view kernel_heartbeats`
        yield* sql`create view kernel_heartbeats as select timestamptz '1970-01-01 00:11Z' as minute`
        const down = yield* running(read)
        expect(down).toMatchObject({ checks: 4, met: 1, gaps: [{ from: new Date("1970-01-01T00:12Z"), to: null }] })
        yield* sql`drop view kernel_heartbeats`
        yield* sql`alter table heartbeats_away rename to kernel_heartbeats`
      })
    )

    it.effect(
      "a service that never stops reads 1 at every poll for ten minutes",
      () =>
        running(
          Effect.gen(function* () {
            const levels = yield* ServiceLevels
            const sql = yield* SqlClient.SqlClient
            // Turns that the machine delays drift against the minute; some polls come right after a minute's change.
            for (let second = 0; second < 600; second += 10) {
              yield* pass(second % 50 === 0 ? 10_150 : 9_850)
              // A beat of the test before, which its end interrupted, may be stored late.
              yield* sql`delete from kernel_heartbeats where minute < ${new Date(beginning - 60_000)}`
              const { checks, days, gaps, met } = yield* levels.read
              expect([second, met, gaps]).toEqual([second, checks, []])
              expect(days.reduce((sum, day) => sum + day.checks, 0)).toBe(checks)
            }
            expect((yield* levels.read).checks).toBeGreaterThanOrEqual(9)
          })
        ).pipe((test) =>
          Effect.gen(function* () {
            yield* (yield* SqlClient.SqlClient)`delete from kernel_heartbeats`
            yield* TestClock.setTime(beginning)
            yield* test
          })
        ),
      60_000
    )
  })
)
