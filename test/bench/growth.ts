// `npm run bench -- growth`: the cost of a verify and a settle with 1,000, 10,000 and 100,000 ended settlements and
// listed resources, and with 10, 100 and 1,000 open settlements, on PostgreSQL. Rows are renamed copies of real ones,
// so they are as large as real payments leave. A cost is processor time of facilitator and database together, minus
// their idle use; it must not grow with a power above 0.1. Prints the disk space of one settlement and of one resource.
// `--quick` stops at 10,000 and 100. The last line has the exponents; the status is 0 only if every bar holds.
import process from "node:process"
import { parseArgs } from "node:util"
import { measureRound, signed } from "./payments/measure.ts"
import { warm } from "./payments/scenarios.ts"
import { startWorld, type Subject, type World } from "./payments/world.ts"
import { atMost, type Bar, barLine } from "./rig/bars.ts"
import { type BenchDatabase, connectTo } from "./rig/database.ts"
import { familyMillis, pause, processorMillis } from "./rig/processes.ts"
import { Progress } from "./rig/Progress.ts"

interface Plan {
  readonly ended: ReadonlyArray<number>
  readonly open: ReadonlyArray<number>
  readonly verifies: number
  readonly settles: number
  /** The cheapest round counts: a busy machine only adds time. */
  readonly rounds: number
}

const exponentMax = 0.1
const channels = 20
const idleMillis = 3_000

/** Columns of a table except those that the database fills itself. */
const columnsOf = async (database: BenchDatabase, table: string): Promise<ReadonlyArray<string>> =>
  (
    await database.query(`select column_name as name from information_schema.columns
      where table_name = '${table}' and is_identity = 'NO' order by ordinal_position`)
  ).map(({ name }) => name as string)

/** Copies the template's row once for each row of `from`, with other values (SQL) in some columns. */
const copy = async (
  database: BenchDatabase,
  table: string,
  changes: Readonly<Record<string, string>>,
  from: string
): Promise<void> => {
  const columns = await columnsOf(database, table)
  const values = columns.map((name) => changes[name] ?? `t.${name}`)
  await database.query(`insert into ${table} (${columns.join(", ")}) select ${values.join(", ")} from ${from}`)
}

const hash = (of: string) => `encode(sha256(convert_to(${of}, 'UTF8')), 'hex')`

/** Names of the copies: a number and an id each. */
const begin = async (database: BenchDatabase, first: number, last: number): Promise<void> => {
  await database.query("drop table if exists bench_new")
  await database.query(`create table bench_new as
    select n, gen_random_uuid() as id from generate_series(${first}, ${last}) n`)
}

/** Ended settlements from `first` on, each with its attempt and its facts, as the template settled. */
const addEnded = async (database: BenchDatabase, first: number, last: number): Promise<void> => {
  await begin(database, first, last)
  await copy(
    database,
    "kernel_settlements",
    {
      id: "b.id",
      authorization_key: "t.authorization_key || ':' || b.n",
      fingerprint: hash("'f' || b.n"),
      inner_hash: hash("'h' || b.n"),
      ended_by: hash("'h' || b.n"),
      identifier: "null"
    },
    `(select s.* from kernel_settlements s join bench_template using (id)) t cross join bench_new b`
  )
  const attempt = `(select a.* from kernel_attempts a join bench_template s on s.id = a.settlement
    order by a.number limit 1) t`
  const hashes = { inner_hash: hash("'h' || b.n"), outer_hash: hash("'o' || b.n") }
  await copy(database, "kernel_attempts", { settlement: "b.id", ...hashes }, `${attempt} cross join bench_new b`)
  const facts = "(select f.* from kernel_facts f join bench_template s on s.id::text = f.subject) t"
  const data = `t.data || jsonb_build_object('transaction', ${hash("'h' || b.n")})`
  await copy(
    database,
    "kernel_facts",
    { subject: "b.id::text", position: "null", data },
    `${facts} cross join bench_new b order by b.n, t.id`
  )
}

/** Listed resources from `first` on, as the template is listed. */
const addResources = async (database: BenchDatabase, first: number, last: number): Promise<void> => {
  const url = (n: string) => `'https://bench.example.com/copy-' || ${n}`
  const rows = `generate_series(${first}, ${last}) b (n)`
  await copy(
    database,
    "catalog_resources",
    { key: hash("'k' || b.n"), resource_key: hash("'r' || b.n"), resource: url("b.n") },
    `(select * from catalog_resources order by id limit 1) t cross join ${rows}`
  )
  const fresh = `(select id from catalog_resources where resource like '%/copy-%'
    and substring(resource from '[0-9]+$')::int between ${first} and ${last}) b`
  await copy(
    database,
    "catalog_options",
    { resource_id: "b.id" },
    `(select * from catalog_options where resource_id = (select min(id) from catalog_resources)) t cross join ${fresh}`
  )
  await copy(
    database,
    "catalog_activity",
    { resource_id: "b.id" },
    `(select * from catalog_activity where resource_id = (select min(id) from catalog_resources)) t cross join ${fresh}`
  )
}

