// A failover with lost commits: a standby that follows a primary by streaming replication is cut off from it and then
// promoted. Replication is asynchronous, so all commits of the primary in between are lost.
import { PgClient } from "@effect/sql-pg"
import { Effect, Redacted, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { eventually } from "./eventually.ts"
import { startReplica, type TestPostgres } from "./postgres.ts"

export interface Standby {
  readonly server: TestPostgres
  /** Stops the replication: later commits of the primary are lost with the primary. */
  readonly cutOff: Effect.Effect<void>
  /** Promotes it to primary, on its own timeline. */
  readonly promote: Effect.Effect<void>
}

/** Runs statements over a separate connection. */
export const onServer = <A, E>(url: string, use: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>): Effect.Effect<A> =>
  Effect.scoped(
    Effect.flatMap(SqlClient.SqlClient, use).pipe(
      Effect.provide(PgClient.layer({ url: Redacted.make(url), maxConnections: 1 }))
    )
    // A standby cancels queries that conflict with its recovery.
  ).pipe(Effect.retry({ times: 5 }), Effect.orDie)

const followers = (url: string) => onServer(url, (sql) => sql<{ state: string }>`select state from pg_stat_replication`)

/** A standby with as many connections as its primary, after streaming has begun. The caller stops its server. */
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
