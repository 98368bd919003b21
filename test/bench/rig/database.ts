// A bench's own statements to a PostgreSQL server: databases for the programs that it starts, their contents, and the
// process of the server.
import { PgClient } from "@effect/sql-pg"
import { Effect, ManagedRuntime, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { readFileSync } from "node:fs"

export interface BenchDatabase {
  /** Executes one statement; returns its rows unchanged. */
  readonly query: (text: string) => Promise<ReadonlyArray<Record<string, any>>>
  readonly close: () => Promise<void>
}

export const connectTo = (url: string): BenchDatabase => {
  const runtime = ManagedRuntime.make(PgClient.layer({ url: Redacted.make(url), maxConnections: 1 }))
  return {
    query: (text) =>
      runtime.runPromise(
        Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe<Record<string, any>>(text).unprepared)
      ),
    close: () => runtime.dispose()
  }
}

/** Another database of the same server, and its URL. */
export const createDatabase = async (admin: BenchDatabase, serverUrl: string, name: string): Promise<string> => {
  await admin.query(`create database ${name}`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}

/** The server's first process, the parent of the answering one; NaN if it runs elsewhere. */
export const serverPid = async (admin: BenchDatabase): Promise<number> => {
  const [row] = await admin.query("select pg_backend_pid() as pid")
  try {
    return Number(readFileSync(`/proc/${row!["pid"]}/stat`, "latin1").split(") ")[1]!.split(" ")[1])
  } catch {
    return Number.NaN
  }
}
