// Reads for which nothing may wait long, such as those of a webhook's body. The read has its own statement timeout, and
// within a caller's transaction a savepoint, so its error, or a lock that it waits for, neither aborts nor delays the
// rest of the transaction.
import { Duration, Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { field, rootCause } from "../../kernel/database/errorMessage.ts"
import { monotonicMillis } from "../../kernel/time/monotonicMillis.ts"

const readTimeout = Duration.seconds(1)
/** Pause of reads after a late one. */
const restMillis = 1_000
/** SQLSTATEs: a statement cancelled at its timeout, and a lock not obtained in time. */
const lateCodes: ReadonlyArray<unknown> = ["57014", "55P03"]

/** `timeout` applies to each statement of the read. */
export const readApart = Effect.fnUntraced(function* <A, E, R>(
  sql: SqlClient.SqlClient,
  timeout: Duration.Duration,
  read: Effect.Effect<A, E, R>
): Effect.fn.Return<A, E | SqlError.SqlError, R> {
  const set = (value: string) => sql`set_config('statement_timeout', ${value}, true)`
  const bounded = Effect.gen(function* () {
    const [row] = yield* sql<{ before: string }>`select before, ${set(String(Duration.toMillis(timeout)))}
      from (select current_setting('statement_timeout') as before offset 0) as own`
    const found = yield* read
    // Releasing the savepoint keeps this setting, so we restore the former value.
    yield* sql`select ${set(row!.before)}`
    return found
  })
  return yield* sql.withTransaction(bounded)
})

/**
 * Reads with `readApart` and a timeout of one second. After a late read it returns undefined for a second, because the
 * other reads of the batch would be late too.
 */
export const makeReadInTime = (sql: SqlClient.SqlClient) => {
  let restsUntil = -Infinity
  const rest = Effect.map(monotonicMillis, (now) => void (restsUntil = now + restMillis))
  return Effect.fnUntraced(function* <A, R>(read: Effect.Effect<A, SqlError.SqlError, R>) {
    if ((yield* monotonicMillis) < restsUntil) return undefined
    return yield* Effect.tapError(readApart(sql, readTimeout, read), (error) =>
      lateCodes.includes(field(rootCause(error), "code")) ? rest : Effect.void
    )
  })
}
