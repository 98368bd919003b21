// Measures requests of a facilitator in this process: bytes of the answer, statements and RPC calls by the spans of the
// request's trace, rows by a trigger of every table, and processor time.
import { Effect, Tracer } from "effect"
import type { SqlClient } from "effect/sql"
import { randomBytes } from "node:crypto"
import { createServer } from "node:http"
import process from "node:process"
import { pointsOf, type RouteCost } from "../../kernel/http/RouteCost.ts"
import type { Claim } from "../../kernel/plugin/Routes.ts"

export type Measured = Required<RouteCost> & { readonly status: number }

/** Counts the client spans of each trace. */
export const makeSpanCounter = () => {
  const traces = new Map<string, { statements: number; rpcCalls: number }>()
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      const counted = traces.get(span.traceId)
      if (counted !== undefined && options.kind === "client")
        counted[options.name.startsWith("ledger.") ? "rpcCalls" : "statements"] += 1
      return span
    }
  })
  return { traces, tracer }
}

/** A process writes these every few seconds, with and without requests: its presence, and its reading of keys. */
const presenceTables = [
  "kernel_key_replicas",
  "kernel_known_ledgers",
  "kernel_leases",
  "kernel_processes",
  "kernel_signers",
  "kernel_write_probes",
  "receipts_keys"
]

/** Counts each written row in a sequence, which no rollback takes back; those of presence in another one. */
export const makeRowCounter = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  yield* sql`create sequence rows_written`
  yield* sql`create sequence rows_of_presence`
  yield* sql`create function count_row() returns trigger language plpgsql as
    'begin perform nextval(tg_argv[0]::regclass); return null; end'`
  const tables = yield* sql<{ name: string; is_presence: boolean }>`
    select format('%I.%I', schemaname, tablename) as name, ${sql.in("tablename", presenceTables)} as is_presence
    from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`
  for (const { is_presence, name } of tables)
    yield* sql.unsafe(
      `create trigger zz_counted after insert or update or delete on ${name} for each row
        execute function count_row('public.${is_presence ? "rows_of_presence" : "rows_written"}')`
    )
  const counted = sql<{ requested: string; presence: string }>`select
    (select case when is_called then last_value else 0 end::text from rows_written) as requested,
    (select case when is_called then last_value else 0 end::text from rows_of_presence) as presence`
  return {
    /** Rows outside the tables of presence. */
    written: Effect.map(counted, ([row]) => Number(row!.requested)),
    all: Effect.map(counted, ([row]) => Number(row!.requested) + Number(row!.presence)),
    /** Every reader of the journal has read it to its end. */
    isFollowed: Effect.map(
      sql<{ is_followed: boolean }>`select min(position) >= (select max(position) from kernel_facts) as is_followed
        from kernel_fact_cursors`,
      ([row]) => row!.is_followed
    )
  }
})

/** Processor milliseconds of the exchange below on the machine for which the costs were declared. */
const referenceMillis = 100
const documents = Array.from({ length: 8_000 }, (_, at) => ({ at, name: `resource ${at}`, text: "x".repeat(1_000) }))

/**
 * How many times as long as the reference machine this machine needs now, at least 1: the processor time of a plain
 * server and its client, in this process, that exchange a document of eight megabytes.
 */
export const slowness = Effect.promise(async () => {
  const server = createServer((_, response) => void response.end(JSON.stringify(documents)))
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`
  const exchange = async () => {
    const before = process.cpuUsage()
    JSON.parse(new TextDecoder().decode(await (await fetch(url)).arrayBuffer()))
    const { system, user } = process.cpuUsage(before)
    return (user + system) / 1_000
  }
  const millis: Array<number> = []
  for (let round = 0; round < 3; round++) millis.push(await exchange())
  server.close()
  server.closeAllConnections()
  return Math.max(1, Math.min(...millis) / referenceMillis)
})

export interface Asked {
  readonly path: string
  readonly init?: RequestInit
}

/** Sends one request and measures it, without its rows. */
export const measure = (
  url: string,
  { init = {}, path }: Asked,
  traces: Map<string, { statements: number; rpcCalls: number }>
) =>
  Effect.promise(async (): Promise<Measured> => {
    const traceId = randomBytes(16).toString("hex")
    const counted = { statements: 0, rpcCalls: 0 }
    traces.set(traceId, counted)
    const before = process.cpuUsage()
    const headers = { traceparent: `00-${traceId}-00f067aa0ba902b7-01`, ...init.headers }
    const stop = new AbortController()
    const response = await fetch(url + path, { ...init, headers, signal: stop.signal })
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true
    const bytesOut = isStream
      ? ((await response.body!.getReader().read()).value?.length ?? 0)
      : (await response.arrayBuffer()).byteLength
    stop.abort()
    const used = process.cpuUsage(before)
    return {
      ...counted,
      bytesOut,
      cpuMillis: (used.user + used.system) / 1_000,
      rowsWritten: 0,
      status: response.status
    }
  })

const declaredOf = ({ bytesOut, cpuMillis, rowsWritten = 0, rpcCalls = 0, statements = 0 }: RouteCost) =>
  [cpuMillis, bytesOut, statements, rowsWritten, rpcCalls] as const

const callersOf = { public: "anyone", keyed: "a key", operators: "an operator's key" }

/** The table of routes with their declared and measured costs. */
export const tableOf = (lines: ReadonlyArray<{ readonly claim: Claim; readonly measured: Measured }>): string =>
  [
    "# Cost of each route",
    "",
    "Each route declares the worst cost of one request beside its path. Admission control charges it, in points, to",
    "the caller's key or address (`server.points_per_second`), and returns unused time and bytes. A cell has the",
    "declared figure, then the measured one. A test counts bytes, statements, rows and RPC calls; processor time is",
    "that of the machine that wrote this table, with its ledger and database in the same process. The measured catalog",
    "has 1,000 listings, of which 130 have the largest documents; the history has 2,000 settlements. This command",
    "writes the file: `TOLLKEEPER_WRITE_COSTS=1 npm run vitest -- test/kernel/http/routeCosts.daily.test.ts`",
    "",
    "| route | callers | points | CPU ms | bytes out | statements | rows written | RPC calls |",
    "|---|---|---|---|---|---|---|---|",
    ...lines.map(({ claim: { method, path, rules }, measured }) => {
      const cells = declaredOf(rules.cost).map((declared, at) => `${declared}, ${declaredOf(measured)[at]}`)
      return `| \`${method} ${path}\` | ${callersOf[rules.callers]} | ${pointsOf(rules.cost)} | ${cells.join(" | ")} |`
    }),
    ""
  ].join("\n")

/** The table without its measured figures, which differ between machines. */
export const declaredColumns = (table: string): ReadonlyArray<string> =>
  table.split("\n").map((line) => line.replace(/(\d+), \d+/g, "$1"))
