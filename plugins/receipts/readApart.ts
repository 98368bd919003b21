// A read within a transaction of a caller's, such as the one that queues a batch of webhooks: it runs behind a
// savepoint and with a statement timeout of its own. Neither its error nor a lock that it waits for ends or delays what
// else is in the transaction. Outside of a transaction a read is one statement, as any.
import { Duration, Effect, Option } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { field, rootCause } from "../../kernel/database/errorMessage.ts"
import { monotonicMillis } from "../../kernel/time/monotonicMillis.ts"

const readTimeout = Duration.seconds(1)
/** How long nothing is read after a read that was late. */
const restMillis = 1_000
/** SQLSTATEs: a statement that was cancelled at its timeout, and a lock that was not available in time. */
const lateCodes: ReadonlyArray<unknown> = ["57014", "55P03"]

/** `timeout` is of each statement of the read. */
export const readApart = Effect.fnUntraced(function* <A, E, R>(
  sql: SqlClient.SqlClient,
  timeout: Duration.Duration,
  read: Effect.Effect<A, E, R>
): Effect.fn.Return<A, E | SqlError.SqlError, R> {
  if (Option.isNone(yield* Effect.serviceOption(sql.transactionService))) return yield* read
  const set = (value: string) => sql`set_config('statement_timeout', ${value}, true)`
  const bounded = Effect.gen(function* () {
    const [row] = yield* sql<{ before: string }>`select before, ${set(String(Duration.toMillis(timeout)))}
      from (select current_setting('statement_timeout') as before offset 0) as own`
    const found = yield* read
    // A savepoint that is kept keeps what was set behind it.
    yield* sql`select ${set(row!.before)}`
    return found
  })
  return yield* sql.withTransaction(bounded)
})

/** Reads apart, within a second; undefined for a second after one that was late: so are the others of its batch. */
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
