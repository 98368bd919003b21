// Leaderboards, stored in sorted order for all history and for each window of days that may be requested today. A
// record counts in every window that has its day, in the same transaction. When a UTC day begins, its windows are
// summed once from the daily rows and the previous ones are dropped. A window without stored rows is summed by the
// request (S157, S158).
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { inTransaction } from "../../../kernel/database/Database.ts"
import { trustedMillis } from "../../../kernel/time/trustedTime.ts"
import { daysAllowed, firstDay } from "../reports/parameters.ts"
import { acquireAnalyticsLock } from "./Containment.ts"
import { dayOf } from "./contributions.ts"

/** Adds daily leaderboard rows to every window that has the day. */
export const rank = (sql: SqlClient.SqlClient, rows: string) =>
  sql`insert into analytics_rankings as t (role, since, address, asset, transactions, amount)
    select r.role, w.since, r.address, r.asset, sum(r.transactions), sum(r.amount)
    from jsonb_to_recordset(${rows}::jsonb)
      as r (role text, day date, address text, asset text, transactions bigint, amount numeric)
    join analytics_ranking_windows w on w.since <= r.day
    where r.day <> '-infinity' group by r.role, w.since, r.address, r.asset
    on conflict (role, since, address, asset) do update set
      transactions = t.transactions + excluded.transactions, amount = t.amount + excluded.amount`

const fill = Effect.fnUntraced(function* (since: string) {
  const sql = yield* SqlClient.SqlClient
  yield* acquireAnalyticsLock
  const fresh = yield* sql`insert into analytics_ranking_windows values (${since}::date)
    on conflict do nothing returning since`
  if (fresh.length === 0) return
  for (const role of ["buyer", "seller"]) {
    yield* sql`insert into analytics_rankings (role, since, address, asset, transactions, amount)
      select role, ${since}::date, address, asset, sum(transactions), sum(amount)
      from analytics_standings where role = ${role} and day >= ${since}::date group by role, address, asset`.unprepared
  }
})

const drop = Effect.fnUntraced(function* (since: string) {
  const sql = yield* SqlClient.SqlClient
  yield* acquireAnalyticsLock
  yield* sql`delete from analytics_ranking_windows where since = ${since}::date`
  yield* sql`delete from analytics_rankings where since = ${since}::date`
})

/** Builds today's windows and drops all others; each in its own transaction. */
export const keepWindows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const now = yield* trustedMillis
  const required = daysAllowed.flatMap((days) => (days === 0 ? [] : [dayOf(firstDay(now, days))]))
  const rows = yield* sql<{ since: string }>`select since::text as since from analytics_ranking_windows
    where since <> '-infinity'`
  const storedWindows = rows.map(({ since }) => since)
  for (const since of required) if (!storedWindows.includes(since)) yield* inTransaction(fill(since))
  for (const since of storedWindows) if (!required.includes(since)) yield* inTransaction(drop(since))
}).pipe(Effect.withSpan("Rankings.keepWindows"))
