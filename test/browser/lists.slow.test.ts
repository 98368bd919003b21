// Lists in a real browser: filters that the address keeps through reload and back on every list, and scrolling through
// ten thousand rows while only the rows near the screen are in the document.
import { NodeServices } from "@effect/platform-node"
import { Effect, Exit, Scope } from "effect"
import { readFileSync } from "node:fs"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { fillRollups, fillSettlements } from "../bench/viewsFill.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { chromiumPath, howToGetOne } from "./chromium.ts"
import { isTimed, report } from "./timed.ts"
import { launch, Visit } from "./Visit.ts"

const scope = Scope.makeUnsafe()
let browser: Browser
let facilitator: Facilitator

const settlements = 10_000
const size = { settlements, buyers: 300, sellers: 60, resources: 0, historyDays: 20 }
const attempts = 3
/** Rows in the document while ten thousand are listed. */
const rowsMax = 400

/** Scrolls to the end of the page by wheel, a screen a step, and back; tasks of more than 50 ms on the way. */
const scrolled = async ({ page }: Visit): Promise<{ long: ReadonlyArray<number>; rows: number }> => {
  await page.evaluate(() => {
    const long: Array<number> = []
    Object.assign(globalThis, { long })
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) long.push(duration)
    }).observe({ type: "longtask" })
  })
  await page.mouse.move(600, 500)
  let rows = 0
  const height = await page.evaluate(() => document.documentElement.scrollHeight)
  for (const way of [1, -1])
    for (let at = 0; at < height; at += 6_000) {
      await page.mouse.wheel(0, way * 6_000)
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))
      rows = Math.max(rows, await page.locator("tbody tr:not(.spacer)").count())
    }
  return { long: await page.evaluate(() => (globalThis as unknown as { long: Array<number> }).long), rows }
}

