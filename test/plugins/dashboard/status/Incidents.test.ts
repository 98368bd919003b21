// Incidents in a real database: records that the actor writes of its metrics, writes that it catches up on when the
// database is back, and reading runs of minutes.
import { expect } from "@effect/vitest"
import { Effect, Layer, Metric } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Supervisor } from "../../../../kernel/actor/Supervisor.ts"
import { MetricReadings } from "../../../../kernel/payment/report/MetricReadings.ts"
import { measure } from "../../../../kernel/telemetry/Measure.ts"
import { settling } from "../../../../kernel/telemetry/metrics.ts"
import { Incidents } from "../../../../plugins/dashboard/status/Incidents.ts"
import { describeDatabases, onOneDatabase } from "../../../support/databases.ts"

const minuteMillis = 60_000
const begins = Math.floor(Date.now() / minuteMillis) * minuteMillis - 60 * minuteMillis
const at = (minute: number) => new Date(begins + minute * minuteMillis)

/** Incidents with separate metrics, and nothing to refresh. */
const watching = <A, E>(use: Effect.Effect<A, E, Incidents | SqlClient.SqlClient>) =>
  Effect.scoped(
    Effect.provide(use, Incidents.layer.pipe(Layer.provide(Layer.succeed(MetricReadings, { refresh: Effect.void }))), {
      local: true
    })
  ).pipe(Effect.provide(Supervisor.layer, { local: true }), Effect.provideService(Metric.MetricRegistry, new Map()))

/** Turns of the actor, which wait for the database in real time; its clock begins at 0. */
const passes = (minutes: number) =>
  Effect.gen(function* () {
    for (let half = 0; half < minutes * 2; half++) {
      yield* TestClock.adjust("30 seconds")
      yield* TestClock.withLive(Effect.sleep("60 millis"))
    }
  })

describeDatabases(
  "incidents",
  onOneDatabase((it) => {
    it.effect("a condition that held for minutes is one incident, and its end is the first minute without it", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`delete from dashboard_incidents`
        yield* watching(
          Effect.gen(function* () {
            const { read } = yield* Incidents
            yield* measure(settling.unresolved, 0)
            yield* passes(2)
            expect(yield* read(new Date(-minuteMillis))).toEqual([])
            yield* measure(settling.unresolved, 1)
            yield* passes(3)
            yield* measure(settling.unresolved, 0)
            yield* passes(5)
            const [one, ...others] = yield* read(new Date(-minuteMillis))
            expect(others).toEqual([])
            expect(one).toMatchObject({ cause: "settlements_unresolved" })
            expect(one!.from.getTime()).toBeGreaterThanOrEqual(2 * minuteMillis)
            expect(one!.from.getTime()).toBeLessThanOrEqual(3 * minuteMillis)
            expect((one!.to!.getTime() - one!.from.getTime()) / minuteMillis).toBeGreaterThanOrEqual(3)
            expect((one!.to!.getTime() - one!.from.getTime()) / minuteMillis).toBeLessThanOrEqual(4)
          })
        )
      })
    )

    it.effect("minutes that could not be written are written when they can be", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`delete from dashboard_incidents`
        yield* watching(
          Effect.gen(function* () {
            yield* sql`alter table dashboard_incidents rename to incidents_away`
            yield* measure(settling.unresolved, 1)
            yield* passes(4)
            yield* measure(settling.unresolved, 0)
            yield* passes(2)
            yield* sql`alter table incidents_away rename to dashboard_incidents`
            yield* passes(1)
            const rows = yield* sql<{ readonly count: number }>`select count(*)::int as count from dashboard_incidents`
            expect(rows[0]!.count).toBeGreaterThanOrEqual(4)
          })
        )
      })
    )

    it.effect("runs of minutes are incidents by cause, one missing minute is none, the last one may last", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`delete from dashboard_incidents`
        const write = (cause: string, ...minutes: ReadonlyArray<number>) =>
          Effect.forEach(minutes, (minute) => sql`insert into dashboard_incidents values (${cause}, ${at(minute)})`)
        yield* write("settle_busy", 1, 2, 4, 5, 10, 11)
        yield* write("ledger_stalled", 4)
        yield* sql`insert into dashboard_incidents values ('sponsor_empty', date_trunc('minute', clock_timestamp()))`
        // A condition that held a minute ago may still hold: a replica writes it at the end of a turn.
        yield* sql`insert into dashboard_incidents
          values ('settlements_unresolved', date_trunc('minute', clock_timestamp()) - interval '1 minute')`
        yield* watching(
          Effect.gen(function* () {
            const { read } = yield* Incidents
            const found = (yield* read(at(0))).map(({ cause, from, to }) => [
              cause,
              (from.getTime() - begins) / minuteMillis,
              to === null ? null : (to.getTime() - begins) / minuteMillis
            ])
            expect(found).toEqual([
              ["sponsor_empty", expect.any(Number), null],
              ["settlements_unresolved", expect.any(Number), null],
              ["settle_busy", 10, 12],
              ["ledger_stalled", 4, 5],
              ["settle_busy", 1, 6]
            ])
            expect(yield* read(at(12))).toHaveLength(2)
          })
        )
      })
    )
  }),
  ["kernel", "dashboard"]
)
