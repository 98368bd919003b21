// Checks an embedded database that no process uses: whether an archive is complete before it is unpacked, and whether
// every row of every table is readable once it is open. Nothing here changes a table.
import { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { closeSync, fstatSync, openSync, readSync } from "node:fs"
import type { EmbeddedDatabase } from "./platform/pglite.ts"

const block = 512
/** Files of every data folder. */
const required = ["PG_VERSION", "global/pg_control"]

const textAt = (header: Uint8Array, from: number, length: number): string => {
  const bytes = header.subarray(from, from + length)
  const end = bytes.indexOf(0)
  return new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end))
}

const octalAt = (header: Uint8Array, from: number, length: number): number =>
  Number.parseInt(textAt(header, from, length).trim() || "0", 8)

/** The sum of a header's bytes, its own field counted as spaces. */
const sumOf = (header: Uint8Array): number =>
  header.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 0x20 : byte), 0)

/** Why a file is not a complete archive of a data folder; undefined if it is. */
export const archiveProblem = (path: string): string | undefined => {
  const file = openSync(path, "r")
  try {
    const { size } = fstatSync(file)
    const header = new Uint8Array(block)
    const names = new Set<string>()
    for (let at = 0; ;) {
      if (at + block > size) return `it ends at byte ${size}, within the archive`
      readSync(file, header, 0, block, at)
      if (header.every((byte) => byte === 0)) break
      if (octalAt(header, 148, 8) !== sumOf(header)) return `it is not a tar archive, or is damaged at byte ${at}`
      const prefix = textAt(header, 345, 155)
      names.add(`${prefix === "" ? "" : `${prefix}/`}${textAt(header, 0, 100)}`.replace(/^\.?\//, ""))
      at += block + Math.ceil(octalAt(header, 124, 12) / block) * block
    }
    const missing = required.find((name) => !names.has(name))
    return missing === undefined ? undefined : `it has no ${missing}, so it is not an archive of a database`
  } finally {
    closeSync(file)
  }
}

/** Contents of an open database. */
export interface Holdings {
  readonly tables: number
  readonly rows: number
  /** Tables with an unreadable row, with the database's error message. */
  readonly unreadable: ReadonlyArray<{ readonly table: string; readonly why: string }>
  readonly settlements: number
  /** When the newest settlement was recorded, ISO 8601. */
  readonly newest: string | undefined
}

const wordsOf = (error: unknown): string => {
  const { cause } = error as { readonly cause?: unknown }
  return cause === undefined ? String((error as Error).message ?? error) : wordsOf(cause)
}

/** Reads every row of every table, past the indexes. */
export const examineRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`set enable_indexscan = off`
  yield* sql`set enable_indexonlyscan = off`
  yield* sql`set enable_bitmapscan = off`
  const tables = yield* sql<{ name: string }>`select quote_ident(relname) as name from pg_class
    where relkind = 'r' and relnamespace = 'public'::regnamespace order by relname`
  const unreadable: Array<{ readonly table: string; readonly why: string }> = []
  let rows = 0
  for (const { name } of tables) {
    // Converting a row to text also reads its out-of-line values.
    const counted = yield* Effect.result(
      sql.unsafe<{ rows: number }>(`select count(length(t::text))::int as rows from ${name} as t`)
    )
    if (counted._tag === "Failure") unreadable.push({ table: name, why: wordsOf(counted.failure) })
    else rows += counted.success[0]?.rows ?? 0
  }
  const isKernel = tables.some(({ name }) => name === "kernel_settlements")
  const found = isKernel
    ? yield* Effect.result(
        sql<{ count: number; newest: Date | null }>`select count(*)::int as count,
          max(recorded_at)::timestamptz as newest from kernel_settlements`
      )
    : undefined
  const settlements = found?._tag === "Success" ? found.success[0] : undefined
  return {
    tables: tables.length,
    rows,
    unreadable,
    settlements: settlements?.count ?? 0,
    newest: settlements?.newest == null ? undefined : new Date(settlements.newest).toISOString()
  } satisfies Holdings as Holdings
})

/** A client of an embedded database that this process has opened. */
export const clientOf = ({ connect }: EmbeddedDatabase) =>
  PgClient.layer({ stream: connect, maxConnections: 1, username: "postgres", database: "postgres" } as never)

/** Describes the contents in one sentence. */
export const holdingsText = ({ newest, rows, settlements, tables }: Holdings): string =>
  `${tables} tables, ${rows} rows, ${settlements} settlements` +
  (newest === undefined ? "" : `, the newest recorded at ${newest}`)
