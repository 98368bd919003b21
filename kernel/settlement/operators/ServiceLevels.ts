// What the service did over the last 30 days, from its own records: how long verification and settling took, how
// many settlements ended within two ledgers, and in which minutes any replica could write to the database. A minute
// without a beat is one of unavailability; gaps of two minutes and more are listed. Reads only, but for a beat a
// minute.
import { Clock, Context, Effect, Exit, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { reconciler } from "../../actor/Actor.ts"

/** What is reported. */
export const daysReported = 30
const millisPerDay = 86_400_000
/** Ledgers within which a settlement should have ended. */
const ledgersTarget = 2
/** Gaps that are listed, the newest first. */
const gapsMax = 50
/** The figures scan a month of settlements: they are read this often at most. */
const figuresFor = "5 minutes"

export interface Gap {
  readonly from: Date
  /** Null while no replica can write. */
  readonly to: Date | null
}

export interface Levels {
  readonly since: Date
  readonly settlements: bigint
  /** Milliseconds; null without any. */
  readonly verifyP95: number | null
  readonly settleP95: number | null
  /** Of those that ended, the share that ended within two ledgers of its record; null without any. */
  readonly endedInTwoLedgers: number | null
  /** Of outcomes with a count of endpoints, the share that two endpoints showed; null without any. */
  readonly confirmedByTwo: number | null
  /** Share of the minutes since the first beat of the window; null before the first. */
  readonly availability: number | null
  readonly gaps: ReadonlyArray<Gap>
}

interface Row {
  readonly settlements: bigint
  readonly verifyP95: number | null
  readonly settleP95: number | null
  readonly endedInTwoLedgers: number | null
  readonly confirmedByTwo: number | null
}

export class ServiceLevels extends Context.Service<
  ServiceLevels,
  { readonly read: Effect.Effect<Levels, SqlError.SqlError> }
>()("tollkeeper/settlement/ServiceLevels") {
  static readonly layer = Layer.effect(
    ServiceLevels,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const since = Effect.map(Clock.currentTimeMillis, (now) => new Date(now - daysReported * millisPerDay))
      yield* reconciler({
        id: "heartbeat",
        every: "1 minute",
        turn: Effect.gen(function* () {
          yield* sql`insert into kernel_heartbeats values (date_trunc('minute', clock_timestamp()))
            on conflict do nothing`
          yield* sql`delete from kernel_heartbeats where minute < ${yield* since}::timestamptz - interval '1 day'`
        })
      })
      const readFigures = Effect.gen(function* () {
        const from = yield* since
        const [row] = yield* sql<Row>`select count(*)::int8 as settlements,
            (percentile_cont(0.95) within group (order by extract(epoch from verified_at - asked_at) * 1000)
              filter (where verified_at is not null and asked_at is not null))::float8 as "verifyP95",
            (percentile_cont(0.95) within group (order by
              extract(epoch from resolved_at - coalesce(asked_at, recorded_at)) * 1000)
              filter (where state = 'settled'))::float8 as "settleP95",
            (avg(case when ledger - recorded_ledger <= ${ledgersTarget} then 1 else 0 end)
              filter (where ledger is not null))::float8 as "endedInTwoLedgers",
            (avg(confirmations - 1))::float8 as "confirmedByTwo"
          from kernel_settlements where recorded_at >= ${from}`
        return row!
      })
      const figures = yield* Effect.cachedWithTTL(readFigures, (exit) => (Exit.isSuccess(exit) ? figuresFor : 0))
      const read = Effect.gen(function* () {
        const from = yield* since
        const row = yield* figures
        const [beats] = yield* sql<{ availability: number | null }>`select
            (count(*) / nullif(extract(epoch from date_trunc('minute', clock_timestamp()) - min(minute)) / 60 + 1, 0))
              ::float8 as availability
          from kernel_heartbeats where minute >= ${from}`
        const gaps = yield* sql<Gap>`select "from", "to" from (
            select minute + interval '1 minute' as "from", lead(minute) over (order by minute) as "to"
            from kernel_heartbeats where minute >= ${from}) g
          where coalesce("to", clock_timestamp()) - "from" >= interval '2 minutes'
          order by "from" desc limit ${gapsMax}`
        return { since: from, ...row, availability: beats!.availability, gaps } satisfies Levels
      })
      return ServiceLevels.of({ read })
    })
  )
}
