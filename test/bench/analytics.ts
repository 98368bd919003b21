// The cost of analytics per event on PostgreSQL: with a history filled in by SQL, settlements are published to the
// journal and the facilitator's own reader makes the rollups; first as one batch, as after downtime, then one at a
// time. A cost is processor time of facilitator and database per fact, minus their idle use. With ten times the history
// it must not grow with a power above 0.1. Then the overview is compared with the journal and with its bar, p50 ≤ 20 ms
// with one client. SETTLEMENTS sets the larger history (200,000); buyers, sellers and resources keep their ratio to it.
import { Effect, Layer, Redacted } from "effect"
import type { SqlClient } from "effect/sql"
import { readFileSync } from "node:fs"
import { loadavg } from "node:os"
import process from "node:process"
import { DatabaseSource } from "../../kernel/database/DatabaseSource.ts"
import { inTransaction } from "../../kernel/database/Database.ts"
import { Facts } from "../../kernel/facts/Facts.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { startPostgres } from "../support/postgres.ts"
import { startLoad } from "./httpLoad.ts"
import { atMost, type Bar, barLine } from "./rig/bars.ts"
import { familyMillis, processorMillis } from "./rig/processes.ts"
import { fillRollups, fillSettlements, listResources, type Size } from "./viewsFill.ts"

const large = Number(process.env["SETTLEMENTS"] ?? 200_000)
const growth = 10
const exponentMax = 0.1
const p50BarMillis = 20
const batchSize = 5_000
const oneByOne = 150
const rounds = 3
const idleMillis = 3_000

/** A million settlements have 50,000 buyers, 2,000 sellers and 1,000 resources. */
const sizeOf = (settlements: number): Size => ({
  settlements,
  buyers: Math.ceil(settlements / 20),
  sellers: Math.ceil(settlements / 500),
  resources: Math.ceil(settlements / 1_000),
  historyDays: 90
})

const address = (kind: string, number: string) =>
  `'G' || '${kind}' || translate(lpad((${number})::text, 54, 'A'), '0189', 'WXYZ')`

/**
 * Settlements of the last hour with their outcomes, between parties of the history: nine of ten successful, a few
 * without an outcome.
 */
const reportJournal = (sql: SqlClient.SqlClient, { buyers, resources, sellers }: Size, from: number) =>
  sql`with made as (
      select n, lpad(to_hex(n), 12, '0') as hex, 1 + floor(power(random(), 2) * ${buyers}::int)::int as buyer,
        1 + floor(power(random(), 2) * ${sellers}::int)::int as seller, now() - make_interval(secs => 120 + n % 3600)
          as at
      from generate_series(${from}::int, ${from + batchSize - 1}::int) n
    )
    insert into kernel_facts (at, type, version, subject, data)
    select at, type, 1, '00000000-0000-4000-b000-' || hex, data from (
      select n, 1 as step, at, hex, 'settlement.recorded' as type, jsonb_build_object('network', 'ledger:testnet',
        'scheme', 'exact', 'asset', case when n % 5 = 0 then 'CXLM' else 'CUSDC' end,
        'payer', ${sql.literal(address("B", "buyer"))}, 'payTo', ${sql.literal(address("S", "seller"))}, 'amountMax', (n
          % 10000 + 1)::text, 'amount', (n % 10000 + 1)::text, 'facilitator', 'replica-' || n % 3,
        'transaction', 'b' || lpad(to_hex(n), 63, '0'), 'resourceUrl', case when seller <= ${resources}::int
          then 'https://s' || seller % 100 || '.example.com/r' || seller || '?n=' || n end, 'principal', 'p') as data
          from made
      union all
      select n, 2, at + interval '5 seconds', hex, case when n % 10 < 9 then 'settlement.settled'
        else 'settlement.failed' end, jsonb_build_object('transaction', 'b' || lpad(to_hex(n), 63, '0'),
        'moved', case when n % 10 < 9 then (n % 10000 + 1)::text
          end, 'feeChargedStroops', '23000', 'ledger', n, 'reason', case when n % 10 < 9 then null
          else 'settle_ledger_transaction_failed' end) from made where n % 200 <> 0
    ) events order by n, step`.unprepared

/** Publishes one settlement as the kernel does. */
const reportOne = (n: number) =>
  Effect.gen(function* () {
    const facts = yield* Facts
    const hex = n.toString(16)
    const about = { version: 1, subject: `00000000-0000-4000-c000-${hex.padStart(12, "0")}`, principal: "anonymous" }
    const transaction = `c${hex.padStart(63, "0")}`
    const terms = { network: "ledger:testnet", scheme: "exact", asset: "CUSDC", payer: `GB${n % 50}`, payTo: "GSHOP" }
    const more = { amountMax: "1", amount: "1", transaction, resourceUrl: null, principal: "anonymous" }
    yield* facts.publish({ ...about, type: "settlement.recorded", data: { ...terms, ...more } })
    const ended = { transaction, moved: "1", feeChargedStroops: "1", ledger: 7, reason: null }
    yield* facts.publish({ ...about, type: "settlement.settled", data: ended })
  }).pipe(inTransaction)

