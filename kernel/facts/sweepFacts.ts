// Deletes facts that are old enough and that every consumer that ever began has read: a disabled consumer keeps its
// unread facts. The newest fact with a position is kept, since the next position follows from it. Bounded: one call
// deletes one batch and returns whether there may be more.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { oldBefore } from "../time/trustedTime.ts"

/** Facts in one transaction. */
const deletedMax = 2_000

/** True when there may be more. */
export const sweepFacts = Effect.fnUntraced(function* (keepMillis: number) {
  const sql = yield* SqlClient.SqlClient
  const before = yield* oldBefore(keepMillis)
  const deleted = yield* sql`delete from kernel_facts where id in (
    select id from (select id, at from kernel_facts
      where position < (select max(position) from kernel_facts)
        and position <= (select coalesce(min(position), 0) from kernel_fact_cursors)
      order by position limit ${deletedMax}) oldest
    where at < ${before}) returning 1`
  return deleted.length === deletedMax
})
