// Deletes the operators' audit trail after `retention.move_days`, except actions without a recorded outcome, which an
// operator has to examine. Runs hourly, in bounded transactions.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { reconciler } from "../../kernel/actor/Actor.ts"
import { oldBefore } from "../../kernel/time/trustedTime.ts"
import { Retention } from "../../kernel/config/Retention.ts"

const deletedMax = 1_000

/** Returns true if more may remain. */
export const sweepActions = Effect.fnUntraced(function* (keepMillis: number) {
  const sql = yield* SqlClient.SqlClient
  const before = yield* oldBefore(keepMillis)
  const deleted = yield* sql`with ended as (select id, asked from kernel_operator_acts
      where asked is not null and at < ${before} order by at limit ${deletedMax})
    delete from kernel_operator_acts where id in (select id from ended union all select asked from ended) returning 1`
  return deleted.length >= deletedMax
})

export const startActionSweep = Effect.gen(function* () {
  const { moveMillis } = yield* Retention
  const sql = yield* SqlClient.SqlClient
  yield* reconciler({
    id: "moves-forget",
    every: "1 hour",
    turn: Effect.gen(function* () {
      while (yield* sweepActions(moveMillis)) yield* Effect.yieldNow
    }).pipe(Effect.provideService(SqlClient.SqlClient, sql))
  })
})
