// The one SQL client of the process, over a PostgreSQL server or the embedded database alike. Statements, locks and
// idle transactions are bounded on the server; an interrupted transaction rolls back. int8 arrives as bigint, numeric
// as string, timestamptz as Date, on both. Select a vector only with a cast: its raw type ends the connection.
import { PgClient } from "@effect/sql-pg"
import { Cause, Context, Duration, Effect, Layer, Schedule, Schema } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { integer, section } from "../config/Setting.ts"
import { Settings } from "../config/Settings.ts"
import { contract } from "../Contract.ts"
import { DatabaseRefused, DatabaseSource } from "./DatabaseSource.ts"

const database = section(
  "database",
  "The SQL client. Where the database is, DATABASE_URL says; without it, it is embedded.",
  {
    max_connections: integer({ default: 16, min: 2, max: 500, doc: "Connections to a server at most." }),
    statement_timeout_ms: integer({
      default: 15_000,
      min: 100,
      max: 600_000,
      unit: "ms",
      doc: "Longest single statement on a server."
    }),
    lock_timeout_ms: integer({
      default: 5_000,
      min: 100,
      max: 600_000,
      unit: "ms",
      doc: "Longest wait for a lock on a server."
    }),
    idle_transaction_timeout_ms: integer({
      default: 15_000,
      min: 100,
      max: 600_000,
      unit: "ms",
      doc: "An idle transaction on a server is ended after this."
    }),
    ping_timeout_ms: integer({
      default: 1_000,
      min: 10,
      max: 30_000,
      unit: "ms",
      doc: "Longest wait of the readiness query."
    })
  }
)

/** Oldest PostgreSQL that is supported: `server_version_num`. */
const versionMin = 150_000

/** The database did not answer a trivial query in time. */
export class DatabaseUnavailable extends Schema.TaggedError<DatabaseUnavailable>()("DatabaseUnavailable", {
  cause: Schema.Defect()
}) {}

export class Database extends Context.Service<
  Database,
  {
    readonly kind: "server" | "embedded"
    /** A trivial query with a short deadline; readiness is this and nothing else (S65). */
    readonly ping: Effect.Effect<void, DatabaseUnavailable>
  }
>()("tollkeeper/database/Database") {
  /** Gives the SQL client and refuses a server older than PostgreSQL 15. */
  static readonly layer: Layer.Layer<
    Database | SqlClient.SqlClient | PgClient.PgClient,
    DatabaseRefused | import("../config/Settings.ts").SettingsRefused,
    DatabaseSource | Settings
  > = Layer.unwrap(
    Effect.gen(function* () {
      const values = yield* (yield* Settings).section(database)
      const source = yield* (yield* DatabaseSource).open
      const common = { applicationName: "tollkeeper", minConnections: 1, connectTimeout: "5 seconds" } as const
      const client =
        source.kind === "server"
          ? PgClient.layer({
              ...common,
              url: source.url,
              maxConnections: values.max_connections,
              startupParameters: {
                statement_timeout: String(values.statement_timeout_ms),
                lock_timeout: String(values.lock_timeout_ms),
                idle_in_transaction_session_timeout: String(values.idle_transaction_timeout_ms)
              }
            })
          : PgClient.layer({
              ...common,
              stream: source.connect,
              username: "postgres",
              database: "postgres",
              maxConnections: source.connectionsMax,
              prepare: false
            })
      const checked = Layer.effect(
        Database,
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const [row] = yield* sql<{ version: number }>`select current_setting('server_version_num')::int as version`
          if (row === undefined || row.version < versionMin) {
            return yield* new DatabaseRefused({
              message: `PostgreSQL 15 or newer is required, this server is ${row?.version}`
            })
          }
          const ping = Effect.asVoid(sql`select 1`).pipe(
            Effect.timeout(Duration.millis(values.ping_timeout_ms)),
            Effect.mapError((cause) => new DatabaseUnavailable({ cause }))
          )
          return Database.of({ kind: source.kind, ping })
        })
      )
      return Layer.provideMerge(checked, client).pipe(
        Layer.catchTag("SqlError", (cause) =>
          Layer.effectContext(
            Effect.fail(new DatabaseRefused({ message: "the database does not answer; is DATABASE_URL right?", cause }))
          )
        )
      )
    })
  )
}

export const databaseContract = contract<"database", Database | SqlClient.SqlClient>(
  "database",
  Database as any,
  SqlClient.SqlClient as any
)

/** Conflicts that PostgreSQL resolves by ending one of the transactions; the loser may simply run again. */
const isConflict = (error: unknown): boolean =>
  SqlError.isSqlError(error) && (error.reason._tag === "SerializationError" || error.reason._tag === "DeadlockError")

const conflictBackoff = Schedule.exponential("5 millis").pipe(Schedule.jittered)

/**
 * A connection that is lost within a transaction takes the rollback with it; the client calls that a defect, and it is
 * weather.
 */
const lostRollback = (cause: Cause.Cause<unknown>): SqlError.SqlError | undefined => {
  const defects = cause.reasons.filter(Cause.isDieReason).map(({ defect }) => defect)
  return defects.length > 0 && defects.every(SqlError.isSqlError) ? defects[0] : undefined
}

/**
 * One transaction; run again, at most five times, when the database ended it for the sake of another. A lost connection
 * is an error whatever it interrupts: nothing of the transaction has happened, or its commit is unknown.
 */
export const inTransaction = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | SqlError.SqlError, R | SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.withTransaction(effect)).pipe(
    Effect.catchCause((cause) => {
      const lost = lostRollback(cause)
      return lost === undefined ? Effect.failCause(cause) : Effect.fail(lost)
    }),
    Effect.retry({ schedule: conflictBackoff, times: 5, while: isConflict })
  )

/** True for the violation of a unique constraint, of the named one when given. */
export const isUniqueViolation = (error: unknown, constraint?: string): boolean =>
  SqlError.isSqlError(error) &&
  error.reason._tag === "UniqueViolation" &&
  (constraint === undefined || error.reason.constraint === constraint)