/** Open settlements that never reach an outcome, with authorizations that stay valid. */
const addOpen = async (database: BenchDatabase, first: number, last: number): Promise<void> => {
  await begin(database, first, last)
  await copy(
    database,
    "kernel_settlements",
    {
      id: "b.id",
      authorization_key: "t.authorization_key || ':open:' || b.n",
      authorization_expires_ledger: "t.authorization_expires_ledger + 1000000",
      fingerprint: hash("'fo' || b.n"),
      inner_hash: hash("'ho' || b.n"),
      identifier: "null",
      channel_sequence: "t.channel_sequence + 1000000",
      state: "'submitted'",
      ...Object.fromEntries(
        ["ended_by", "resolved_at", "ledger", "closed_at", "moved", "fee_charged_stroops", "delivered_at"].map(
          (name) => [name, "null"]
        )
      )
    },
    `(select s.* from kernel_settlements s join bench_template using (id)) t cross join bench_new b`
  )
  const attempt = `(select a.* from kernel_attempts a join bench_template s on s.id = a.settlement
    order by a.number limit 1) t`
  const hashes = { inner_hash: hash("'ho' || b.n"), outer_hash: hash("'oo' || b.n") }
  await copy(database, "kernel_attempts", { settlement: "b.id", ...hashes }, `${attempt} cross join bench_new b`)
}

/** Waits until every consumer has read the journal. */
const untilRead = async (database: BenchDatabase): Promise<void> => {
  for (;;) {
    const [row] = await database.query(`select not exists (select 1 from kernel_facts where position is null)
      and (select min(position) from kernel_fact_cursors) >= (select max(position) from kernel_facts) as read`)
    if (row!["read"] === true) return
    await pause(500)
  }
}

/** Asserts that every settlement has its complete rows: an attempt, two facts, a row of analytics. */
const isWhole = async (database: BenchDatabase, least: number): Promise<void> => {
  const [row] = await database.query(`select (select count(*)::int from kernel_settlements) as settlements,
    (select count(*)::int from kernel_attempts) as attempts, (select count(*)::int / 2 from kernel_facts
      where type like 'settlement.%') as facts, (select count(*)::int from analytics_settlements) as analytics`)
  for (const [what, count] of Object.entries(row!))
    if (Number(count) < least) throw new Error(`of ${least} settlements there are ${count} ${what}`)
}

const bytes = async (database: BenchDatabase): Promise<number> =>
  Number((await database.query("select pg_database_size(current_database())::text as size"))[0]!["size"])

interface Cost {
  readonly rows: number
  readonly verify: number
  readonly settle: number
  /** Processor time per second when idle. */
  readonly idle: number
}

const costOf = async (world: World, subject: Subject, plan: Plan, rows: number): Promise<Cost> => {
  const clock = () => processorMillis(subject.pid) + familyMillis(world.databasePid)
  // Filling the tables has evicted other code and data from caches.
  await warm(world, [{ subject }], 300)
  await pause(1_000)
  const before = clock()
  await pause(idleMillis)
  const idle = ((clock() - before) / idleMillis) * 1_000
  const one = async (path: "/verify" | "/settle", count: number) => {
    await signed(world, "plain", count)
    const from = performance.now()
    const sent = { pool: "plain", path, from: 0, count, load: { clients: channels } }
    const { cpu, outcomes } = await measureRound(world, subject, sent)
    const good = (outcomes["200 valid"] ?? 0) + (outcomes["200 settled"] ?? 0)
    if (good < count) throw new Error(`${path} beside ${rows} rows: ${JSON.stringify(outcomes)}`)
    const spent = (cpu.facilitator ?? Number.NaN) + (cpu.database ?? Number.NaN)
    return spent - (idle * (performance.now() - from)) / 1_000 / count
  }
  const costs: { readonly verify: Array<number>; readonly settle: Array<number> } = { verify: [], settle: [] }
  for (let round = 0; round < plan.rounds; round++) {
    costs.verify.push(await one("/verify", plan.verifies))
    costs.settle.push(await one("/settle", plan.settles))
  }
  return { rows, verify: Math.min(...costs.verify), settle: Math.min(...costs.settle), idle }
}

/** The exponent with which a cost grows with the number of rows, by least squares over the logarithms. */
export const exponentOf = (points: ReadonlyArray<{ readonly rows: number; readonly cost: number }>): number => {
  const logs = points.map(({ cost, rows }) => ({ x: Math.log(rows), y: Math.log(cost) }))
  const mean = (pick: (one: { x: number; y: number }) => number) =>
    logs.reduce((sum, one) => sum + pick(one), 0) / logs.length
  const [x, y] = [mean((one) => one.x), mean((one) => one.y)]
  return (
    logs.reduce((sum, one) => sum + (one.x - x) * (one.y - y), 0) / logs.reduce((sum, one) => sum + (one.x - x) ** 2, 0)
  )
}

