// The one SQL client of the process, over a PostgreSQL server or the embedded database alike. Statements, locks and
// idle transactions are bounded on the server, and the wait for a connection and for each answer here, so a server that
// has stopped answering is an error in time; an interrupted transaction rolls back. int8 arrives as bigint, numeric as
// string, timestamptz as Date, on both. Select a vector only with a cast: its raw type ends the connection.
import { type PgClient, PgConnection } from "@effect/sql-pg"
import {
  Cause,
  Context,
  Duration,
  Effect,
  Layer,
  Option,
  type Queue,
  Redacted,
  Schedule,
  Schema,
  type Scope
} from "effect"
import { SqlClient, SqlError } from "effect/sql"
import type { Section } from "../config/Setting.ts"
import { Settings } from "../config/Settings.ts"
import { contract } from "../contract/Contract.ts"
import { type ConnectionBounds, isConflict, Lane, type PoolStatus } from "./Connections.ts"
import { readServerUrl } from "./readServerUrl.ts"
import { ReadReplica } from "./ReadReplica.ts"
import { writeErrorOf } from "./errorMessage.ts"
import { databaseSection } from "./databaseSection.ts"
import { connectErrorMessage } from "./connectErrorMessage.ts"
import { DatabaseRefused, DatabaseSource, type OpenedDatabase } from "./DatabaseSource.ts"
import { lanedClient } from "./lanedClient.ts"
import { type Reach, reachServer } from "./reachServer.ts"

/** Oldest PostgreSQL that is supported: `server_version_num`. */
const versionMin = 150_000
/** The database did not answer a trivial query in time. */
class DatabaseUnavailable extends Schema.TaggedError<DatabaseUnavailable>()("DatabaseUnavailable", {
  cause: Schema.Defect()
}) {}

type Values = typeof databaseSection extends Section<infer A> ? A : never

const connectTimeout = "3 seconds"
/** Of the readiness query. */
const pingTimeout = "1 second"
/** Idle connections of a burst are closed, so that another replica can start on a server with few connections. */
const idleTimeout = "15 seconds"
const forever = Duration.infinity

/** The pool's callbacks into the database service. */
type PoolCallbacks = Required<Pick<ConnectionBounds, "observed" | "failed">>
type WriteErrorListener = (reason: string) => Effect.Effect<void>

/**
 * Server-side limits of a session's statements. Our statements take milliseconds, but the planner estimates them as
 * more expensive: JIT compilation takes the server most of a second, and a parallel worker some milliseconds and a
 * processor that payments may need.
 */
const sessionLimits = (values: Values): Readonly<Record<string, string>> => ({
  jit: "off",
  max_parallel_workers_per_gather: "0",
  statement_timeout: String(values.statement_timeout_ms),
  lock_timeout: String(values.lock_timeout_ms),
  idle_in_transaction_session_timeout: String(values.idle_transaction_timeout_ms)
})

const serverClient = (url: Redacted.Redacted, values: Values, reach: Reach, observed: PoolCallbacks) =>
  lanedClient(
    {
      applicationName: "tollkeeper",
      minConnections: 1,
      idleTimeout,
      connectTimeout,
      url,
      // A session behind a pooler keeps neither parameters nor statement names from one transaction to the next.
      ...(reach === "direct" ? { startupParameters: sessionLimits(values) } : { prepare: false })
    },
    {
      ...observed,
      connectionsMax: values.max_connections,
      connectionWait: Duration.millis(values.connection_wait_ms),
      answerWait: {
        payments: Duration.millis(values.answer_timeout_ms),
        // The server ends the statement itself; without an answer by then there will be none. Behind a pooler the
        // server sets no limit on a single statement, so the client ends it.
        background: Duration.millis(values.statement_timeout_ms + (reach === "direct" ? 5_000 : 0)),
        maintenance: forever
      }
    },
    reach === "direct" ? undefined : sessionLimits(values)
  )

/**
 * A single session, on which statements cannot be cancelled: callers wait longer for them, and only payments wait less
 * than a minute.
 */
const embeddedClient = (source: Extract<OpenedDatabase, { readonly kind: "embedded" }>, observed: PoolCallbacks) =>
  lanedClient(
    {
      applicationName: "tollkeeper",
      minConnections: 1,
      stream: source.connect,
      username: "postgres",
      database: "postgres",
      prepare: false
    },
    {
      ...observed,
      connectionsMax: source.connectionsMax,
      connectionWait: Duration.seconds(20),
      answerWait: { payments: Duration.seconds(20), background: Duration.minutes(1), maintenance: forever }
    }
  )

