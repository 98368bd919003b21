// The lists of the pages, over the real fact reader: filters, pages by cursor that contain each row once in every
// order, the search's results for a word, and the comparison of a range with the previous one.
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { rangeOf } from "../../../plugins/analytics/reports/Pulse.ts"
import type { ListFilter, Sort } from "../../../plugins/analytics/reports/SettlementList.ts"
import type { RecordFilter } from "../../../plugins/catalog/contract.ts"
import { describeDatabases } from "../../support/databases.ts"
import { type JournalFact, makeWorld, owners, worldServices } from "./world.ts"

const day = 86_400_000
const now = Date.now()
const payerOf = (n: number) => `G${"A".repeat(54)}${"ABC"[n % 3]}`
const shopOf = (n: number) => `G${"B".repeat(54)}${"DE"[n % 2]}`
const hashOf = (n: number) => (n + 1).toString(16).padStart(64, "a")
const idOf = (n: number) => `00000000-0000-4000-a000-${(n + 1).toString(16).padStart(12, "0")}`
const settlementsMade = 23

/** Settlements over three days, two at each moment, in one asset; every fourth failed. */
const journal = (url: string): ReadonlyArray<JournalFact> =>
  Array.from({ length: settlementsMade }, (_, n): ReadonlyArray<JournalFact> => {
    const at = new Date(now - (n >> 1) * (day / 4))
    const recorded = { network: "ledger:testnet", scheme: n % 5 === 0 ? "upto" : "exact", asset: "CUSDC" }
    const amount = String(1_000 + (n % 7))
    const isFailed = n % 4 === 3
    return [
      {
        type: "settlement.recorded",
        subject: idOf(n),
        at,
        data: {
          ...recorded,
          payer: payerOf(n),
          payTo: shopOf(n),
          amountMax: amount,
          amount,
          transaction: hashOf(n),
          resourceUrl: n % 2 === 0 ? url : null,
          principal: n % 3 === 0 ? "key:shop-one" : "anonymous"
        }
      },
      {
        type: isFailed ? "settlement.failed" : "settlement.settled",
        subject: idOf(n),
        at,
        data: {
          transaction: hashOf(n),
          moved: isFailed ? null : amount,
          feeChargedStroops: "100",
          ledger: 7,
          reason: isFailed ? "settle_ledger_transaction_failed" : null
        }
      }
    ]
  }).flat()

const url = "https://shop.example.com/weather"

/** A world with the journal above, read, and one listing. */
const filled = Effect.gen(function* () {
  const world = yield* makeWorld
  yield* world.empty
  yield* world.list(url, shopOf(0))
  yield* world.publish(journal(url))
  yield* world.follow(500)
  return world
})

