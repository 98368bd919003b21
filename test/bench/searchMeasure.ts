// Measures one kind of request over HTTP: processor time of this process and of the database's connections per request,
// and wall times. The clients are a separate process. A search can be compared with a plain query of the same words. If
// TOLLKEEPER_BENCH_PROFILE names a folder, a CPU profile of this process is written there, in the developer tools'
// format.
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { Session } from "node:inspector/promises"
import { loadavg } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import type { Facilitator } from "../support/facilitator.ts"
import { atMost, type Bar, barLine } from "./rig/bars.ts"
import type { LoadFigures, LoadJob } from "./searchLoad.ts"

const MILLISECONDS = 8_000
const WARMING_MILLISECONDS = 120_000

export interface Kind {
  readonly name: string
  readonly paths: ReadonlyArray<string>
  readonly clients: number
  /**
   * Each path is requested once, without a warm-up; otherwise all are requested twice before the measurement, then
   * repeatedly.
   */
  readonly isFirst?: boolean
  /** Text that a good answer contains. Default: some resource that was found. */
  readonly holds?: string
  /** Milliseconds of this process's processor time per request. */
  readonly cpuMax?: number
  /** Milliseconds of the database's processor time per request, if it is on this machine. */
  readonly databaseMax?: number
  /** Milliseconds of wall time. */
  readonly p50Max?: number
  readonly p95Max?: number
  /** Queries to ask as plain ones too: a request may cost this many times a plain query. */
  readonly plain?: { readonly queries: ReadonlyArray<string>; readonly timesMax: number }
}

export const searchPath = (query: string, mode: string, more = ""): string =>
  `/discovery/search?query=${encodeURIComponent(query)}${mode === "" ? "" : `&mode=${mode}`}${more}`

/** Runs the clients in a separate process. */
const runLoad = (job: LoadJob): Promise<LoadFigures> =>
  new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      ["--disable-warning=ExperimentalWarning", fileURLToPath(new URL("searchLoad.ts", import.meta.url))],
      { stdio: ["pipe", "pipe", "inherit"] }
    )
    let text = ""
    child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()))
    child.once("error", reject)
    child.once("close", (code) =>
      code === 0 ? resolve(JSON.parse(text) as LoadFigures) : reject(new Error(`the clients ended with ${code}`))
    )
    child.stdin.end(JSON.stringify(job))
  })

const quantile = (sorted: ReadonlyArray<number>, q: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN

/** A clock tick of this system is a hundredth of a second. */
const millisOf = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]!.split(" ")
  return 10 * (Number(fields[11]) + Number(fields[12]))
}

/** Milliseconds of processor time of this database's connections so far; NaN if the server is elsewhere. */
const databaseMillis = ({ sql }: Facilitator) =>
  Effect.map(
    sql<{ pid: number }>`select pid from pg_stat_activity
      where datname = current_database() and backend_type = 'client backend'`,
    (rows) => {
      try {
        return rows.reduce((sum, { pid }) => sum + millisOf(pid), 0)
      } catch {
        return Number.NaN
      }
    }
  )

interface Cost {
  /** Milliseconds of this process, and of the database; NaN if that is elsewhere. */
  readonly cpu: number
  readonly database: number
}

/** The cost of an effect that does `count` of something, for each. */
const costOf = Effect.fnUntraced(function* <A, E, R>(
  facilitator: Facilitator,
  work: Effect.Effect<A, E, R>,
  count: (value: A) => number
) {
  const databaseBefore = yield* databaseMillis(facilitator)
  const before = process.cpuUsage()
  const value = yield* work
  const { system, user } = process.cpuUsage(before)
  const spent = (yield* databaseMillis(facilitator)) - databaseBefore
  const cost: Cost = {
    cpu: (system + user) / 1_000 / count(value),
    // A connection that closed in the meantime no longer counts with its time.
    database: spent < 0 ? Number.NaN : spent / count(value)
  }
  return { value, cost }
})

/**
 * The cost of a search that consists of one statement: the best listings with any of the words, by `ts_rank`, with
 * their documents.
 */