/** Warns if the server has fewer connections left than this process may open; the process works with those it gets. */
const warnOfFewConnections = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, connectionsMax: number) {
  const [row] = yield* sql<{ max: number; others: number }>`select
    (current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int) as max,
    (select count(*)::int from pg_stat_activity
      where backend_type = 'client backend' and pid <> pg_backend_pid()) as others`
  if (row === undefined || row.max - row.others >= connectionsMax) return
  yield* Effect.logWarning(
    `the database server admits ${row.max} connections and ${row.others} of them are in use, so this process cannot ` +
      `open the ${connectionsMax} of database.max_connections; it continues with fewer. ` +
      `Raise the server's max_connections, or give each replica fewer`
  )
})

const reachOf = (url: Redacted.Redacted, values: Values): Effect.Effect<Reach, DatabaseRefused> =>
  values.pooler === "none"
    ? Effect.succeed("direct")
    : values.pooler === "present"
      ? Effect.succeed("pooled")
      : Effect.mapError(
          reachServer(url, Duration.millis(values.connection_wait_ms)),
          (cause) => new DatabaseRefused({ message: connectErrorMessage(cause), cause })
        )

/** A separate LISTEN connection; none behind a pooler unless the server itself is named. */
const listenAt = (source: OpenedDatabase, reach: Reach): Database["Service"]["listen"] => {
  if (source.kind === "embedded" || (reach === "pooled" && source.directUrl === undefined)) return undefined
  const url = source.directUrl ?? source.url
  return (channel) =>
    Effect.flatMap(
      PgConnection.make({ url, applicationName: "tollkeeper", connectTimeout, prepare: false }),
      (connection) => connection.listen(channel)
    )
}

/** The host and port of a URL that holds a password; undefined for a socket or an unreadable URL. */
const addressOf = (url: Redacted.Redacted): string | undefined => {
  const { hostname, port } = readServerUrl(Redacted.value(url)) ?? { hostname: "", port: "" }
  return hostname === "" ? undefined : `${hostname}:${port === "" ? 5_432 : port}`
}

/** The database over a client that works; refuses a server older than PostgreSQL 15, and another encoding than UTF8. */
const checked = Effect.fnUntraced(function* (
  source: OpenedDatabase,
  values: Values,
  reach: Reach,
  pool: () => PoolStatus,
  listeners: Set<WriteErrorListener>
) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ version: number; encoding: string }>`select
    current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding`
  if (row === undefined || row.version < versionMin) {
    return yield* new DatabaseRefused({
      message: `PostgreSQL 15 or newer is required, this server is ${row?.version}; set DATABASE_URL to another`
    })
  }
  // In another encoding one caller's text is refused or cut within a character, in statements of many callers.
  if (row.encoding !== "UTF8") {
    return yield* new DatabaseRefused({
      message:
        `the database's encoding must be UTF8, and is ${row.encoding}; ` +
        "`create database NAME encoding 'UTF8' template template0`, then set DATABASE_URL to it"
    })
  }
  if (source.kind === "server") {
    if (reach === "pooled")
      yield* Effect.logInfo("a connection pooler is in front of the database: limits are set per transaction")
    else yield* Effect.ignore(warnOfFewConnections(sql, values.max_connections))
  }
  const ping = Effect.asVoid(sql`select 1`).pipe(
    Effect.provideService(Lane, "payments"),
    Effect.timeout(pingTimeout),
    Effect.mapError((cause) => new DatabaseUnavailable({ cause }))
  )
  return Database.of({
    kind: source.kind,
    address: source.kind === "server" ? addressOf(source.url) : undefined,
    ping,
    pool,
    onWriteError: (listener) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.sync(() => listeners.add(listener)),
          () => Effect.sync(() => listeners.delete(listener))
        )
      ),
    dump: source.kind === "embedded" ? source.dump : undefined,
    diskReserveBytes: values.disk_reserve_mb * 1_000_000,
    reach,
    listen: listenAt(source, reach)
  })
})

/** The replica's connections have the bounds of background work; nothing waits long for one. */
const replicaOf = (settings: Settings["Service"], values: Values) => {
  const secret = settings.secret("DATABASE_READ_URL")
  const url = Option.getOrElse(secret, () => Redacted.make(values.read_url))
  if (Redacted.value(url) === "") return Effect.succeed(ReadReplica.none)
  const wait = Duration.millis(values.statement_timeout_ms)
  return ReadReplica.make({
    url,
    lagMillisMax: values.read_lag_max_ms,
    config: {
      applicationName: "tollkeeper",
      minConnections: 1,
      idleTimeout,
      maxConnections: values.max_connections,
      connectTimeout
    },
    bounds: {
      connectionsMax: values.max_connections,
      connectionWait: Duration.seconds(1),
      answerWait: { payments: wait, background: wait, maintenance: wait }
    }
  })
}

