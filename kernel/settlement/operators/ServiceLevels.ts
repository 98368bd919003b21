// The service levels of the last 30 UTC days, from the service's own records. Only this module computes them: the
// status page, the operation view and the dashboard show these figures. The figures: the duration of verification and
// settling, the share of settlements that ended within two ledgers, and the number of minutes with a replica that could
// write to the database. Each minute that has ended since the first beat is one check. A minute without a beat counts
// as unavailable and belongs to a gap.
import { Clock, Context, Duration, Effect, Exit, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { reconciler } from "../../actor/Actor.ts"

export const daysReported = 30
const millisPerMinute = 60_000
const millisPerDay = 86_400_000
/** Several beats fall into each minute, so that a late turn does not miss one. */
const beatEvery = "20 seconds"
/** Ledgers within which a settlement should have ended. */
const ledgersTarget = 2
/** Maximum number of listed gaps, the newest first. */
const gapsMax = 50
/**
 * The figures scan a month of settlements: an answer is cached for this many times the duration of its read, within
 * bounds.
 */
const keptFactor = 100
const keptMin = Duration.seconds(10)
const keptMax = Duration.minutes(5)

interface Gap {
  readonly from: Date
  /** Null while no replica can write. */
  readonly to: Date | null
}

/** The checks of one UTC day. */
interface Day {
  /** `YYYY-MM-DD`. */
  readonly day: string
  /** Minutes that have ended since the first beat; 0 on days before it. */
  readonly checks: number
  /** The number of minutes with a replica that could write. */
  readonly met: number
}

export interface Levels {
  /** Beginning of the first UTC day. */
  readonly since: Date
  /** The first minute that was checked; null before the first. */
  readonly observedFrom: Date | null
  readonly settlements: bigint
  /** Number of settled payments; the times to settle are theirs. */
  readonly settled: bigint
  /** Milliseconds; null without any. */
  readonly verifyP95: number | null
  readonly settleP50: number | null
  readonly settleP95: number | null
  /** Of the settlements that ended, the share that ended within two ledgers of their record; null without any. */
  readonly endedInTwoLedgers: number | null
  /** Of outcomes with a count of endpoints, the share that two endpoints showed; null without any. */
  readonly confirmedByTwo: number | null
  /** The sums over all days. */
  readonly checks: number
  readonly met: number
  /** The oldest first, one for each reported day. */
  readonly days: ReadonlyArray<Day>
  readonly gaps: ReadonlyArray<Gap>
}

type Figures = Omit<Levels, "since" | "observedFrom" | "checks" | "met" | "days" | "gaps">

const figuresOf = (sql: SqlClient.SqlClient, since: Date) =>
  Effect.map(
    sql<Figures>`select count(*)::int8 as settlements, count(*) filter (where state = 'settled')::int8 as settled,
        (percentile_cont(0.95) within group (order by extract(epoch from verified_at - asked_at) * 1000)
          filter (where verified_at is not null and asked_at is not null))::float8 as "verifyP95",
        (percentile_cont(0.5) within group (order by took) filter (where state = 'settled'))::float8 as "settleP50",
        (percentile_cont(0.95) within group (order by took) filter (where state = 'settled'))::float8 as "settleP95",
        (avg(case when ledger - recorded_ledger <= ${ledgersTarget} then 1 else 0 end)
          filter (where ledger is not null))::float8 as "endedInTwoLedgers",
        (avg(confirmations - 1))::float8 as "confirmedByTwo"
      from (select *, extract(epoch from resolved_at - coalesce(asked_at, recorded_at)) * 1000 as took
        from kernel_settlements where recorded_at >= ${since}) s`,
    ([row]) => row!
  )

/** The minutes of `day` between two times, Unix milliseconds. */
const minutesOf = (day: number, from: number, to: number): number =>
  Math.max(0, Math.min(day + millisPerDay, to) - Math.max(day, from)) / millisPerMinute

/** The current minute counts as a check only after it has ended. */
const checksOf = (sql: SqlClient.SqlClient, since: Date, until: Date) =>
  Effect.map(
    sql<{ readonly day: string; readonly met: number; readonly first: Date }>`select
        (minute at time zone 'UTC')::date::text as day, count(*)::int as met, min(minute) as first
      from kernel_heartbeats where minute < ${until} group by 1`,
    (rows) => {
      const first = Math.max(since.getTime(), Math.min(...rows.map((row) => row.first.getTime())))
      const met = new Map(rows.map((row) => [row.day, row.met]))
      const days = Array.from({ length: daysReported }, (_, index): Day => {
        const begin = since.getTime() + index * millisPerDay
        const day = new Date(begin).toISOString().slice(0, 10)
        return { day, checks: minutesOf(begin, first, until.getTime()), met: met.get(day) ?? 0 }
      })
      return {
        observedFrom: rows.length === 0 ? null : new Date(first),
        checks: days.reduce((sum, { checks }) => sum + checks, 0),
        met: days.reduce((sum, one) => sum + one.met, 0),
        days
      }
    }
  )

/** The minutes that `checksOf` does not count. */
const gapsOf = (sql: SqlClient.SqlClient, since: Date, until: Date) =>
  sql<Gap>`select greatest("from", ${since}) as "from", "to" from (
      select minute + interval '1 minute' as "from", lead(minute) over (order by minute) as "to"
      from kernel_heartbeats) g
    where coalesce("to", ${until}) > greatest("from", ${since})
    order by "from" desc limit ${gapsMax}`

export class ServiceLevels extends Context.Service<
  ServiceLevels,
  {
    /** Cached for ten seconds to five minutes, longer if the read takes longer. */
    readonly read: Effect.Effect<Levels, SqlError.SqlError>
  }
>()("tollkeeper/settlement/ServiceLevels") {
  static readonly layer = Layer.effect(
    ServiceLevels,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const thisMinute = Effect.map(Clock.currentTimeMillis, (now) => new Date(now - (now % millisPerMinute)))
      const sinceOf = (until: Date) =>
        new Date(until.getTime() - (until.getTime() % millisPerDay) - (daysReported - 1) * millisPerDay)
      yield* reconciler({
        id: "heartbeat",
        every: beatEvery,
        turn: Effect.gen(function* () {
          const minute = yield* thisMinute
          yield* sql`insert into kernel_heartbeats values (${minute}) on conflict do nothing`
          yield* sql`delete from kernel_heartbeats
            where minute < ${sinceOf(minute)}::timestamptz - interval '1 day'`
        })
      })
      const readAll = Effect.gen(function* () {
        const until = yield* thisMinute
        const since = sinceOf(until)
        const [figures, checks, gaps] = yield* Effect.all([
          figuresOf(sql, since),
          checksOf(sql, since, until),
          gapsOf(sql, since, until)
        ])
        return { since, ...figures, ...checks, gaps } satisfies Levels
      })
      const kept = yield* Effect.cachedWithTTL(Effect.timed(readAll), (exit) =>
        Exit.isSuccess(exit)
          ? Duration.clamp(Duration.times(exit.value[0], keptFactor), { minimum: keptMin, maximum: keptMax })
          : 0
      )
      return ServiceLevels.of({ read: Effect.map(kept, ([, levels]) => levels) })
    })
  )
}