const exponents = (what: string, costs: ReadonlyArray<Cost>): ReadonlyArray<Bar> =>
  (["verify", "settle"] as const).map((kind) =>
    atMost(
      `${kind} beside ${what}: exponent`,
      exponentOf(costs.map((one) => ({ rows: one.rows, cost: one[kind] }))),
      exponentMax
    )
  )

const say = (what: string, { idle, rows, settle, verify }: Cost): void =>
  console.log(
    `  ${`${rows} ${what}`.padEnd(42)} CPU ms: ${verify.toFixed(2)} a verify, ${settle.toFixed(2)} a settle; ` +
      `${idle.toFixed(0)} a second when idle`
  )

interface Part {
  readonly world: World
  readonly subject: Subject
  readonly database: BenchDatabase
  readonly plan: Plan
  readonly progress: Progress
}

/** One payment of each kind, as a template for the copies. */
const beginnings = async ({ database, subject, world }: Part): Promise<void> => {
  await warm(world, [{ subject }], 600)
  for (const kind of ["plain", "metadata"] as const) {
    await signed(world, kind, channels)
    const sent = { pool: kind, port: subject.port, from: 0, count: channels, load: { clients: channels } }
    await world.clients.send({ ...sent, path: "/settle" })
  }
  while (Number((await database.query("select count(*)::int as n from catalog_resources"))[0]!["n"]) === 0)
    await pause(200)
  await untilRead(database)
  await database.query(`create table bench_template as
    select id from kernel_settlements where state = 'settled' order by recorded_at limit 1`)
}

const besideEnded = async ({ database, plan, progress, subject, world }: Part) => {
  const costs: Array<Cost> = []
  const sizes: Array<{ readonly rows: number; readonly settlements: number; readonly resources: number }> = []
  let rows = 0
  for (const next of plan.ended) {
    progress.step(`${next} ended settlements and resources`)
    await database.query("vacuum analyze")
    const empty = await bytes(database)
    await addEnded(database, rows + 1, next)
    await untilRead(database)
    await database.query("vacuum analyze")
    await isWhole(database, next)
    const settled = await bytes(database)
    await addResources(database, rows + 1, next)
    await database.query("vacuum analyze")
    sizes.push({ rows: next - rows, settlements: settled - empty, resources: (await bytes(database)) - settled })
    rows = next
    const cost = await costOf(world, subject, plan, next)
    progress.end()
    say("ended settlements and resources", cost)
    costs.push(cost)
  }
  const last = sizes.at(-1)!
  console.log(
    `  disk: ${Math.round(last.settlements / last.rows)} bytes a settlement, ` +
      `${Math.round(last.resources / last.rows)} a resource, indexes included`
  )
  return costs
}

const besideOpen = async ({ database, plan, progress, subject, world }: Part) => {
  const costs: Array<Cost> = []
  let rows = 0
  for (const next of plan.open) {
    progress.step(`${next} open settlements`)
    await addOpen(database, rows + 1, next)
    await database.query("vacuum analyze")
    rows = next
    const cost = await costOf(world, subject, plan, next)
    progress.end()
    say("open settlements", cost)
    costs.push(cost)
  }
  return costs
}

const planOf = (quick: boolean): Plan =>
  quick
    ? { ended: [1_000, 10_000], open: [10, 100], verifies: 300, settles: 40, rounds: 3 }
    : { ended: [1_000, 10_000, 100_000], open: [10, 100, 1_000], verifies: 600, settles: 100, rounds: 3 }

export const bench = async (): Promise<boolean> => {
  const { quick } = parseArgs({
    args: process.argv.slice(3),
    options: { quick: { type: "boolean", default: false } }
  }).values
  const plan = planOf(quick)
  const progress = new Progress("growth", plan.ended.length + plan.open.length + 1)
  const world = await startWorld({ deno: false, say: (line) => progress.say(line) })
  const running: Array<BenchDatabase> = []
  try {
    progress.step("starting, and the first payments")
    const subject = await world.startOurs({
      name: "growth",
      channels,
      plugins: ["x402-exact", "catalog", "search-lexical", "analytics"],
      set: ["catalog_security.probe_origins=false", "limits.max_pending_settlements=10000"]
    })
    const database = connectTo(subject.databaseUrl!)
    running.push(database)
    const part: Part = { world, subject, database, plan, progress }
    await beginnings(part)
    const bars = [
      ...exponents("ended ones", await besideEnded(part)),
      ...exponents("open ones", await besideOpen(part))
    ]
    progress.end()
    const missed = bars.filter(({ holds }) => !holds).length
    const verdict = missed === 0 ? "every bar held" : `${missed} of ${bars.length} bars MISSED`
    console.log(`growth: ${verdict}: ${bars.map(barLine).join("; ")}`)
    return missed === 0
  } finally {
    progress.end()
    for (const one of running) await one.close()
    await world.stop()
  }
}