describeDatabases(
  "lists of settlements",
  (database) => {
    layer(worldServices(database), { timeout: "240 seconds", excludeTestServices: true })((it) => {
      it.effect(
        "a list keeps what its filter names, and its pages hold every row once in each order",
        () =>
          Effect.gen(function* () {
            const { settlements } = yield* filled
            const all = (filter: ListFilter, sort: Sort, limit: number) =>
              Effect.gen(function* () {
                const rows: Array<(typeof first)["items"][number]> = []
                const first = yield* settlements.list(filter, { sort, limit, cursor: undefined })
                let page: { items: typeof first.items; pagination: typeof first.pagination } = first
                rows.push(...page.items)
                while (page.pagination.cursor !== null) {
                  page = yield* settlements.list(filter, { sort, limit, cursor: page.pagination.cursor })
                  expect(page.items.length).toBeGreaterThan(0)
                  rows.push(...page.items)
                }
                expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length)
                expect(first.pagination.total).toBe(rows.length)
                return rows
              })
            for (const sort of ["newest", "oldest", "largest", "smallest"] as const) {
              const rows = yield* all({ asset: "CUSDC" }, sort, 4)
              expect([sort, rows.length]).toEqual([sort, settlementsMade])
              const keys = rows.map((row) =>
                sort === "newest" || sort === "oldest" ? Date.parse(row.occurred_at) : Number(row.max_amount)
              )
              const ordered = keys.toSorted((a, b) => (sort === "newest" || sort === "largest" ? b - a : a - b))
              expect(keys).toEqual(ordered)
            }
            const count = (keeps: (n: number) => boolean) =>
              Array.from({ length: settlementsMade }, (_, n) => n).filter(keeps).length
            const filters: ReadonlyArray<readonly [ListFilter, (n: number) => boolean]> = [
              [{ status: "failed" }, (n) => n % 4 === 3],
              [{ reason: "settle_stellar_transaction_failed" }, (n) => n % 4 === 3],
              [{ scheme: "upto" }, (n) => n % 5 === 0],
              [{ principal: "shop-one" }, (n) => n % 3 === 0],
              [{ principal: "key:shop-one" }, (n) => n % 3 === 0],
              [{ principal: "anonymous" }, (n) => n % 3 !== 0],
              [{ party: payerOf(1) }, (n) => n % 3 === 1],
              [{ party: shopOf(1), status: "success" }, (n) => n % 2 === 1 && n % 4 !== 3],
              [{ origin: "https://shop.example.com" }, (n) => n % 2 === 0],
              [{ asset: "CUSDC", min: "1002", max: "1004" }, (n) => n % 7 >= 2 && n % 7 <= 4],
              [{ from: new Date(now - day).toISOString() }, (n) => (n >> 1) * (day / 4) <= day],
              [{ to: new Date(now - day).toISOString() }, (n) => (n >> 1) * (day / 4) > day]
            ]
            for (const [filter, keeps] of filters)
              expect([filter, (yield* all(filter, "newest", 3)).length]).toEqual([filter, count(keeps)])
          }),
        120_000
      )

      it.effect(
        "listings are narrowed by state, evidence, origin, recipient and words, and paged by cursor",
        () =>
          Effect.gen(function* () {
            const world = yield* filled
            const { resources, sql } = world
            for (let n = 1; n <= 5; n++)
              yield* world.list(`https://maps.example.com/route-${n}`, shopOf(1), n === 5 ? "mcp" : "http", `tool${n}`)
            yield* sql`update catalog_resources set state = 'stale' where resource like '%route-2'`
            yield* sql`update catalog_resources set grade = 'origin' where resource like '%route-3'`
            const page = { limit: 100, offset: 0 }
            const kept = (filter: RecordFilter) =>
              Effect.map(resources.newest({ ...page, filter }), ({ items, pagination }) => {
                expect(pagination.total).toBe(items.length)
                return items.map(({ resource }) => resource.replace(/^.*[/]/, ""))
              })
            expect(yield* kept({})).toEqual(["route-5", "route-4", "route-3", "route-2", "route-1", "weather"])
            expect(yield* kept({ state: "stale" })).toEqual(["route-2"])
            expect(yield* kept({ grade: "origin" })).toEqual(["route-3"])
            expect(yield* kept({ type: "mcp" })).toEqual(["route-5"])
            expect(yield* kept({ origin: "https://shop.example.com" })).toEqual(["weather"])
            expect(yield* kept({ payTo: shopOf(0) })).toEqual(["weather"])
            expect(yield* kept({ words: "EXAMPLE.com/route-4" })).toEqual(["route-4"])
            expect(yield* kept({ words: "tool1", state: "active" })).toEqual(["route-1"])
            const paged: Array<string> = []
            let cursor: string | null | undefined = undefined
            do {
              const read: Effect.Success<ReturnType<typeof resources.newest>> = yield* resources.newest({
                limit: 2,
                offset: 0,
                cursor: cursor ?? undefined
              })
              paged.push(...read.items.map(({ id }) => id))
              cursor = read.pagination.cursor
            } while (cursor !== null)
            expect(paged).toHaveLength(6)
            expect(new Set(paged).size).toBe(6)
          }),
        120_000
      )

      it.effect(
        "a word leads to a settlement, an account, a listing, an origin and a key; a range to its figures",
        () =>
          Effect.gen(function* () {
            const world = yield* filled
            const { find } = world.found
            const kinds = (words: string) =>
              Effect.map(find(words), ({ items }) => items.map(({ id, kind }) => `${kind} ${id}`))
            expect(yield* kinds(hashOf(4))).toEqual([`settlement ${hashOf(4)}`])
            expect(yield* kinds(hashOf(4).toUpperCase())).toEqual([`settlement ${hashOf(4)}`])
            expect(yield* kinds(idOf(4))).toEqual([`settlement ${hashOf(4)}`])
            expect((yield* kinds("a".repeat(20))).length).toBe(6)
            expect(yield* kinds(payerOf(1))).toEqual([`account ${payerOf(1)}`])
            expect((yield* kinds("GBBBBBBB")).toSorted()).toEqual([`account ${shopOf(0)}`, `account ${shopOf(1)}`])
            expect(yield* kinds("CUSDC")).toEqual(["asset CUSDC"])
            expect((yield* kinds("example.com/wea")).map((one) => one.split(" ")[0])).toEqual(["resource", "origin"])
            expect((yield* kinds(url)).map((one) => one.split(" ")[0])).toEqual(["resource", "origin"])
            expect(yield* kinds("shop-o")).toEqual(["key key:shop-one"])
            expect(yield* kinds("SHOP-ONE")).toEqual(["key key:shop-one"])
            expect(yield* kinds("p-one")).toEqual(["key key:shop-one"])
            // An id by its beginning, and hashes and addresses as pages shorten them.
            expect(yield* kinds(idOf(4).slice(0, -1))).toEqual(
              Array.from({ length: 6 }, () => expect.stringMatching(/^settlement /))
            )
            expect((yield* kinds("00000000-0000-4000-a000")).length).toBe(6)
            expect(yield* kinds("00000000-0000-4000-b000")).toEqual([])
            const [start, end] = [hashOf(4).slice(0, 6), hashOf(4).slice(-6)]
            for (const gap of ["…", "...", ".."])
              expect(yield* kinds(`${start}${gap}${end}`)).toEqual([`settlement ${hashOf(4)}`])
            expect(yield* kinds(`${start}…${"9".repeat(6)}`)).toEqual([])
            expect(yield* kinds(`${payerOf(1).slice(0, 6)}…${payerOf(1).slice(-6)}`)).toEqual([`account ${payerOf(1)}`])
            expect(yield* kinds("usdc")).toEqual(["asset CUSDC"])
            expect(yield* kinds("nothing like it")).toEqual([])
            // Reasons by their code in either spelling, by a part of it or its words; amounts in the form people write
            // them.
            const budget = "reason settle_ledger_sponsor_budget_exceeded"
            for (const words of ["settle_stellar_sponsor_budget_exceeded", "sponsor_budget", "Fee budget used"])
              expect(yield* kinds(words)).toEqual([budget])
            const amount = `0.000${1_000 + (4 % 7)}`
            for (const words of [amount, `${amount} USDC`, `${amount}usdc`]) {
              const some = yield* kinds(words)
              expect([words, some.length > 0, some.every((one) => one.startsWith("settlement "))]).toEqual([
                words,
                true,
                true
              ])
            }
            for (const words of ["7.5", `${amount} XLM`, "0.00000000001"]) expect(yield* kinds(words)).toEqual([])

            yield* world.identify("order_2026-0001-a", hashOf(4))
            expect(yield* kinds("order_2026-0001-a")).toEqual([`settlement ${hashOf(4)}`])
            // Only the whole identifier as sent: neither a beginning nor another case.
            expect(yield* kinds("order_2026-0001")).toEqual([])
            expect(yield* kinds("ORDER_2026-0001-A")).toEqual([])

            const { pulse } = world
            const range = rangeOf(now - day, now)
            const shown = yield* pulse.of(range, undefined)
            expect(shown.series.length).toBe(25)
            const within = (n: number) => Math.floor((now - (n >> 1) * (day / 4)) / 3_600_000) * 3_600_000 >= range.from
            const recent = Array.from({ length: settlementsMade }, (_, n) => n).filter(within)
            expect(shown.now).toEqual({
              settled: recent.filter((n) => n % 4 !== 3).length,
              failed: recent.filter((n) => n % 4 === 3).length,
              pending: 0,
              amount: String(recent.filter((n) => n % 4 !== 3).reduce((sum, n) => sum + 1_000 + (n % 7), 0))
            })
            expect(shown.series.reduce((sum, { settled }) => sum + settled, 0)).toBe(shown.now.settled)
            // Half a day: the range before it is recorded whole.
            expect((yield* pulse.of(rangeOf(now - day / 2, now), undefined)).before).toMatchObject({ pending: 0 })
            const long = yield* pulse.of(rangeOf(now - 30 * day, now), undefined)
            expect((yield* pulse.of(rangeOf(now - 30 * day, now), "CUSDC")).now).toEqual(long.now)
            // Counts are those of the chosen asset, as amounts are.
            expect((yield* pulse.of(rangeOf(now - 30 * day, now), "CXLM")).now).toEqual({
              settled: 0,
              failed: 0,
              pending: 0,
              amount: "0"
            })
            expect(long.before).toBeNull()
            expect(long.series.filter(({ recorded }) => recorded).length).toBeLessThanOrEqual(4)
            expect(long.series.some(({ recorded }) => !recorded)).toBe(true)
            expect(long.now.settled + long.now.failed).toBe(settlementsMade)
          }),
        120_000
      )
    })
  },
  owners
)
