// Each route's worst request against its declared cost. Statements, rows, RPC calls and bytes are counted; processor
// time has a factor, since this process is also the ledger, the database and the client, and it is compared in units of
// the machine's present speed.
// `TOLLKEEPER_WRITE_COSTS=1` writes runtime/deploy/routes.md, which is checked without it.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import process from "node:process"
import type { RouteCost } from "../../../kernel/http/RouteCost.ts"
import { type Claim, RouteClaims } from "../../../kernel/plugin/Routes.ts"
import { fillKernel, fillRollups, fillSettlements, listResources } from "../../bench/viewsFill.ts"
import {
  declaredColumns,
  makeRowCounter,
  makeSpanCounter,
  measure,
  type Measured,
  slowness,
  tableOf
} from "../../support/routeCosts.ts"
import { type Case, keys, makeCases } from "../../support/routeRequests.ts"
import { eventually } from "../../support/eventually.ts"
import { type Answer, type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { documentBytesMax } from "../../../plugins/catalog/Config.ts"
import { receiptSecrets } from "../../plugins/receipts/secrets.ts"

const environment = {
  ...receiptSecrets,
  FACILITATOR_API_KEYS: `shop:${keys.shop}`,
  OPERATOR_API_KEYS: `ops:${keys.ops}`,
  BATCH_AUTHORIZER_SECRET: "a secret for the authorizers of this test"
}
const size = { settlements: 2_000, buyers: 250, sellers: 250, resources: 1_000, historyDays: 90 }
const rounds = 3
const [cpuFactor, cpuSlackMillis] = [4, 40]
/** The figures of a request. On Deno this process is the database too, so processor time says nothing of a route. */
const figures = ["bytesOut", "statements", "rowsWritten", "rpcCalls", "cpuMillis"] as const
const compared = "Deno" in globalThis ? figures.slice(0, -1) : figures
/** Reads are measured again when something else in the process exceeded their cost. */
const tries = 3
/** The largest listings by default, more than fit on one page. */
const [documentBytes, largeDocuments] = [documentBytesMax({ metadataBytesMax: 131_072 }), 130]
const table = new URL("../../../runtime/deploy/routes.md", import.meta.url)

const start = Effect.gen(function* () {
  const { tracer, traces } = makeSpanCounter()
  const facilitator = yield* startFacilitator({
    environment,
    // Actors write for each ledger. Few ledgers close while a read is measured.
    closeMillis: 10_000,
    closesOnSubmit: true,
    channels: 4,
    set: ["receipts.host=pay.example", "server.host=127.0.0.1"]
  }).pipe(Effect.withTracer(tracer))
  const { sql } = facilitator
  yield* listResources(sql, size)
  yield* sql`update catalog_resources set document = json_build_object('resource', resource, 'type', 'http',
    'x402Version', 2, 'accepts', '[]'::json, 'pad', repeat('x', ${documentBytes}::int))::text
    where id <= ${largeDocuments}`
  yield* fillSettlements(sql, size)
  yield* fillRollups(sql)
  yield* fillKernel(sql)
  const [ids] = yield* sql<{ hash: string; buyer: string; seller: string; settlement: string }>`
    select transaction_hash as hash, payer as buyer, pay_to as seller, id::text as settlement
    from analytics_settlements where status = 'success' order by transaction_hash limit 1`
  const cases: Readonly<Record<string, Case>> = yield* makeCases(facilitator, rounds, ids!)
  return { facilitator, traces, cases, rows: yield* makeRowCounter(sql) }
})

const measureRoute = Effect.fnUntraced(function* (
  { cases, facilitator, rows, traces }: Effect.Success<typeof start>,
  { method, path, rules: { callers, cost } }: Claim
) {
  const key = callers === "operators" || path.startsWith("/analytics") ? keys.ops : keys.shop
  const headers = { authorization: `Bearer ${key}`, "x-tollkeeper-page": "1" }
  const plain: Case = { asked: () => ({ path: `${path}?limit=1000&days=0`, init: { method, headers } }) }
  const { asked, status } = cases[`${method} ${path}`] ?? plain
  // A write may need rows of any table. A read has no part in the rows of a process's presence.
  const isWrite = method !== "GET" && (cost.rowsWritten ?? 0) > 0
  const written = isWrite ? rows.all : rows.written
  const before = yield* written
  const all = yield* Effect.forEach(Array.from({ length: rounds }), (_, round) =>
    Effect.gen(function* () {
      const from = yield* written
      const one = yield* measure(facilitator.url, asked(round), traces)
      return { ...one, rowsWritten: (yield* written) - from }
    })
  )
  const each = <A>(of: (one: Measured) => A) => all.map(of)
  // A write is followed to its consumers. The writes of other actors are not a read's: its smallest round has least.
  if (isWrite) yield* eventually(rows.isFollowed, (isFollowed) => isFollowed)
  const followed = Math.ceil(((yield* written) - before) / rounds)
  const measured: Measured = {
    status: all[0]!.status,
    bytesOut: Math.max(...each(({ bytesOut }) => bytesOut)),
    statements: Math.max(...each(({ statements }) => statements)),
    rpcCalls: Math.max(...each(({ rpcCalls }) => rpcCalls)),
    cpuMillis: Math.ceil(Math.min(...each(({ cpuMillis }) => cpuMillis))),
    rowsWritten: isWrite ? followed : Math.min(...each(({ rowsWritten }) => rowsWritten))
  }
  return { measured, isExpected: status === undefined ? measured.status < 300 : measured.status === status }
})

/** Every listing, by the cursors of the longest pages. */
const browseAll = Effect.fnUntraced(function* (facilitator: Facilitator) {
  const pages: Array<ReadonlyArray<string>> = []
  for (let cursor: string | null = ""; cursor !== null;) {
    const { json }: Answer = yield* facilitator.ask(`/discovery/resources?limit=1000&type=http&cursor=${cursor}`)
    pages.push(json.items.map(({ resource }: { readonly resource: string }) => resource))
    cursor = json.pagination.cursor
  }
  return pages
})

/** `slower`: the machine's processor time for the same work, in units of the reference machine's. */
const excess = (cost: RouteCost, measured: Measured, slower = 1): ReadonlyArray<string> =>
  compared.flatMap((name) => {
    const declared = cost[name] ?? 0
    return measured[name] > (name === "cpuMillis" ? (declared * cpuFactor + cpuSlackMillis) * slower : declared)
      ? [`${name} ${measured[name]} of ${declared}, on a machine ${slower.toFixed(1)} times slower`]
      : []
  })

it.live(
  "no route's worst request exceeds its declared cost",
  () =>
    Effect.gen(function* () {
      const world = yield* start
      const claims = Context.getUnsafe(world.facilitator.services, RouteClaims as never) as RouteClaims["Service"]
      const pages = yield* browseAll(world.facilitator)
      expect(pages[0]!.length).toBeLessThan(size.resources)
      expect(new Set(pages.flat()).size).toBe(pages.flat().length)
      expect(pages.flat().length).toBeGreaterThanOrEqual(size.resources)
      const issues: Array<string> = []
      const lines: Array<{ readonly claim: Claim; readonly measured: Measured }> = []
      for (const claim of claims.all().filter(({ method }) => method !== "OPTIONS")) {
        const { cost } = claim.rules
        for (let again = 0; ; again++) {
          const { isExpected, measured } = yield* measureRoute(world, claim)
          const exceeded = excess(cost, measured).length === 0 ? [] : excess(cost, measured, yield* slowness)
          if (exceeded.length > 0 && claim.method === "GET" && again + 1 < tries) continue
          const route = `${claim.method} ${claim.path}`
          if (!isExpected) issues.push(`${route} answered ${measured.status}`)
          issues.push(...exceeded.map((issue) => `${route}: ${issue}`))
          lines.push({ claim, measured })
          break
        }
      }
      expect(issues).toEqual([])
      if (process.env["TOLLKEEPER_WRITE_COSTS"] === "1") writeFileSync(table, tableOf(lines))
      expect(declaredColumns(readFileSync(table, "utf8"))).toEqual(declaredColumns(tableOf(lines)))
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  300_000
)

it("an excess of any figure is an issue", () => {
  const cost = { cpuMillis: 10, bytesOut: 10, statements: 1, rowsWritten: 1, rpcCalls: 1 }
  const within = { status: 200, ...cost, cpuMillis: 10 * cpuFactor + cpuSlackMillis }
  expect(excess(cost, within)).toEqual([])
  for (const name of compared) expect(excess(cost, { ...within, [name]: within[name] + 1 })).toHaveLength(1)
  const slow = { ...within, cpuMillis: within.cpuMillis * 2 }
  expect(excess(cost, slow, 2)).toEqual([])
  const slower = excess(cost, { ...slow, cpuMillis: slow.cpuMillis + 1 }, 2)
  expect(slower).toHaveLength(compared.includes("cpuMillis") ? 1 : 0)
  expect(excess({ cpuMillis: 10, bytesOut: 10 }, within)).toHaveLength(3)
})
