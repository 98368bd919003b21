// The SQL client over connections that are lent in lanes and bounded in time. The driver makes the connections and
// compiles the statements; who gets a connection, and for how long, is decided here.
import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, type SqlConnection, SqlError } from "effect/sql"
import { type ConnectionBounds, lend } from "./Connections.ts"

/** PostgreSQL answers `ROLLBACK` to the `COMMIT` of a transaction that has failed. */
const commit = Effect.fnUntraced(function* (connection: SqlConnection.Connection) {
  const result = (yield* connection.executeRaw("COMMIT", [])) as { readonly command?: string }
  if (result.command !== "ROLLBACK") return
  const message = "the transaction had failed and was rolled back at its commit"
  return yield* new SqlError.SqlError({
    reason: new SqlError.UnknownError({ cause: new Error(message), message, operation: "commit" })
  })
})

/** Fails when the first connection cannot be made. The driver's own client stands beside it, for who listens. */
export const lanedClient = (
  config: PgClient.PgPoolConfig,
  bounds: ConnectionBounds
): Layer.Layer<SqlClient.SqlClient | PgClient.PgClient, SqlError.SqlError> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const owner = yield* Effect.scope
      const pool = yield* PgClient.make({ ...config, maxConnections: bounds.connectionsMax })
      const client = yield* SqlClient.make({
        acquirer: lend(pool.reserve, bounds, owner),
        compiler: PgClient.makeCompiler(),
        driver: "pg",
        spanAttributes: [["db.system.name", "postgresql"]],
        prepareTransactionControls: true,
        commit,
        releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`
      })
      return Context.make(SqlClient.SqlClient, client).pipe(Context.add(PgClient.PgClient, pool))
    })
  ).pipe(Layer.provide(Reactivity.layer))
