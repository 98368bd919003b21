// The live view under load: settlements arrive at ten and then at a thousand a second, over the real stream from the
// journal of a whole facilitator. The rows are written by SQL and the facts published as usual, since no ledger of a
// test settles that many.
import { NodeServices } from "@effect/platform-node"
import { Effect, Exit, Scope } from "effect"
import { SqlClient } from "effect/sql"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { inTransaction } from "../../kernel/database/Database.ts"
import { Facts } from "../../kernel/facts/Facts.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { chromiumPath, howToGetOne } from "./chromium.ts"
import { isTimed, liveBytes, metricsOf, report } from "./timed.ts"
import { launch, Visit } from "./Visit.ts"

const scope = Scope.makeUnsafe()
let browser: Browser
let facilitator: Facilitator
let written = 0

/** `count` settlements, recorded and settled now: two events each, published as the kernel publishes them. */
const settle = (count: number): Promise<void> =>
  Effect.runPromise(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const facts = yield* Facts
      const from = written + 1
      written += count
      const rows = yield* sql<{ id: string; hash: string }>`with made as (
          select n, lpad(to_hex(n), 64, '0') as hash, ('00000000-0000-4000-a000-' || lpad(to_hex(n), 12, '0'))::uuid
            as id
          from generate_series(${from}::int, ${written}::int) n
        )
        insert into kernel_settlements (id, network, scheme, authorization_key, authorization_expires_ledger,
          fingerprint, principal, payer, pay_to, asset, amount_max, amount, inner_hash, sponsor, channel,
          channel_sequence, resource_fee_stroops, recorded_ledger, deadline_at, budget_day, budget_stroops,
          budget_shard, budget_keyed, state, resolved_at, ledger, moved, fee_charged_stroops, ended_by)
        select id, 'ledger:testnet', 'exact', 'key ' || n, 2000, hash, 'anonymous', 'GPAYER' || n % 50,
          'GSHOP' || n % 7, 'CASSET', n, n, hash, 'GSPONSOR', 'GCHANNEL', n, 1, 1, now(), current_date, 1, 0, false,
          'settled', clock_timestamp(), 7, n, 1, hash from made
        returning id::text as id, inner_hash as hash`
      for (const { hash, id } of rows) {
        const about = { version: 1, subject: id, principal: "anonymous" }
        const recorded = {
          network: "ledger:testnet",
          scheme: "exact",
          asset: "CASSET",
          payer: "GPAYER",
          payTo: "GSHOP"
        }
        const more = { amountMax: "1", amount: "1", transaction: hash, resourceUrl: null, principal: "anonymous" }
        yield* facts.publish({ ...about, type: "settlement.recorded", data: { ...recorded, ...more } })
        const ended = { transaction: hash, moved: "1", feeChargedStroops: "1", ledger: 7, reason: null }
        yield* facts.publish({ ...about, type: "settlement.settled", data: ended })
      }
    }).pipe(inTransaction, Effect.provideContext(facilitator.services)) as Effect.Effect<void>
  )

const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** Waits until the view shows the newest settlement. */
const shown = async (visit: Visit): Promise<void> => {
  const hash = written.toString(16).padStart(64, "0")
  await visit.page.locator(`tbody a[title="${hash}"]`).first().waitFor()
}

const watched = 100
const attempts = 3
const scriptMaxMillis = 4
const rowMaxMillis = 1_000

interface Watched {
  /** Milliseconds of script, and of all tasks, an event. */
  readonly script: number
  readonly tasks: number
  /** Tasks of more than 50 ms. */
  readonly long: ReadonlyArray<number>
  /** For each row, milliseconds from its record until it was in the page; ascending. */
  readonly rows: ReadonlyArray<number>
}

const isAtEase = ({ long, rows, script }: Watched): boolean =>
  script <= scriptMaxMillis && long.length === 0 && rows.at(-1)! < rowMaxMillis

