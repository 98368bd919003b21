// The SQL client over a connection pool with lanes and timeouts. The driver makes the connections and compiles the
// statements; this module decides which caller gets a connection, and for how long.
import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, type SqlConnection, SqlError } from "effect/sql"
import { type ConnectionBounds, leaseConnections } from "./Connections.ts"
import { ReadTarget } from "./ReadReplica.ts"

/** PostgreSQL answers `ROLLBACK` to the `COMMIT` of a transaction that has failed. */
const commit = Effect.fnUntraced(function* (connection: SqlConnection.Connection) {
  const result = (yield* connection.executeRaw("COMMIT", [])) as { readonly command?: string }
  if (result.command !== "ROLLBACK") return
  const message = "the transaction had failed and was rolled back at its commit"
  return yield* new SqlError.SqlError({
    reason: new SqlError.UnknownError({ cause: new Error(message), message, operation: "commit" })
  })
})

/** Begins a transaction with its own limits, for a session that keeps none; rolls back if setting them fails. */
const beginning =
  (limits: Readonly<Record<string, string>>) =>
  (connection: SqlConnection.Connection): SqlConnection.Connection => {
    const settings = Object.entries(limits)
    const text = `SELECT ${settings.map((_, at) => `set_config($${2 * at + 1}, $${2 * at + 2}, true)`).join(", ")}`
    const limit = connection.executeUnprepared(text, settings.flat(), undefined)
    const own = Object.create(connection) as SqlConnection.Connection
    return Object.assign(own, {
      execute: ((sql, ...args) => {
        const done = connection.execute(sql, ...args)
        if (sql !== "BEGIN") return done
        const undone = Effect.ignore(connection.executeUnprepared("ROLLBACK", [], undefined))
        return Effect.andThen(
          done,
          Effect.as(
            Effect.onError(limit, () => undone),
            []
          )
        )
      }) satisfies SqlConnection.Connection["execute"]
    })
  }

/**
 * Fails when the first connection cannot be made. The Layer also provides the driver's client. `limits` are set in each
 * transaction if sessions cannot keep them.
 */
export const lanedClient = (
  config: PgClient.PgPoolConfig,
  bounds: ConnectionBounds,
  limits?: Readonly<Record<string, string>>
): Layer.Layer<SqlClient.SqlClient | PgClient.PgClient, SqlError.SqlError> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const owner = yield* Effect.scope
      const pool = yield* PgClient.make({ ...config, maxConnections: bounds.connectionsMax })
      const leased = limits === undefined ? pool.reserve : Effect.map(pool.reserve, beginning(limits))
      const primary = leaseConnections(leased, bounds, owner)
      const client = yield* SqlClient.make({
        acquirer: Effect.flatMap(ReadTarget, (replica) => replica ?? primary),
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