describe.skipIf(chromiumPath() === undefined)(
  `lists in a browser${chromiumPath() === undefined ? ` (${howToGetOne})` : ""}`,
  () => {
    beforeAll(async () => {
      browser = await launch()
      facilitator = await Effect.runPromise(
        Effect.gen(function* () {
          const started = yield* startFacilitator({ channels: 2 })
          yield* fillSettlements(started.sql, size)
          yield* fillRollups(started.sql)
          return started
        }).pipe(Scope.provide(scope), Effect.provide(NodeServices.layer)) as Effect.Effect<Facilitator>
      )
    }, 240_000)
    afterAll(async () => {
      await browser.close()
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }, 240_000)

    it("scroll ten thousand rows without a long task", async () => {
      let best: Awaited<ReturnType<typeof scrolled>> | undefined
      for (let attempt = 0; attempt < attempts && best?.long.length !== 0; attempt++) {
        const visit = await Visit.open(browser, facilitator.url)
        const { page } = visit
        await visit.go("/dashboard#settlements")
        const more = page.getByRole("button", { name: "Show more" })
        await more.waitFor()
        const rowCount = () => page.locator("table").first().getAttribute("aria-rowcount")
        for (let rows = 50; rows < settlements; rows += 200) {
          // Not by the pointer, which would scroll to it each time.
          await more.evaluate((button: HTMLButtonElement) => button.click())
          await page.waitForFunction(
            (least) => Number(document.querySelector("table")!.getAttribute("aria-rowcount")) > least,
            Math.min(rows + 200, settlements)
          )
        }
        expect(await rowCount()).toBe(String(settlements + 1))
        const seen = await scrolled(visit)
        expect(seen.rows).toBeGreaterThan(50)
        expect(seen.rows).toBeLessThan(rowsMax)
        best = best === undefined || seen.long.length < best.long.length ? seen : best
        expect(visit.issues).toEqual([])
        await visit.close()
      }
      const { long, rows } = best!
      const longest = Math.round(Math.max(0, ...long))
      report(`10,000 rows: ${rows} in the document at most, ${long.length} long tasks, the longest ${longest} ms`)
      if (isTimed) expect(long).toEqual([])
    }, 600_000)

    it.each([
      ["participants", "Time", "7", /days=7/, "buyers"],
      ["resources", "State", "stale", /state=stale/, "listings"],
      ["refusals", "Operation", "settle", /operation=settle/, "refusals"],
      ["channels", "State", "withdrawing", /state=withdrawing/, "payment channels"],
      ["deliveries", "State", "given_up", /state=given_up/, "deliveries"]
    ] as const)(
      "keep a filter of %s through a reload and back",
      async (name, label, value, address, saved) => {
        const visit = await Visit.open(browser, facilitator.url, { width: 768, theme: "dark" })
        const { page } = visit
        await visit.go(`/dashboard#${name}`)
        const select = page.getByLabel(label, { exact: true })
        await select.waitFor()
        await select.selectOption(value)
        await page.waitForURL(address)
        await page.reload()
        await select.waitFor()
        expect(await select.inputValue()).toBe(value)
        await page.goBack()
        await page.waitForFunction(([wanted]) => !location.hash.includes(wanted!), [value])
        expect(await select.inputValue()).not.toBe(value)
        await page.goForward()
        await page.waitForURL(address)
        const [file] = await Promise.all([
          page.waitForEvent("download"),
          page.getByRole("button", { name: `Export CSV of ${saved}`, exact: true }).click()
        ])
        const lines = readFileSync((await file.path())!, "utf8").split("\r\n")
        if (name === "participants") expect(lines[0]).toContain("address,")
        else expect(lines).toEqual([""])
        expect(await visit.axe()).toEqual([])
        expect(visit.issues).toEqual([])
        await visit.close()
      },
      120_000
    )

    it("filter settlements by a reason in words and by amounts, and save exactly those", async () => {
      const visit = await Visit.open(browser, facilitator.url)
      const { page } = visit
      await visit.go("/dashboard#settlements?asset=CUSDC")
      await page.getByText("More filters").click()
      const reason = page.getByLabel("Reason", { exact: true })
      await reason.fill("signature expired")
      await page.keyboard.press("Enter")
      await page.waitForURL(/reason=settle_ledger_transaction_expired/)
      await page.getByText("Reason: Signature expired").waitFor()
      expect(await reason.inputValue()).toBe("Signature expired")
      const chosen = facilitator.sql<{ rows: number }>`select count(*)::int as rows from analytics_settlements
        where error_reason = 'settle_ledger_transaction_expired' and asset = 'CUSDC'`
      const [{ rows } = { rows: 0 }] = await Effect.runPromise(chosen)
      expect(rows).toBeGreaterThan(10)
      await page.locator("[aria-busy]").waitFor({ state: "detached" })
      const [saved] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: "Export CSV of settlements" }).click()
      ])
      const lines = readFileSync((await saved.path())!, "utf8")
        .trim()
        .split("\r\n")
      expect(lines).toHaveLength(rows + 1)
      expect(visit.issues).toEqual([])
      await visit.close()
    }, 120_000)

    it("say what is wrong with an amount where it is typed, and with a filter that the route refuses", async () => {
      const visit = await Visit.open(browser, facilitator.url)
      const { page } = visit
      await visit.go("/dashboard#settlements")
      await page.getByText("More filters").click()
      const least = page.getByLabel("At least")
      await least.fill("1,5")
      await page.keyboard.press("Enter")
      expect(await least.evaluate((input: HTMLInputElement) => input.validationMessage)).toMatch(/such as 1[.]50/)
      expect(page.url()).not.toContain("min=")
      await least.fill("1,234.50")
      await page.keyboard.press("Enter")
      await page.waitForURL(/min=/)
      await page.getByLabel("Origin").fill("https://S1.example.com/r1?n=2")
      await page.keyboard.press("Enter")
      await page.waitForURL(/origin=https%3A%2F%2Fs1.example.com(&|$)/)
      await page.getByLabel("Payer").fill("GNOBODY")
      await page.keyboard.press("Enter")
      await page
        .getByText(/A filter does not fit[.] Payer: an address, or a pseudonym of one[.] Request [0-9a-f]{32}[.]/)
        .waitFor()
      expect(await visit.axe()).toEqual([])
      await visit.close()
    }, 120_000)

    it("page a leaderboard by cursor: each recipient once, the largest first", async () => {
      const visit = await Visit.open(browser, facilitator.url)
      const { page } = visit
      await visit.go("/dashboard#participants")
      const board = page.getByRole("region", { name: "Sellers, table" })
      await board.locator("tbody tr").nth(24).waitFor()
      await page.getByRole("button", { name: "Show more" }).first().click()
      await board.locator("tbody tr").nth(30).waitFor()
      const names = await board
        .locator("tbody tr td:first-child a")
        .evaluateAll((links) => links.map((link) => (link as HTMLAnchorElement).title))
      expect(new Set(names).size).toBe(names.length)
      const { json } = await Effect.runPromise(facilitator.ask("/analytics/v1/sellers?days=30&limit=100"))
      expect(names).toEqual(json.items.map(({ address }: { address: string }) => address))
      await visit.close()
    }, 120_000)
  }
)
