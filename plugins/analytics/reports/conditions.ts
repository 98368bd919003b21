// The conditions of a window of days, as SQL.
import type { SqlClient, Statement } from "effect/sql"
import type { Window } from "./parameters.ts"

/** A condition on a column of times, or of UTC days: within the window. */
export const within = (
  sql: SqlClient.SqlClient,
  column: string,
  { since }: Window,
  type: "time" | "day" = "time"
): Statement.Fragment => {
  if (since === undefined) return sql`true`
  const from = since.toISOString()
  return type === "time"
    ? sql`${sql.literal(column)} >= ${from}::timestamptz`
    : sql`${sql.literal(column)} >= ${from.slice(0, 10)}::date`
}

/** A condition on the days of `analytics_standings`; its day -infinity means all history. */
export const leaderboardDays = (sql: SqlClient.SqlClient, window: Window): Statement.Fragment =>
  window.since === undefined ? sql`day = '-infinity'` : within(sql, "day", window, "day")