const costOfPlain = Effect.fnUntraced(function* (
  facilitator: Facilitator,
  queries: ReadonlyArray<string>,
  clients: number
) {
  const { sql } = facilitator
  const ask = (query: string) =>
    sql`select best.rank, r.document from (
        select d.id, ts_rank(d.document, q) as rank
        from search_lexical_documents d, to_tsquery('english', ${query.split(" ").join(" | ")}) q
        where d.language = 'english' and d.document @@ q order by rank desc, d.id limit 20) best
      join catalog_resources r using (id) order by best.rank desc, r.id`
  const all = Effect.forEach(queries, ask, { concurrency: clients, discard: true })
  return (yield* costOf(facilitator, all, () => queries.length)).cost
})

/** Runs work; writes a profile of this process if a folder is set. */
const profiled = async <A>(name: string, work: () => Promise<A>): Promise<A> => {
  const folder = process.env["TOLLKEEPER_BENCH_PROFILE"]
  if (folder === undefined) return work()
  const session = new Session()
  session.connect()
  await session.post("Profiler.enable")
  await session.post("Profiler.start")
  try {
    return await work()
  } finally {
    const { profile } = await session.post("Profiler.stop")
    writeFileSync(join(folder, `${name.replaceAll(/\W+/g, "-")}.cpuprofile`), JSON.stringify(profile))
    session.disconnect()
  }
}

export interface Measured {
  readonly bars: ReadonlyArray<Bar>
  readonly isSound: boolean
}

const show = (value: number, digits: number, width: number) =>
  (Number.isNaN(value) ? "?" : value.toFixed(digits)).padStart(width)

/** Measures, and prints a line. */
export const measure = Effect.fnUntraced(function* (facilitator: Facilitator, kind: Kind) {
  const { clients, holds = `"resources":[{`, isFirst = false, name, paths } = kind
  const port = Number(new URL(facilitator.url).port)
  // Twice, with the same number of clients: a ranking is cached from the second request on, for half a minute.
  const warming = { port, paths, clients, milliseconds: WARMING_MILLISECONDS, questionsMax: 2 * paths.length, holds }
  if (!isFirst) yield* Effect.promise(() => runLoad(warming))
  const questionsMax = isFirst ? paths.length : Number.MAX_SAFE_INTEGER
  const load = () =>
    profiled(name, () => runLoad({ port, paths, clients, milliseconds: MILLISECONDS, questionsMax, holds }))
  const { cost, value } = yield* costOf(facilitator, Effect.promise(load), ({ times }) => times.length)
  const { elapsedMillis, faulty, times, wrong } = value
  const { cpu, database } = cost
  const [p50, p95] = [quantile(times, 0.5), quantile(times, 0.95)]
  const errors = Object.entries(wrong).map(([what, count]) => `${count} ${what}`)
  const bars = [
    ...(kind.cpuMax === undefined ? [] : [atMost(`${name}: processor`, cpu, kind.cpuMax)]),
    ...(kind.databaseMax === undefined || Number.isNaN(database)
      ? []
      : [atMost(`${name}: database`, database, kind.databaseMax)]),
    ...(kind.p50Max === undefined ? [] : [atMost(`${name}: p50`, p50, kind.p50Max)]),
    ...(kind.p95Max === undefined ? [] : [atMost(`${name}: p95`, p95, kind.p95Max)])
  ]
  if (kind.plain !== undefined) {
    const { queries, timesMax } = kind.plain
    const plain = yield* costOfPlain(facilitator, queries, clients)
    const total = plain.cpu + plain.database
    bars.push(atMost(`${name}: times the plain query's ${total.toFixed(1)} ms`, (cpu + database) / total, timesMax))
  }
  const isSound = errors.length === 0 && times.length >= Math.min(100, paths.length)
  console.log(
    `  ${name.padEnd(36)} processor ${show(cpu, 2, 5)} ms + database ${show(database, 2, 6)} ms   p50 ` +
      `${show(p50, 1, 5)}  p95 ${show(p95, 1, 5)} ms   ${show((1_000 * times.length) / elapsedMillis, 0, 4)}/s   ` +
      `${isSound ? bars.map(barLine).join(", ") : `NOT sound: ${times.length} answers, ${errors.join(", ")}`}   ` +
      `load ${loadavg()[0]!.toFixed(1)}`
  )
  for (const path of faulty) console.log(`    not sound: ${path}`)
  return { bars, isSound } satisfies Measured
})
