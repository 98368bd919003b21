// Deletes single settlements after `analytics.keep_days`. Their sums stay: totals, series, leaderboards, pairs and
// members. An unresolved one stays too, since an operator may still resolve it. Bounded.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { oldBefore } from "../../../kernel/time/trustedTime.ts"
import { acquireAnalyticsLock } from "./Containment.ts"

const deletedMax = 1_000

/** True when there may be more. */
export const sweepSettlements = Effect.fn("Analytics.sweep")(function* (keepMillis: number) {
  const sql = yield* SqlClient.SqlClient
  const before = yield* oldBefore(keepMillis)
  return yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* acquireAnalyticsLock
      const deleted = yield* sql`delete from analytics_settlements where id in (
        select id from analytics_settlements where status in ('success', 'failed') and occurred_at < ${before}
        order by occurred_at limit ${deletedMax}) returning 1`
      return deleted.length === deletedMax
    })
  )
})