interface World {
  readonly facilitator: Facilitator
  readonly published: { count: number }
  /** Milliseconds of processor time that both have used so far. */
  readonly spent: () => number
}

/** Settlements that the overview's own rollup counts. */
const shown = ({ sql }: Facilitator) =>
  Effect.map(
    sql<{ shown: number }>`select coalesce(sum(transactions), 0)::int as shown from analytics_totals
      where width = 'day'`,
    ([row]) => row!.shown
  )

const readAll = Effect.fnUntraced(function* ({ facilitator, published: reported }: World) {
  while ((yield* shown(facilitator)) < reported.count) yield* Effect.sleep("100 millis")
})

/** Processor milliseconds per fact, in the cheapest round: a busy machine only adds time. */
const measure = Effect.fnUntraced(function* (
  world: World,
  settlements: number,
  report: (round: number) => Effect.Effect<unknown, unknown>
) {
  const idle = world.spent()
  yield* Effect.sleep(idleMillis)
  const idlePerMilli = (world.spent() - idle) / idleMillis
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds; round++) {
    const [from, before] = [performance.now(), world.spent()]
    yield* report(round)
    world.published.count += settlements
    yield* readAll(world)
    const spent = world.spent() - before - idlePerMilli * (performance.now() - from)
    least = Math.min(least, spent / (settlements * 2))
  }
  return least
})

/** One history: the cost of a fact with it, and whether the overview equals the published settlements. */
const beside = Effect.fnUntraced(function* (settlements: number) {
  const postgres = yield* Effect.acquireRelease(Effect.promise(startPostgres), ({ stop }) => Effect.promise(stop))
  const database = Layer.succeed(DatabaseSource, {
    open: Effect.succeed({ kind: "server" as const, url: Redacted.make(postgres.url) })
  })
  const facilitator = yield* startFacilitator({
    database,
    closeMillis: 5_000,
    channels: 1,
    set: [
      "catalog_security.probe_origins=false",
      "database.statement_timeout_ms=600000",
      "plugins=[ledger-local, x402-exact, catalog, analytics]"
    ]
  })
  const { services, sql } = facilitator
  const size = sizeOf(settlements)
  yield* listResources(sql, size)
  yield* fillSettlements(sql, size)
  yield* fillRollups(sql)
  yield* sql`vacuum analyze`.unprepared
  const [{ pid } = { pid: 0 }] = yield* sql<{ pid: number }>`select pg_backend_pid() as pid`
  const server = Number(readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]!.split(" ")[1])
  const spent = () => processorMillis(process.pid) + familyMillis(server)
  const world = { facilitator, published: { count: settlements }, spent }
  let next = 1
  // The same parties with either history, so that merging within a batch does not make the difference.
  const parties = sizeOf(large / growth)
  const many = yield* measure(world, batchSize, () => reportJournal(sql, parties, (next += batchSize)))
  const single = yield* measure(world, oneByOne, () =>
    Effect.gen(function* () {
      for (let reported = 0; reported < oneByOne; reported++) {
        yield* Effect.provideContext(reportOne((next += 1)), services) as Effect.Effect<void>
        yield* Effect.sleep("20 millis")
      }
    })
  )
  console.log(
    `  beside ${settlements} settlements: ${many.toFixed(3)} ms of CPU per fact in a batch of ${batchSize * 2}, ` +
      `${single.toFixed(2)} ms per fact published one settlement at a time`
  )
  return { facilitator, many, single, published: world.published.count }
})

const asked = Effect.fnUntraced(function* ({ url }: Facilitator) {
  const load = yield* Effect.acquireRelease(Effect.sync(startLoad), ({ stop }) => Effect.sync(stop))
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds && best > p50BarMillis; round++) {
    const port = Number(new URL(url).port)
    const paths = ["/analytics/v1/overview?days=0"]
    const { p50 } = yield* Effect.promise(() => load.run({ port, paths, clients: 1, seconds: 2, bytesMin: 50 }))
    best = Math.min(best, p50)
  }
  return best
})

const program = Effect.gen(function* () {
  console.log(`analytics: load of the machine ${loadavg()[0]!.toFixed(1)}`)
  const small = yield* Effect.scoped(beside(large / growth))
  const { facilitator, many, single, published: reported } = yield* beside(large)
  const { json: overview } = yield* facilitator.ask("/analytics/v1/overview?days=0")
  const exact = overview.total_transactions === String(reported)
  console.log(`  the overview counts ${overview.total_transactions} of ${reported} settlements`)
  const exponent = (before: number, after: number) => Math.log10(after / before) / Math.log10(growth)
  const bars: ReadonlyArray<Bar> = [
    atMost("growth of a fact in a batch", exponent(small.many, many), exponentMax),
    atMost("growth of a single fact", exponent(small.single, single), exponentMax),
    atMost("overview p50 in ms", yield* asked(facilitator), p50BarMillis)
  ]
  console.log(`${exact ? "exact" : "NOT exact"}; ${bars.map(barLine).join("; ")}`)
  return exact && bars.every(({ holds }) => holds)
})

export const bench = (): Promise<boolean> => Effect.runPromise(Effect.scoped(program) as Effect.Effect<boolean>)
