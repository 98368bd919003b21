// Incidents of the last 30 days: start, end and cause. Twice a minute every replica compares its own metrics with the
// conditions and records each minute during which a condition held. An incident is a run of such minutes at any
// replica, to the minute. If the database itself is the incident, minutes that cannot be written are kept in memory and
// written afterwards. Minutes without any replica's heartbeat come from `ServiceLevels`. Nothing here is on a payment's
// path.
import { Context, Effect, Layer, Metric } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { MetricReadings } from "../../../kernel/payment/report/MetricReadings.ts"
import { daysReported } from "../../../kernel/settlement/operators/ServiceLevels.ts"
import { oldBefore, trustedMillis } from "../../../kernel/time/trustedTime.ts"
import { watchConditions } from "./watchConditions.ts"

/** A run of minutes of one cause, at any replica. */
export interface Incident {
  readonly cause: string
  readonly from: Date
  /** Null while it lasts. */
  readonly to: Date | null
}

/** Incidents that are listed, the newest first. */
export const incidentsMax = 100
const keptMillis = (daysReported + 1) * 86_400_000

const read = (sql: SqlClient.SqlClient) => (since: Date) =>
  sql<Incident>`select cause, "from", case when "to" < clock_timestamp() - interval '2 minutes' then "to" end as "to"
    from (select cause, min(minute) as "from", max(minute) + interval '1 minute' as "to"
      from (select cause, minute, count(*) filter (where begins) over (partition by cause order by minute) as run
        from (select cause, minute, coalesce(minute - lag(minute) over (partition by cause order by minute)
            > interval '2 minutes', true) as begins
          from dashboard_incidents where minute >= ${since}) marked) runs
      group by cause, run) incidents
    order by "from" desc, cause limit ${incidentsMax}`

export class Incidents extends Context.Service<
  Incidents,
  { readonly read: (since: Date) => Effect.Effect<ReadonlyArray<Incident>, SqlError.SqlError> }
>()("tollkeeper/dashboard/Incidents") {
  static readonly layer = Layer.effect(
    Incidents,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { refresh } = yield* MetricReadings
      const watch = watchConditions()
      yield* reconciler({
        id: "incidents",
        every: "30 seconds",
        turn: Effect.gen(function* () {
          yield* refresh
          watch.read(yield* trustedMillis, yield* Metric.snapshot)
          const minutes = watch.waiting()
          if (minutes.length === 0) return
          yield* sql`insert into dashboard_incidents (cause, minute)
            select * from unnest(${minutes.map(({ cause }) => cause)}::text[],
              ${minutes.map(({ minute }) => new Date(minute).toISOString())}::timestamptz[]) on conflict do nothing`
          watch.written(minutes)
          yield* sql`delete from dashboard_incidents where minute < ${yield* oldBefore(keptMillis)}`
        })
      })
      return Incidents.of({ read: read(sql) })
    })
  )
}