export class Database extends Context.Service<
  Database,
  {
    readonly kind: "server" | "embedded"
    /** The server's host and port; undefined for an embedded database. */
    readonly address: string | undefined
    /** A trivial query with a short deadline; readiness consists only of this (S65). */
    readonly ping: Effect.Effect<void, DatabaseUnavailable>
    readonly pool: () => PoolStatus
    /**
     * Registers a listener for statements that fail because the database accepts no writes; it receives that reason.
     */
    readonly onWriteError: (listener: WriteErrorListener) => Effect.Effect<void, never, Scope.Scope>
    /** The whole database as one archive; undefined for a server, which has its own tools. */
    readonly dump: Effect.Effect<Uint8Array> | undefined
    /** Reserve of free bytes on the disk under an embedded database; below it no new payment is accepted. */
    readonly diskReserveBytes: number
    /** Whether a pooler is in between; an embedded database is reached directly. */
    readonly reach: Reach
    /**
     * Notifications from other processes through a channel, on a separate connection to the server itself: that of
     * DATABASE_DIRECT_URL, which is DATABASE_URL unless a pooler is in between. Absent if LISTEN cannot work.
     */
    readonly listen:
      | ((
          channel: string
        ) => Effect.Effect<Queue.Dequeue<PgConnection.Notification, SqlError.SqlError>, SqlError.SqlError, Scope.Scope>)
      | undefined
  }
>()("tollkeeper/database/Database") {
  /** Provides the SQL client; refuses a server older than PostgreSQL 15, and another encoding than UTF8. */
  static readonly layer: Layer.Layer<
    Database | ReadReplica | SqlClient.SqlClient | PgClient.PgClient,
    DatabaseRefused | import("../config/Settings.ts").SettingsRefused,
    DatabaseSource | Settings
  > = Layer.unwrap(
    Effect.gen(function* () {
      const settings = yield* Settings
      const values = yield* settings.section(databaseSection)
      const source = yield* (yield* DatabaseSource).open
      let pool = (): PoolStatus => ({ max: 0, inUse: 0, waiting: 0 })
      const listeners = new Set<WriteErrorListener>()
      const observed: PoolCallbacks = {
        observed: (status) => void (pool = status),
        failed: (error) => {
          const reason = writeErrorOf(error)
          if (reason === undefined) return Effect.void
          return Effect.forEach(listeners, (listener) => listener(reason), { discard: true })
        }
      }
      const reach = source.kind === "server" ? yield* reachOf(source.url, values) : "direct"
      const client =
        source.kind === "server" ? serverClient(source.url, values, reach, observed) : embeddedClient(source, observed)
      return Layer.provideMerge(
        Layer.merge(
          Layer.effect(
            Database,
            checked(source, values, reach, () => pool(), listeners)
          ),
          Layer.effect(
            ReadReplica,
            source.kind === "server" ? replicaOf(settings, values) : Effect.succeed(ReadReplica.none)
          )
        ),
        client
      ).pipe(
        Layer.catchTag("SqlError", (cause) =>
          Layer.effectContext(Effect.fail(new DatabaseRefused({ message: connectErrorMessage(cause), cause })))
        )
      )
    })
  )
}

export const databaseContract = contract("database", Database, ReadReplica, SqlClient.SqlClient)

const conflictBackoff = Schedule.exponential("5 millis").pipe(Schedule.jittered)

/**
 * If a connection is lost within a transaction, the rollback fails too; the client treats that as a defect, we as an
 * error.
 */
const lostRollback = (cause: Cause.Cause<unknown>): SqlError.SqlError | undefined => {
  const defects = cause.reasons.filter(Cause.isDieReason).map(({ defect }) => defect)
  return defects.length > 0 && defects.every(SqlError.isSqlError) ? defects[0] : undefined
}

/** A statement that is its own transaction; retried like one. */
export const inStatement = <A, E, R>(statement: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.retry(statement, { schedule: conflictBackoff, times: 5, while: isConflict })

/**
 * One transaction; retried, at most five times, if the database ended it in favor of another. A lost connection is an
 * error at any point: either nothing of the transaction has happened, or its commit is unknown.
 */
export const inTransaction = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | SqlError.SqlError, R | SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.withTransaction(effect)).pipe(
    Effect.catchCause((cause) => {
      const lost = lostRollback(cause)
      return lost === undefined ? Effect.failCause(cause) : Effect.fail(lost)
    }),
    inStatement
  )

export const isUniqueViolation = (error: unknown, ...constraints: ReadonlyArray<string>): boolean =>
  SqlError.isSqlError(error) && error.reason._tag === "UniqueViolation" && constraints.includes(error.reason.constraint)
