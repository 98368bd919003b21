// A failover with lost commits: a standby that follows a primary by streaming replication, is cut off from it, and is
// promoted. Replication is asynchronous, so whatever the primary commits between the two is lost.
import { PgClient } from "@effect/sql-pg"
import { Effect, Redacted, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { eventually } from "./eventually.ts"
import { startReplica, type TestPostgres } from "./postgres.ts"

export interface Standby {
  readonly server: TestPostgres
  /** From here on it receives nothing: what the primary commits later is lost with the primary. */
  readonly cutOff: Effect.Effect<void>
  /** It becomes the primary, on a timeline of its own. */
  readonly promote: Effect.Effect<void>
}

/** Runs statements over a connection of their own. */
export const onServer = <A, E>(url: string, use: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>): Effect.Effect<A> =>
  Effect.scoped(
    Effect.flatMap(SqlClient.SqlClient, use).pipe(
      Effect.provide(PgClient.layer({ url: Redacted.make(url), maxConnections: 1 }))
    )
    // A standby cancels what its recovery conflicts with.
  ).pipe(Effect.retry({ times: 5 }), Effect.orDie)

const followers = (url: string) => onServer(url, (sql) => sql<{ state: string }>`select state from pg_stat_replication`)

/** A standby with as many connections as its primary, which streams by now. The caller stops its server. */
export const startStandby = (primaryUrl: string, connectionsMax: number): Effect.Effect<Standby> =>
  Effect.gen(function* () {
    const server = yield* Effect.promise(() => startReplica(primaryUrl, connectionsMax))
    yield* eventually(followers(primaryUrl), (rows) => rows.some(({ state }) => state === "streaming"))
    return {
      server,
      cutOff: Effect.gen(function* () {
        yield* onServer(server.url, (sql) => sql`alter system set primary_conninfo = ''`.unprepared)
        yield* onServer(server.url, (sql) => sql`select pg_reload_conf()`)
        yield* eventually(followers(primaryUrl), ({ length }) => length === 0)
      }),
      promote: Effect.asVoid(onServer(server.url, (sql) => sql`select pg_promote(true, 60)`))
    }
  })

/** The same, stopped with the Scope. */
export const standbyOf = (primaryUrl: string, connectionsMax: number): Effect.Effect<Standby, never, Scope.Scope> =>
  Effect.acquireRelease(startStandby(primaryUrl, connectionsMax), ({ server }) => Effect.promise(server.stop))
