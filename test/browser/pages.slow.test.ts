// The pages in a real browser, over whole facilitators: a payment made from the page and seen live, every view at three
// widths in both themes, signing in and out, operator actions, a server that stops and comes back, and a hostile
// listing.
import { NodeServices } from "@effect/platform-node"
import { Keypair } from "@stellar/stellar-sdk"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { createHash } from "node:crypto"
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { DatabaseSource } from "../../kernel/database/DatabaseSource.ts"
import { sourceLayer } from "../support/databases.ts"
import { declaration } from "../support/declaration.ts"
import { type Facilitator, type FacilitatorOptions, startFacilitator } from "../support/facilitator.ts"
import { freePort } from "../support/freePort.ts"
import { chromiumPath, howToGetOne } from "./chromium.ts"
import { launch, type Read, Visit } from "./Visit.ts"

const scope = Scope.makeUnsafe()
let browser: Browser
const start = (options: FacilitatorOptions = {}): Promise<Facilitator> =>
  Effect.runPromise(startFacilitator(options).pipe(Scope.provide(scope), Effect.provide(NodeServices.layer)))

/** A database that outlives the facilitators over it. */
const openDatabase = Effect.flatMap(
  Layer.build(sourceLayer("pglite")),
  (services) => Context.get(services, DatabaseSource).open
)

const ops = "operator-secret-012345"
const shop = "shop-secret-0123456789"