/** Ten settlements a second for ten seconds, and their cost to the page. */
const watch = async (visit: Visit): Promise<Watched> => {
  const session = await visit.context.newCDPSession(visit.page)
  await session.send("Performance.enable")
  await visit.page.evaluate(() => {
    const seen = { late: [] as Array<number>, long: [] as Array<number>, rows: new Set<string>() }
    const read = () => {
      for (const row of document.querySelectorAll("tbody tr")) {
        const name = row.querySelector<HTMLAnchorElement>('a[href*="#settlement/"]')?.title ?? ""
        if (seen.rows.has(name)) continue
        seen.rows.add(name)
        const at = row.querySelector("time")?.dateTime
        if (at !== undefined) seen.late.push(Date.now() - Date.parse(at))
      }
    }
    read()
    seen.late.length = 0
    const rows = new MutationObserver(read)
    rows.observe(document.querySelector("tbody")!, { childList: true, subtree: true })
    const tasks = new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) seen.long.push(duration)
    })
    tasks.observe({ type: "longtask" })
    const end = () => {
      rows.disconnect()
      tasks.disconnect()
      return { long: seen.long, rows: seen.late.toSorted((a, b) => a - b) }
    }
    Object.assign(globalThis, { end })
  })
  const before = await metricsOf(session)
  for (let tenth = 0; tenth < watched; tenth++) {
    await settle(1)
    await pause(100)
  }
  await shown(visit)
  const after = await metricsOf(session)
  await session.detach()
  const seen = await visit.page.evaluate(() => (globalThis as unknown as { end: () => any }).end())
  const spent = (name: string) => ((after[name]! - before[name]!) * 1_000) / (watched * 2)
  return { script: spent("ScriptDuration"), tasks: spent("TaskDuration"), ...seen }
}

describe.skipIf(chromiumPath() === undefined)(
  `the live view under load${chromiumPath() === undefined ? ` (${howToGetOne})` : ""}`,
  () => {
    beforeAll(async () => {
      browser = await launch()
      facilitator = await Effect.runPromise(
        startFacilitator({ channels: 2 }).pipe(Scope.provide(scope), Effect.provide(NodeServices.layer))
      )
    }, 240_000)
    afterAll(async () => {
      await browser.close()
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }, 240_000)

    it("shows ten settlements a second promptly, with little script per event", async () => {
      const visit = await Visit.open(browser, facilitator.url)
      await visit.go("/dashboard#live")
      await visit.page.getByText("live", { exact: true }).waitFor()
      await settle(150)
      await shown(visit)
      // A briefly busy machine is not a finding, so a figure above its bar is measured again.
      let seen = await watch(visit)
      for (let again = 1; again < attempts && isTimed && !isAtEase(seen); again++) seen = await watch(visit)
      const { long, rows, script, tasks } = seen
      report(
        `live: ${script.toFixed(2)} ms of script an event (${tasks.toFixed(2)} ms of all tasks), ` +
          `${long.length} tasks over 50 ms, rows after ${rows[rows.length >> 1]} ms (median) to ${rows.at(-1)} ms`
      )
      expect(rows.length).toBe(watched)
      expect(visit.issues).toEqual([])
      if (isTimed) {
        expect(script).toBeLessThanOrEqual(scriptMaxMillis)
        expect(long).toEqual([])
        expect(rows.at(-1)).toBeLessThan(rowMaxMillis)
      }
      await visit.close()
    }, 240_000)

    it("keeps the same memory over ten thousand events", async () => {
      const visit = await Visit.open(browser, facilitator.url)
      await visit.go("/dashboard#live")
      await visit.page.getByText("live", { exact: true }).waitFor()
      const session = await visit.context.newCDPSession(visit.page)
      await session.send("Performance.enable")
      const heap: Array<number> = []
      // The first thousand events fill the page's buffer; from then on nothing may grow.
      for (const settlements of [500, 2_500, 2_500]) {
        for (let left = settlements; left > 0; left -= 50) await settle(50)
        await shown(visit)
        heap.push(await liveBytes(session))
      }
      const rows = await visit.page.locator("tbody tr").count()
      const megabytes = heap.map((bytes) => (bytes / 1_048_576).toFixed(2))
      report(`live: ${megabytes.join(", ")} MB of live objects after 1,000, 6,000 and 11,000 events, ${rows} rows`)
      expect(rows).toBe(100)
      expect(heap[2]! - heap[0]!).toBeLessThan(1_048_576)
      expect(visit.issues).toEqual([])
      await visit.close()
    }, 240_000)
  }
)
