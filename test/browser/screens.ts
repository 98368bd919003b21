// Screenshots of every view over a facilitator with a month of settlements, for a second reader: `node
// test/browser/screens.ts FOLDER [NAME …]` takes the views with a name that begins with NAME, at three widths in both
// themes. The two in `examples/screens` are "overview 1280 light" and "settlements 1280 light".
import { NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { mkdirSync } from "node:fs"
import { join, resolve } from "node:path"
import process from "node:process"
import { fillRollups, fillSettlements } from "../bench/viewsFill.ts"
import { declaration } from "../support/declaration.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { launch, Visit } from "./Visit.ts"

const [folder = "", ...names] = process.argv.slice(2)
const widths = [1_440, 1_024, 390]
const themes = ["light", "dark"] as const
const size = { settlements: 4_000, buyers: 240, sellers: 40, resources: 0, historyDays: 30 }

/** The purposes of the real payments; the last one is refused. */
const sold = [
  ["https://weather.example/forecast", "Hourly forecast of a city for the next ten days"],
  ["https://maps.example/routes/fastest", "Fastest route between two places, by car or on foot"],
  ["https://news.example/search", "Full-text search of this week's news"],
  ["https://weather.example/air-quality", "Air quality of a city, measured every hour"]
] as const

/**
 * Real payments in addition to the generated history, one of them refused, so that each page has a realistic example.
 */
const payments = (facilitator: Facilitator) =>
  Effect.gen(function* () {
    const payer = yield* facilitator.account()
    const poor = yield* facilitator.account(5_000n)
    for (const [index, [resourceUrl, description]] of sold.entries()) {
      const payTo = (yield* facilitator.account(0n)).publicKey()
      const amount = 12_500n * BigInt(index + 1)
      const tamper = {
        payload: (honest: any) => ({ ...honest, resource: { ...honest.resource, description } })
      }
      const asked = { payTo, amount, resourceUrl, extensions: { catalog: declaration }, tamper }
      const { body } = yield* facilitator.payment({ payer, ...asked })
      yield* facilitator.settle(body)
      const refused = yield* facilitator.payment({ payer: poor, ...asked })
      yield* facilitator.verify(refused.body)
    }
    yield* facilitator.ask("/discovery/search?query=zebra%20maps")
  })

/** An address that differs from others at its ends too, as SQL. */
const lettered = (column: string): string =>
  `'G' || substr(upper(translate(md5(${column}) || md5(${column} || 'x'), '0189', 'WXYZ')), 1, 55)`

/** The views by name. */
const viewsOf = (facilitator: Facilitator) =>
  Effect.gen(function* () {
    const { json } = yield* facilitator.ask("/analytics/v1/settlements?limit=1")
    const { asset, pay_to: payTo, payer, transaction_hash: hash } = json.items[0]
    const { json: listings } = yield* facilitator.ask("/analytics/v1/resources?limit=1")
    const { id, origin, resource } = listings.items[0]
    return [
      ["overview", "/dashboard"],
      ["live", "/dashboard#live"],
      ["settlements", "/dashboard#settlements"],
      ["settlements filtered", "/dashboard#settlements?status=failed&range=7d"],
      ["settlement", `/dashboard#settlement/${hash}`],
      ["refusals", "/dashboard#refusals"],
      ["participants", "/dashboard#participants"],
      ["listings", "/dashboard#resources"],
      ["search", "/dashboard#search"],
      ["operation", "/dashboard#standing"],
      ["channels", "/dashboard#channels"],
      ["deliveries", "/dashboard#deliveries"],
      ["listing", `/dashboard#resource/${id}`],
      ["payer", `/dashboard#account/${payer}`],
      ["recipient", `/dashboard#account/${payTo}`],
      ["asset", `/dashboard#asset/${asset}`],
      ["origin", `/dashboard#origin/${encodeURIComponent(origin)}`],
      ["key", "/dashboard#key/anonymous"],
      ["catalog", "/"],
      ["seller", "/seller"],
      ["public resource", `/resource?url=${encodeURIComponent(resource)}&type=http`],
      ["public payee", `/payee?account=${payTo}`],
      ["receipts", "/receipts"],
      ["status", "/status"]
    ] as const
  })

const program = Effect.gen(function* () {
  const facilitator = yield* startFacilitator({ channels: 4, closeMillis: 400 })
  yield* payments(facilitator)
  yield* Effect.sleep("3 seconds")
  const usdc = (yield* facilitator.ask("/dashboard/v1/about")).json.assets[0].asset
  yield* fillSettlements(facilitator.sql, size)
  yield* facilitator.sql.unsafe(`update analytics_settlements set asset = '${usdc}', amount_max = amount_max * 1371,
    amount_meant = amount_meant * 1371, amount = amount * 1371, payer = ${lettered("payer")},
    pay_to = ${lettered("pay_to")}, transaction_hash = md5(id::text) || md5(transaction_hash)
    where asset in ('CUSDC', 'CXLM')`)
  const kept = ["analytics_settlements", "analytics_secrets", "analytics_ranking_windows", "analytics_refusals"]
  const tables = yield* facilitator.sql<{ name: string }>`select tablename as name from pg_tables
    where tablename like 'analytics!_%' escape '!' and tablename <> all(${kept})`
  for (const { name } of tables) yield* facilitator.sql.unsafe(`delete from ${name}`)
  yield* fillRollups(facilitator.sql)
  const views = yield* viewsOf(facilitator)
  yield* Effect.promise(async () => {
    const browser = await launch()
    mkdirSync(folder, { recursive: true })
    for (const width of widths)
      for (const theme of themes) {
        const visit = await Visit.open(browser, facilitator.url, { width, theme })
        for (const [name, path] of views) {
          if (names.length > 0 && !names.some((wanted) => `${name} ${width} ${theme}`.startsWith(wanted))) continue
          await visit.go("/health")
          await visit.go(path)
          await visit.page.locator("h1").first().waitFor()
          await visit.page.waitForTimeout(700)
          await visit.page.waitForFunction(() => document.querySelector("[aria-busy]") === null)
          const file = join(resolve(folder), `${name} ${width} ${theme}.png`)
          await visit.page.screenshot({ path: file, fullPage: true })
        }
        await visit.close()
      }
    await browser.close()
  })
})

if (folder === "") {
  console.log("usage: node test/browser/screens.ts FOLDER [NAME …]")
  process.exitCode = 2
} else await Effect.runPromise(Effect.scoped(program).pipe(Effect.provide(NodeServices.layer)) as Effect.Effect<void>)