/** A settled payment of USDC for a resource with this description. */
const pay = (facilitator: Facilitator, url: string, description: string, key?: string, to?: string) =>
  Effect.runPromise(
    Effect.gen(function* () {
      const payer = yield* facilitator.account()
      const payTo = to ?? (yield* facilitator.account()).publicKey()
      const { body } = yield* facilitator.payment({
        payer,
        payTo,
        amount: 12_345n,
        resourceUrl: url,
        extensions: { catalog: declaration },
        tamper: { payload: (honest) => ({ ...honest, resource: { ...honest.resource, description } }) }
      })
      const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` }
      const { json } = yield* facilitator.settle(body, headers)
      expect(json).toMatchObject({ success: true })
    })
  )

const views: ReadonlyArray<readonly [name: string, path: string, shows: string]> = [
  ["visitor", "/", "in all"],
  ["seller", "/seller", "Why am I not listed?"],
  ["overview", "/dashboard", "Fee budget today"],
  ["live", "/dashboard#live", "USDC"],
  ["settlements", "/dashboard#settlements", "More filters"],
  ["refusals", "/dashboard#refusals", "Refused payments"],
  ["participants", "/dashboard#participants", "Buyers"],
  ["listings", "/dashboard#resources", "Last paid"],
  ["search", "/dashboard#search", "Searches and payments"],
  ["operation", "/dashboard#standing", "actors run."],
  ["status", "/status", "No new ledger was observed"],
  ["interface", "/docs", "/verify"]
]
const reads: ReadonlyArray<Read> = [390, 768, 1_024, 1_440].flatMap((width) =>
  (["light", "dark"] as const).map((theme) => ({ width, theme }))
)

describe.skipIf(chromiumPath() === undefined)(
  `the pages in a browser${chromiumPath() === undefined ? ` (${howToGetOne})` : ""}`,
  () => {
    let facilitator: Facilitator
    beforeAll(async () => {
      browser = await launch()
      facilitator = await start()
      for (let made = 0; made < 3; made++) await pay(facilitator, `http://127.0.0.1:9/page-${made}`, "A page")
      await Effect.runPromise(
        facilitator.sql`insert into dashboard_incidents select 'ledger_stalled', date_trunc('minute', now())
          - interval '30 minutes' + minute * interval '1 minute' from generate_series(0, 2) minute`
      )
    }, 240_000)
    afterAll(async () => {
      await browser.close()
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }, 240_000)

    it("make a payment, show it live, and show its history", async () => {
      const dashboard = await Visit.open(browser, facilitator.url)
      await dashboard.go("/dashboard#live")
      await dashboard.page.getByText("live", { exact: true }).waitFor()
      await dashboard.page.getByRole("row").nth(3).waitFor()
      const shown = await dashboard.page.getByRole("row").count()
      const visitor = await Visit.open(browser, facilitator.url)
      await visitor.go("/")
      await visitor.page.getByRole("button", { name: "Make a payment" }).click()
      await dashboard.page.getByRole("row").nth(shown).waitFor()
      await visitor.page.getByText("Settled.").waitFor()
      expect(await visitor.page.locator(".steps > li.done").count()).toBe(5)
      await visitor.picture("a payment")
      await dashboard.page.locator("tbody tr").first().getByText("settled").waitFor()
      await dashboard.page.locator("tbody tr").first().locator('a[href*="#settlement/"]').first().click()
      await dashboard.page.getByText("Delivered to the caller").waitFor()
      // Each step from the request on has its time.
      expect(await dashboard.page.locator(".steps > li time").count()).toBeGreaterThanOrEqual(7)
      expect(await dashboard.axe()).toEqual([])
      await dashboard.picture("one settlement")
      expect([...dashboard.issues, ...visitor.issues]).toEqual([])
      await dashboard.close()
      await visitor.close()
    }, 240_000)

    it.each(reads)(
      "hold at $width pixels in the $theme theme, for a screen reader too",
      async (read) => {
        const visit = await Visit.open(browser, facilitator.url, read)
        const { json } = await Effect.runPromise(facilitator.ask("/analytics/v1/settlements?limit=1"))
        const life = `/dashboard#settlement/${json.items[0].transaction_hash}`
        const { json: listed } = await Effect.runPromise(facilitator.ask("/analytics/v1/resources?limit=1"))
        const listing = `/dashboard#resource/${listed.items[0].id}`
        const { origin, payer, pay_to: payTo, asset, resource_url: url } = json.items[0]
        const single = [
          ["a settlement", life, "Delivered to the caller"],
          ["a listing", listing, "It was listed"],
          ["a payer", `/dashboard#account/${payer}`, "As payer"],
          ["a recipient", `/dashboard#account/${payTo}`, "Resources sold"],
          ["an asset", `/dashboard#asset/${asset}`, "decimals"],
          ["an origin", `/dashboard#origin/${encodeURIComponent(origin)}`, "Listings"],
          ["a key", "/dashboard#key/anonymous", "Limits today"],
          ["a public listing", `/resource?url=${encodeURIComponent(url)}&type=http`, "Badges"],
          ["a public recipient", `/payee?account=${payTo}`, "Resources for sale"],
          ["payment channels", "/dashboard#channels", "No payment channels yet."],
          ["deliveries", "/dashboard#deliveries", "No deliveries yet."],
          ["nothing found", `/dashboard#settlement/${"0".repeat(64)}`, "Unknown settlement"]
        ] as const
        for (const [name, path, shows] of [...views, ...single]) {
          await visit.go("/health")
          await visit.go(path)
          await visit.page.getByText(shows).first().waitFor()
          await visit.page.waitForFunction(() => document.querySelector("[aria-busy]") === null)
          expect([name, await visit.axe()]).toEqual([name, []])
          const wide = await visit.page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
          expect([name, name === "interface" || wide <= 0]).toEqual([name, true])
          const isHidden = await visit.page.evaluate(() => {
            const tab = document.querySelector(".tabs [aria-current]")?.getBoundingClientRect()
            return tab !== undefined && (tab.left < 0 || tab.right > innerWidth)
          })
          expect([name, isHidden]).toEqual([name, false])
          const overrun = await visit.page.evaluate(() =>
            [...document.querySelectorAll("td, th")]
              .filter((cell) => cell.checkVisibility() && cell.closest(".cards thead") === null)
              .filter((cell) => cell.scrollWidth > cell.clientWidth + 1)
              .map(({ textContent }) => textContent)
          )
          expect([name, overrun]).toEqual([name, []])
          // Above a tablet's width no column is hidden.
          const hidden = await visit.page.evaluate(() =>
            [...document.querySelectorAll("th")]
              .filter((head) => head.closest("details:not([open])") === null && !head.checkVisibility())
              .map(({ textContent }) => textContent)
          )
          expect([name, read.width < 1_000 ? [] : hidden]).toEqual([name, []])
          // On a phone a list has two lines a row, and a finger finds its links.
          const small = await visit.page.evaluate(() =>
            [...document.querySelectorAll(".cards a, summary, nav a")]
              .filter((link) => link.checkVisibility() && link.closest(".swagger-ui") === null)
              .filter((link) => link.getBoundingClientRect().height < 24)
              .map(({ textContent }) => textContent)
          )
          expect([name, read.width > 400 ? [] : small]).toEqual([name, []])
          // A table of cards fits its frame: no column is cut at its edge.
          const cut = await visit.page.evaluate(() =>
            [...document.querySelectorAll<HTMLElement>(".scroll.cards")]
              .filter((frame) => frame.checkVisibility() && frame.scrollWidth > frame.clientWidth + 1)
              .map((frame) => frame.ariaLabel)
          )
          expect([name, cut]).toEqual([name, []])
          await visit.picture(`${name} ${read.width} ${read.theme}`)
        }
        expect(visit.issues).toEqual([])
        await visit.close()
      },
      240_000
    )

    it("show the routes' figures, filter a list, and save it as CSV", async () => {
      const visit = await Visit.open(browser, facilitator.url)
      await visit.go("/dashboard#settlements")
      const { json } = await Effect.runPromise(facilitator.ask("/analytics/v1/settlements?limit=50"))
      const rows = visit.page.locator("tbody tr")
      const shows = (count: number) => visit.page.getByText(`${count} shown`, { exact: true }).waitFor()
      await shows(json.items.length)
      expect(await rows.count()).toBe(json.items.length)
      await visit.page.getByText("More filters").click()
      await visit.page.getByLabel("Payer").fill(json.items[0].payer)
      await visit.page.keyboard.press("Enter")
      await shows(1)
      // The filter is in the address: it survives a reload, and back removes it.
      expect(visit.page.url()).toContain(`payer=${json.items[0].payer}`)
      await visit.page.reload()
      await shows(1)
      await visit.page.goBack()
      await shows(json.items.length)
      await visit.page.goForward()
      await visit.page.getByLabel("State").selectOption("failed")
      await visit.page.getByText("No settlement matches these filters.").waitFor()
      await visit.page.getByLabel("State").selectOption("")
      await shows(1)
      const [saved] = await Promise.all([
        visit.page.waitForEvent("download"),
        visit.page.getByRole("button", { name: "CSV of settlements" }).click()
      ])
      expect(saved.suggestedFilename()).toBe("settlements.csv")
      const lines = readFileSync((await saved.path())!, "utf8")
        .trim()
        .split("\r\n")
      expect(lines).toHaveLength(2)
      expect(lines[1]).toContain(json.items[0].transaction_hash)
      const { json: all } = await Effect.runPromise(facilitator.ask("/analytics/v1/overview?days=30"))
      await visit.go("/dashboard#participants")
      await visit.page
        .getByText(`${all.organic.successful_transactions} of ${all.successful_transactions} settled`, { exact: true })
        .waitFor()
      await visit.go("/")
      await visit.page.getByText("Price history").first().click()
      const prices = visit.page.getByRole("region", { name: "Prices over time, table" })
      await prices.getByText("USDC").waitFor()
      expect(await prices.getByText("Now", { exact: true }).count()).toBe(1)
      expect(await visit.axe()).toEqual([])
      await visit.picture("prices over time")
      expect(visit.issues).toEqual([])
      await visit.close()
    }, 240_000)

    it("report a lost facilitator, keep the last answer, and recover", async () => {
      const visit = await Visit.open(browser, facilitator.url)
      await visit.go("/dashboard")
      await visit.page.getByText("Volume in USDC").waitFor()
      await visit.context.setOffline(true)
      await visit.page.getByText("Showing the last response.").first().waitFor()
      expect(await visit.page.getByText("Volume in USDC").isVisible()).toBe(true)
      await visit.context.setOffline(false)
      await visit.page.getByText("Showing the last response.").first().waitFor({ state: "hidden" })
      await visit.close()
    }, 240_000)

    it("recover after the server restarts, the live view as well", async () => {
      const opened = await Effect.runPromise(openDatabase.pipe(Scope.provide(scope)))
      const options: FacilitatorOptions = {
        database: Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) }),
        ledgerUrl: facilitator.ledgerUrl,
        channels: 2,
        environment: { SPONSOR_SECRET: Keypair.random().secret() },
        set: [
          `server.port=${await freePort()}`,
          "plugins=[x402-exact,catalog,search-lexical,analytics,dashboard]",
          "catalog_security.probe_origins=false"
        ]
      }
      const before = await start(options)
      await pay(before, "http://127.0.0.1:9/before", "Sold before")
      const [overview, live] = [await Visit.open(browser, before.url), await Visit.open(browser, before.url)]
      await overview.go("/dashboard")
      await overview.page.getByText("Volume in USDC").waitFor()
      // A young facilitator's overview begins with its first settlement.
      await overview.page.waitForFunction(
        () => document.querySelector<HTMLSelectElement>('select[aria-label="Range"]')?.value === "24h"
      )
      await live.go("/dashboard#live")
      const rows = live.page.locator("tbody tr")
      await live.page.getByText("live", { exact: true }).waitFor()
      await rows.filter({ hasText: "settled" }).waitFor()
      await Effect.runPromise(before.stop)
      await overview.page.getByText("Showing the last response.").first().waitFor()
      await live.page.getByText("Showing the last known settlements.").waitFor()
      expect(await rows.count()).toBe(1)
      const after = await start(options)
      expect(after.url).toBe(before.url)
      await overview.page.getByText("Showing the last response.").first().waitFor({ state: "hidden" })
      await live.page.getByText("live", { exact: true }).waitFor()
      // Answered and refused: the browser gives the stream up, and the page does not.
      await live.page.route("**/analytics/v1/events*", (route) => route.fulfill({ status: 503 }))
      await live.go("/dashboard")
      await live.go("/dashboard#live")
      await live.page.getByText("too many live views are open").waitFor()
      await live.page.unroute("**/analytics/v1/events*")
      await pay(after, "http://127.0.0.1:9/after", "Sold after")
      await rows.filter({ hasText: "settled" }).nth(1).waitFor()
      await overview.page.getByText(/^2 settlements in 30 days/).waitFor()
      expect([...overview.issues, ...live.issues]).toEqual([])
      await overview.close()
      await live.close()
      await Effect.runPromise(after.stop)
    }, 240_000)

    it("keep a hostile listing as text: markup, direction marks, a formula", async () => {
      const markup = `<script>document.title="owned"</script><img src=x onerror=document.title="owned">`
      const name = `${markup}${"\u202e\u2066".repeat(2_000)}=1+1`
      await pay(facilitator, "http://127.0.0.1:9/hostile", name.slice(0, 3_900))
      const visit = await Visit.open(browser, facilitator.url)
      await visit.go("/")
      await visit.page.getByText("127.0.0.1:9/hostile").first().waitFor()
      await visit.page.getByText('<img src=x onerror=document.title="owned">').first().waitFor()
      expect(await visit.page.locator("main script, main img").count()).toBe(0)
      expect(await visit.page.title()).toBe("Tollkeeper")
      expect(visit.issues).toEqual([])
      await visit.picture("a hostile listing")
      await visit.close()
    }, 240_000)

    it("show an address by its ends, and copy the whole of it", async () => {
      const visit = await Visit.open(browser, facilitator.url)
      await visit.context.grantPermissions(["clipboard-read", "clipboard-write"])
      await visit.go("/dashboard#settlements")
      const name = visit.page.locator("tbody .thing").first()
      const whole = await name.getByRole("link").first().getAttribute("title")
      expect(await name.getByRole("link").first().innerText()).toBe(`${whole!.slice(0, 6)}…${whole!.slice(-6)}`)
      await name.hover()
      await name.getByRole("button", { name: "Copy address" }).click()
      await name.getByRole("button", { name: "Copied" }).waitFor()
      expect(await visit.page.evaluate(() => navigator.clipboard.readText())).toBe(whole)
      expect(visit.issues).toEqual([])
      await visit.close()
    }, 120_000)

    it("plot every day of the window, those without a settlement too", async () => {
      const visit = await Visit.open(browser, facilitator.url, { width: 820, theme: "dark" })
      await visit.go("/dashboard#overview?range=30d")
      const legend = visit.page.locator(".u-legend")
      await legend.getByText("(UTC)").waitFor()
      // Above the first bar of thirty days and today's, at the left and right ends of the plot.
      const over = visit.page.locator(".u-over")
      const { height, width } = (await over.boundingBox())!
      const pointed = async (x: number) => {
        await over.hover({ position: { x, y: height / 2 } })
        return (await legend.locator(".u-value").allInnerTexts()).join(" ")
      }
      const { json } = await Effect.runPromise(facilitator.ask("/analytics/v1/pulse"))
      const day = (millis: number) =>
        new Intl.DateTimeFormat("en-US", { dateStyle: "medium", timeZone: "UTC" }).format(millis)
      const last = json.series.at(-1)
      // Before the first settlement there is no figure, as opposed to zero.
      expect(await pointed(1)).toMatch(/\(UTC\) no record$/)
      const moved = (Number(last.amount) / 1e7).toString()
      expect(await pointed(width - 20)).toBe(`${day(Date.parse(last.at))} (UTC) ${moved}`)
      // Dragging over the bars zooms in, and the address keeps it.
      const box = (await over.boundingBox())!
      await visit.page.mouse.move(box.x + width - 60, box.y + height / 2)
      await visit.page.mouse.down()
      await visit.page.mouse.move(box.x + width - 5, box.y + height / 2, { steps: 4 })
      await visit.page.mouse.up()
      await visit.page.getByRole("button", { name: "Zoom out" }).waitFor()
      expect(visit.page.url()).toMatch(/from=.*to=/)
      expect(visit.issues).toEqual([])
      await visit.close()
    }, 120_000)

    it("show times in the viewer's own zone and in UTC", async () => {
      const zone = "Asia/Kathmandu"
      const visit = await Visit.open(browser, facilitator.url, { width: 1_280, theme: "light", zone })
      await visit.go("/dashboard#settlements")
      const time = visit.page.locator("tbody time").first()
      const at = await time.getAttribute("datetime")
      const own = new Intl.DateTimeFormat("en-US", {
        day: "numeric",
        month: "short",
        hour: "2-digit",
        minute: "2-digit",
        second: "2-digit",
        hourCycle: "h23",
        timeZone: zone
      })
      expect(await time.innerText()).toBe(own.format(new Date(at!)))
      expect(await time.getAttribute("data-more")).toMatch(
        new RegExp(`^${at!.slice(0, 19).replace("T", " ")} UTC, .* ago$`)
      )
      await visit.close()
    }, 120_000)

    it.each(["light", "dark"] as const)(
      "try the interface in the %s theme: make, verify and settle a payment",
      async (theme) => {
        const visit = await Visit.open(browser, facilitator.url, { width: 1_280, theme })
        const { page } = visit
        await visit.go("/docs")
        const answerOf = async (path: string, body?: string) => {
          const block = page.locator(".opblock").filter({ has: page.locator(`[data-path="${path}"]`) })
          await block.locator(".opblock-summary").first().click()
          if (body !== undefined) await block.locator("textarea").first().fill(body)
          await block.getByRole("button", { name: "Execute" }).click()
          const answer = block.locator(".live-responses-table")
          expect([path, await answer.locator("tbody td.response-col_status").first().innerText()]).toEqual([
            path,
            expect.stringMatching(/^200/)
          ])
          return answer.locator("pre").first().innerText()
        }
        expect(JSON.parse(await answerOf("/supported")).kinds[0].x402Version).toBe(2)
        const made = await answerOf("/demo/payments")
        expect(JSON.parse(await answerOf("/verify", made)).isValid).toBe(true)
        expect(JSON.parse(await answerOf("/settle", made)).success).toBe(true)
        expect(await visit.axe()).toEqual([])
        await visit.picture(`the interface tried ${theme}`)
        expect(visit.issues).toEqual([])
        await visit.close()
      },
      240_000
    )

    it("open by the keyboard alone", async () => {
      const visit = await Visit.open(browser, facilitator.url)
      await visit.go("/dashboard")
      await visit.page.getByText("Capacity", { exact: true }).waitFor()
      await visit.page.keyboard.press("Tab")
      expect(await visit.page.evaluate(() => document.activeElement?.textContent)).toBe("Skip to the content")
      for (const label of [
        "Tollkeeper",
        "Catalog",
        "Selling",
        "Dashboard",
        "Receipts",
        "API",
        "Status",
        "",
        "Overview",
        "Live"
      ]) {
        await visit.page.keyboard.press("Tab")
        expect(await visit.page.evaluate(() => document.activeElement?.textContent)).toBe(label)
      }
      await visit.page.keyboard.press("Enter")
      await visit.page.getByRole("heading", { name: "Live settlements" }).waitFor()
      await visit.close()
    }, 240_000)

    it("lead by the keyboard alone from a search to a settlement, its payer, a filtered list and its CSV", async () => {
      const visit = await Visit.open(browser, facilitator.url)
      const { page } = visit
      const { json } = await Effect.runPromise(facilitator.ask("/analytics/v1/settlements?limit=1"))
      const { payer, transaction_hash: hash } = json.items[0]
      const enter = async (words: string, kind: string) => {
        await page.keyboard.press("/")
        await page.keyboard.type(words)
        await page.getByRole("option").filter({ hasText: kind }).first().waitFor()
        expect(await visit.axe()).toEqual([])
        await page.keyboard.press("Enter")
      }
      /** Presses Tab until this selector has the focus. */
      const reach = async (selector: string, step = "Tab") => {
        for (let steps = 0; steps < 80; steps++) {
          if (await page.evaluate((wanted) => document.activeElement?.matches(wanted) === true, selector)) return
          await page.keyboard.press(step)
        }
        throw new Error(`no step leads to ${selector}`)
      }
      await visit.go("/dashboard")
      await page.getByText("Capacity", { exact: true }).waitFor()
      await enter(hash.slice(0, 12), "Settlement")
      await page.getByText("Delivered to the caller").waitFor()
      expect(await page.title()).toBe(`Settlement ${hash.slice(0, 6)}…${hash.slice(-6)} · Tollkeeper`)
      await reach(`a[href$="#account/${payer}"]`)
      await page.keyboard.press("Enter")
      await page.getByRole("heading", { name: "As payer" }).waitFor()
      await reach('select[aria-label="State"]')
      await page.keyboard.press("ArrowDown")
      await page.waitForURL(/status=success/)
      await visit.picture("found by the keyboard")
      const state = page.getByLabel("State", { exact: true })
      await page.reload()
      await state.waitFor()
      expect(await state.inputValue()).toBe("success")
      await page.goBack()
      await page.waitForFunction(() => !location.hash.includes("status="))
      await page.goForward()
      await page.waitForURL(/status=success/)
      await reach('select[aria-label="State"]')
      await reach("button.small", "Shift+Tab")
      const [saved] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Enter")])
      const [, ...lines] = readFileSync((await saved.path())!, "utf8")
        .trim()
        .split("\r\n")
      expect(lines).toHaveLength(1)
      expect(lines[0]).toContain(hash)
      for (const [words, kind] of [
        [payer, "Account"],
        ["127.0.0.1:9/page-1", "Listing"],
        ["anonymous", "Key"]
      ] as const)
        await enter(words, kind)
      expect(visit.issues).toEqual([])
      await visit.close()
    }, 240_000)

    it("find what is pasted, before any result is shown, and say when the search fails", async () => {
      const visit = await Visit.open(browser, facilitator.url)
      const { page } = visit
      const { json } = await Effect.runPromise(facilitator.ask("/analytics/v1/settlements?limit=1"))
      const { payer, transaction_hash: hash } = json.items[0]
      const box = page.getByRole("combobox", { name: "Find" })
      const pages = { [`settlement/${hash}`]: "Delivered to the caller", [`account/${payer}`]: "As payer" }
      for (const [pasted, leads] of [
        [` "0x${hash.toUpperCase()}", `, `settlement/${hash}`],
        [`https://stellar.expert/explorer/testnet/tx/${hash}`, `settlement/${hash}`],
        [`${payer.slice(0, 6)}…${payer.slice(-6)}`, `account/${payer}`],
        [payer.toLowerCase(), `account/${payer}`]
      ] as const) {
        await visit.go("/dashboard#settlements")
        // Results of earlier words are shown, and do not answer the later ones.
        await box.fill("127.0.0.1")
        await page.getByRole("option").first().waitFor()
        await box.fill(pasted)
        await box.press("Enter")
        await page.getByText(pages[leads]!).first().waitFor()
        expect([pasted, page.url().endsWith(`#${leads}`)]).toEqual([pasted, true])
      }
      await page.route("**/analytics/v1/find*", (route) =>
        route.fulfill({ status: 503, json: { error: "temporarily_unavailable" } })
      )
      await box.fill("page")
      await page.getByText(/The search is incomplete[.] The facilitator is busy.* Request [0-9a-f]{32}[.]/).waitFor()
      await page.unroute("**/analytics/v1/find*")
      expect(visit.issues).toEqual([])
      await visit.close()
    }, 240_000)

    it("skip to the content of a filtered list without leaving it", async () => {
      const visit = await Visit.open(browser, facilitator.url)
      await visit.go("/dashboard#settlements?status=failed")
      await visit.page.getByText("No settlement matches these filters.").waitFor()
      await visit.page.keyboard.press("Tab")
      await visit.page.keyboard.press("Enter")
      expect(await visit.page.evaluate(() => document.activeElement?.id)).toBe("main")
      expect(visit.page.url()).toContain("#settlements?status=failed")
      await visit.close()
    }, 120_000)

    it("keep a search of the catalog through a reload and back", async () => {
      const visit = await Visit.open(browser, facilitator.url)
      const { page } = visit
      await visit.go("/")
      const words = page.getByRole("searchbox", { name: "Search" })
      await words.fill("page")
      await page.keyboard.press("Enter")
      await page.waitForURL(/#[?]query=page$/)
      await page.getByLabel("Kind").selectOption("http")
      await page.waitForURL(/type=http/)
      await page.reload()
      await page.getByRole("link", { name: "page-0" }).first().waitFor()
      expect(await words.inputValue()).toBe("page")
      await page.goBack()
      await page.waitForURL(/#[?]query=page$/)
      expect(await page.getByLabel("Kind").inputValue()).toBe("")
      await page.goBack()
      await page.waitForFunction(() => location.hash === "")
      expect(await words.inputValue()).toBe("")
      expect(visit.issues).toEqual([])
      await visit.close()
    }, 120_000)

    it("show a seller its sales by key, and a URL's listing status", async () => {
      const keyed = await start({
        channels: 2,
        environment: {
          FACILITATOR_API_KEYS: `shop:${shop},other:other-secret-0123456789`,
          OPERATOR_API_KEYS: `ops:${ops}`
        }
      })
      await pay(keyed, "http://127.0.0.1:9/sold", "What the shop sells", shop)
      await pay(keyed, "http://127.0.0.1:9/of-another", "What another sells", "other-secret-0123456789")
      const visit = await Visit.open(browser, keyed.url)
      const { page } = visit
      await visit.go("/seller")
      await page.getByLabel("Key", { exact: true }).fill(shop)
      await page.getByRole("button", { name: "Sign in" }).click()
      await page.getByText("caller shop").waitFor()
      const sales = page.getByRole("region", { name: "Sales, table" }).locator("tbody tr")
      await sales.first().waitFor()
      expect(await sales.count()).toBe(1)
      await page.getByLabel("URL of your resource").fill("http://127.0.0.1:9/sold")
      await page.getByRole("button", { name: "Explain" }).click()
      await page.getByText("Let your origin name the account that is paid").waitFor()
      await page.getByLabel("URL of your resource").fill("http://127.0.0.1:9/never")
      await page.getByRole("button", { name: "Explain" }).click()
      await page.getByText("Nothing was ever observed of this URL.").waitFor()
      expect(await visit.axe()).toEqual([])
      await visit.picture("a seller")
      // A caller can open a settlement's page too, with the data of the reports.
      await visit.go("/dashboard#settlements")
      await page.locator("tbody a.when").first().click()
      const payment = page.getByRole("region", { name: "Payment" })
      await payment.getByText("Recipient", { exact: true }).waitFor()
      expect(await payment.innerText()).toContain("0.0012345 USDC")
      expect(await page.getByText("Timeline").count()).toBe(0)
      expect(await visit.axe()).toEqual([])
      await visit.picture("a settlement of a caller")
      expect(visit.issues).toEqual([])
      await visit.close()
    }, 240_000)

    it.each([1_280, 390])(
      "let a seller sign in at %i pixels with the account that is paid, and show what is its own",
      async (width) => {
        const keyed = await start({ channels: 2, environment: { FACILITATOR_API_KEYS: `shop:${shop}` } })
        const seller = await Effect.runPromise(keyed.account())
        await pay(keyed, "http://127.0.0.1:9/mine", "What the account sells", shop, seller.publicKey())
        await pay(keyed, "http://127.0.0.1:9/theirs", "What another sells", shop)
        const visit = await Visit.open(browser, keyed.url, { width, theme: width === 390 ? "dark" : "light" })
        const { page } = visit
        await visit.go("/seller")
        await page.getByLabel("Account that is paid").fill("GNOBODY")
        await page.getByRole("button", { name: "Continue" }).click()
        await page.getByText("an account (G…), or a contract account (C…), is required").waitFor()
        await page.getByLabel("Account that is paid").fill(seller.publicKey())
        await page.getByRole("button", { name: "Continue" }).click()
        const sentence = await page.locator("pre").first().innerText()
        expect(await page.locator("pre").nth(1).innerText()).toBe(
          `stellar message sign '${sentence}' --sign-with-key NAME`
        )
        await page.getByLabel("Signature").fill(Buffer.alloc(64).toString("base64"))
        await page.locator("form").getByRole("button", { name: "Sign in" }).first().click()
        await page.getByText("The signature is not this account's").waitFor()
        expect(await visit.axe()).toEqual([])
        await visit.picture(`signing in with an account ${width}`)
        const digest = createHash("sha256").update(`Stellar Signed Message:\n${sentence}`).digest()
        await page.getByLabel("Signature").fill(Buffer.from(seller.sign(digest)).toString("base64"))
        await page.locator("form").getByRole("button", { name: "Sign in" }).first().click()
        await page.getByText("Signed in as an account").waitFor()
        const sales = page.getByRole("region", { name: "Your sales, table" }).locator("tbody tr")
        await sales.first().waitFor()
        expect(await sales.count()).toBe(1)
        await page.getByRole("heading", { name: "127.0.0.1:9/mine" }).waitFor()
        expect(await page.getByText("/theirs").count()).toBe(0)
        expect(await visit.axe()).toEqual([])
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
        expect(wide).toBeLessThanOrEqual(0)
        await visit.picture(`a seller's account ${width}`)
        await page.getByRole("button", { name: "Sign out", exact: true }).click()
        await page.getByRole("button", { name: "Continue" }).waitFor()
        expect(visit.issues).toEqual([])
        await visit.close()
      },
      240_000
    )

    it("sign in and out, and record each action with its reason", async () => {
      const folder = mkdtempSync(join(tmpdir(), "tollkeeper-browser-"))
      const [old, next] = [Keypair.random(), Keypair.random()]
      const [firstChannels, nextChannels] = [1, 2].map(() => [1, 2, 3].map(() => Keypair.random()))
      const seeds = (keys: ReadonlyArray<Keypair> = []) => keys.map((key) => key.secret()).join()
      writeFileSync(join(folder, "sponsor"), old.secret())
      writeFileSync(join(folder, "channels"), seeds(firstChannels))
      const keyed = await start({
        channels: 2,
        set: ["networks.ledger:testnet.channel_secrets_env=CHANNELS"],
        environment: {
          FACILITATOR_API_KEYS: `shop:${shop}`,
          OPERATOR_API_KEYS: `ops:${ops}`,
          SPONSOR_SECRET_FILE: join(folder, "sponsor"),
          CHANNELS_FILE: join(folder, "channels")
        }
      })
      const headers = { authorization: `Bearer ${shop}` }
      await pay(keyed, "http://127.0.0.1:9/listed", "A listing", shop)
      const visit = await Visit.open(browser, keyed.url)
      const { page } = visit
      await visit.go("/dashboard")
      await page.getByLabel("Key", { exact: true }).fill("unknown-secret-0123456")
      await page.getByRole("button", { name: "Sign in" }).click()
      await page.getByText("This key is not listed here.").waitFor()
      await visit.picture("signing in")
      expect(await visit.axe()).toEqual([])
      await page.getByLabel("Key", { exact: true }).fill(ops)
      await page.getByRole("button", { name: "Sign in" }).click()
      await page.getByText("operator ops").waitFor()

      // A payment that the ledger never answers is followed until the timeout.
      await Effect.runPromise(keyed.ledger.setFaults([{ drops: () => true }]))
      const silent = pay(keyed, "http://127.0.0.1:9/silent", "Never answered", shop).catch(() => undefined)
      await visit.go("/dashboard#standing")
      const unended = page.getByRole("region", { name: "Pending and unresolved settlements, table" })
      await unended.locator('a[href*="#settlement/"]').first().click()
      await page.getByText("followed until the ledger decides").waitFor()
      await page.getByRole("button", { name: "Give up", exact: true }).first().click()
      await page.getByRole("dialog").getByLabel("Reason").fill("the ledger is silent")
      expect(await visit.axe()).toEqual([])
      await visit.picture("giving up")
      await page.getByRole("dialog").getByRole("button", { name: "Give up" }).click()
      await page.locator(".hero").getByText("unresolved", { exact: true }).waitFor()
      await silent
      await Effect.runPromise(keyed.ledger.setFaults([]))

      await visit.go("/dashboard#standing")
      await page.getByRole("button", { name: "Resize", exact: true }).first().click()
      await page.getByLabel("Channels", { exact: true }).fill("3")
      await page.getByLabel("Reason, kept in the audit log").filter({ visible: true }).fill("more capacity")
      expect(await visit.axe()).toEqual([])
      await visit.picture("a move")
      await page.getByRole("dialog").getByRole("button", { name: "Resize" }).click()
      await page.getByText("more capacity").waitFor()
      await page.getByText("Nothing to rotate to: the sponsor is still").waitFor()
      writeFileSync(join(folder, "sponsor"), `${next.secret()},${old.secret()}`)
      await page.getByRole("button", { name: "Refresh" }).click()
      await page.getByRole("button", { name: "Rotate the sponsor" }).first().click()
      const rotation = page.getByRole("dialog")
      await rotation.getByText(`are paid for by ${next.publicKey()}, in place of ${old.publicKey()}`).waitFor()
      await rotation.getByLabel("Reason, kept in the audit log").fill("a year has passed")
      expect(await visit.axe()).toEqual([])
      await visit.picture("a rotation")
      await rotation.getByRole("button", { name: "Rotate the sponsor" }).click()
      await page.getByText("a year has passed").waitFor()
      expect((await Effect.runPromise(keyed.ask("/supported", { headers }))).json.kinds[0].signer).toBe(
        next.publicKey()
      )
      writeFileSync(join(folder, "channels"), `${seeds(nextChannels)};${seeds(firstChannels)}`)
      await page.getByRole("button", { name: "Refresh" }).click()
      await page.getByRole("button", { name: "Rotate the channels" }).first().click()
      await rotation.getByText("Every channel is replaced").waitFor()
      await rotation.getByLabel("Reason, kept in the audit log").fill("the machine was lost")
      expect(await visit.axe()).toEqual([])
      await visit.picture("a rotation of channels")
      await rotation.getByRole("button", { name: "Rotate the channels" }).click()
      await page.getByText("the machine was lost").waitFor()
      // The new ones are created, leased, and pay; the previous ones are no longer leased.
      const channels = page.locator('[aria-label="Channels, table"] tr')
      for (const key of nextChannels ?? [])
        await channels
          .filter({ has: page.locator(`a[title="${key.publicKey()}"]`) })
          .getByText("ready", { exact: true })
          .waitFor({ state: "attached" })
      await pay(keyed, "http://127.0.0.1:9/rotated", "Paid by new channels", shop)
      const used = await Effect.runPromise(keyed.sql<{ channel: string }>`select channel from kernel_settlements
        where resource_url = 'http://127.0.0.1:9/rotated'`)
      expect(nextChannels?.map((key) => key.publicKey())).toContain(used[0]!.channel)

      await Effect.runPromise(keyed.ask("/discovery/search?query=zebra%20maps"))
      const isKept = async (): Promise<boolean> => {
        const path = "/analytics/v1/search/missed"
        const { json } = await Effect.runPromise(keyed.ask(path, { headers: { authorization: `Bearer ${ops}` } }))
        return json.items.length > 0
      }
      while (!(await isKept())) await page.waitForTimeout(100)
      await visit.go("/dashboard#search")
      await page.getByText("zebra maps").waitFor()
      expect(await visit.axe()).toEqual([])
      await visit.picture("search of an operator")

      await visit.go("/dashboard#resources")
      await page.getByRole("link", { name: "127.0.0.1:9/listed" }).first().click()
      for (const [move, state] of [
        ["Quarantine", "quarantined"],
        ["Restore", "active"]
      ] as const) {
        await page.getByRole("button", { name: move, exact: true }).first().click()
        await page.getByRole("dialog").getByLabel("Reason").fill(`to ${move.toLowerCase()}`)
        await page.getByRole("dialog").getByRole("button", { name: move }).click()
        await page.locator(".hero").getByText(state, { exact: true }).waitFor()
      }
      await page.getByRole("button", { name: "Sign out" }).click()
      await page.getByRole("button", { name: "Sign in" }).waitFor()
      expect(visit.issues).toEqual([])
      await visit.close()
    }, 240_000)
  }
)
