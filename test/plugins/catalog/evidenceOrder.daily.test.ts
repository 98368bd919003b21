// Listings with evidence precede claimed ones, and one seller has three places on a first page. A listing that rises or
// is added during paging is neither repeated nor lost; circular payments earn nothing.
import { expect, layer } from "@effect/vitest"
import { Clock, Context, Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { TrustedTime } from "../../../kernel/time/trustedTime.ts"
import { type CatalogValues, Config } from "../../../plugins/catalog/Config.ts"
import type { Filters } from "../../../plugins/catalog/contract.ts"
import { Browse } from "../../../plugins/catalog/discovery/Browse.ts"
import { Counts } from "../../../plugins/catalog/discovery/Counts.ts"
import { Cursors } from "../../../plugins/catalog/discovery/Cursors.ts"
import * as Reads from "../../../plugins/catalog/discovery/reads.ts"
import { Changes } from "../../../plugins/catalog/store/Changes.ts"
import { findCircles, startCircles } from "../../../plugins/catalog/store/findCircles.ts"
import { describeDatabases } from "../../support/databases.ts"
import { skewedClock } from "../../support/skewedClock.ts"
import { timed } from "../../support/timed.ts"
import { answerOf, openStore, values } from "./store.ts"

const shown = { ...values, includeStale: false, includeUnverified: false, cursorMinutes: 15 } as CatalogValues

const openBrowse = Effect.gen(function* () {
  const store = yield* openStore({ newResourcesPerDayMax: 10_000 })
  const config = Layer.succeed(Config, { ...shown, cursorSecret: Option.none() })
  const changes = Layer.succeed(Changes, Context.get(store.parts, Changes))
  const parts = yield* Layer.build(
    Browse.layer.pipe(
      Layer.provide(Reads.layer),
      Layer.provide(Layer.mergeAll(Cursors.layer, Counts.layer)),
      Layer.provide(Layer.merge(changes, config))
    )
  )
  const { page } = Context.get(parts, Browse)
  const { listed } = Context.get(store.parts, Changes)
  const ask = Effect.fnUntraced(function* (
    asked: { limit?: number; offset?: number; cursor?: string; filters?: Filters } = {}
  ) {
    const found = yield* page({ filters: {}, limit: 20, offset: 0, cursor: undefined, ...asked })
    const { cursor, items, offset, total } = Option.getOrThrow(found)
    const names = items.map((item) => new URL((JSON.parse(item) as { resource: string }).resource))
    return { names: names.map(({ hostname, pathname }) => hostname.split(".")[0] + pathname), cursor, offset, total }
  })
  /** All pages of a size, one after another; an effect may run after the first. */
  const pages = Effect.fnUntraced(function* (limit: number, meanwhile: Effect.Effect<unknown, unknown> = Effect.void) {
    const first = yield* ask({ limit })
    yield* Effect.orDie(meanwhile)
    const names = [...first.names]
    let { cursor } = first
    while (cursor !== null) {
      const next: Effect.Success<ReturnType<typeof ask>> = yield* ask({ limit, cursor })
      expect(next.offset).toBe(names.length)
      names.push(...next.names)
      cursor = next.cursor
    }
    return { first: first.names, names, total: first.total }
  })
  let count = 0
  const sell = Effect.fnUntraced(function* (id: bigint, payer: string, payTo: string) {
    const [row] = yield* store.sql<{
      claim: string
    }>`select version_hash as claim from catalog_resources where id = ${id}`
    const sale = { transaction: `sale ${count++}`, payer, payTo, amount: "1000", claim: row!.claim }
    yield* store.sightings.touch(id, yield* store.now, sale)
    yield* store.sightings.flush
  })
  return { ...store, ask, pages, sell, changed: listed }
})

const at = (host: string, path = 0) => ({ resource: `https://${host}.example.com/${path}`, payTo: `G${host}` })

describeDatabases(
  "the order of browsing",
  (database) => {
    const services = Facts.layer.pipe(Layer.provideMerge(database), Layer.provideMerge(Supervisor.layer))
    layer(services, { timeout: "240 seconds", excludeTestServices: true })((it) => {
      it.effect(
        "browse ranks claimed listings last, and young evidence before them",
        timed(
          Effect.gen(function* () {
            const { ask, changed, declare, probeAt, sell } = yield* openBrowse
            const sold = yield* declare(at("sold"), { payer: "GP1" })
            yield* declare(at("declared"), { payer: "GP2", grade: "declared" })
            yield* declare(at("asked"), { payer: "GP3" })
            yield* declare(at("dusty"), { payer: "GP4" })
            yield* declare(at("claimed"), { payer: "GP5" })
            yield* declare(at("later"), { payer: "GP6" })
            expect((yield* ask()).names).toEqual(["declared/0", "later/0", "claimed/0", "dusty/0", "asked/0", "sold/0"])
            yield* probeAt(at("asked").resource, answerOf({ said: [at("asked")] }))
            yield* changed
            yield* sell(sold.resourceId!, "GBUYER", "Gsold")
            const order = ["asked/0", "declared/0", "sold/0", "later/0", "claimed/0", "dusty/0"]
            expect((yield* ask()).names).toEqual(order)
            // A payment to oneself does not count as a sale.
            const { resourceId } = yield* declare(at("dusty"))
            yield* sell(resourceId!, "Gdusty", "Gdusty")
            expect((yield* ask()).names).toEqual(order)
            expect((yield* ask({ limit: 2, offset: 1 })).names).toEqual(order.slice(1, 3))
          })
        )
      )

      it.effect(
        "one recipient and origin have three first-page places unless filtered for",
        timed(
          Effect.gen(function* () {
            const { ask, declare, pages } = yield* openBrowse
            const all: Array<string> = []
            const list = Effect.fnUntraced(function* (host: string, payTo: string, count: number) {
              for (let path = 0; path < count; path++) {
                yield* declare({ ...at(host, path), payTo }, { payer: `GP${all.length}` })
                all.push(`${host}/${path}`)
              }
            })
            for (let seller = 0; seller < 30; seller++) yield* list(`small${seller}`, `GSMALL${seller}`, 1)
            yield* list("big", "GBIG", 45)
            for (let seller = 0; seller < 10; seller++) yield* list(`same${seller}`, "GSAME", 1)
            yield* list("wide", "GWIDE", 1)
            for (let path = 1; path < 6; path++) yield* list(`wide`, `GWIDE${path}`, 1)
            const { names: first, total } = yield* ask()
            expect(total).toBe(new Set(all).size)
            const ofBig = (names: ReadonlyArray<string>, host: RegExp) => names.filter((name) => host.test(name)).length
            expect(first).toHaveLength(20)
            for (const host of [/^big/, /^same/]) expect(ofBig(first, host)).toBe(3)
            expect(ofBig(first, /^small/)).toBe(13)
            for (const limit of [3, 7, 20, 50, 200]) {
              const { names } = yield* pages(limit)
              expect(names.slice(0, 20), String(limit)).toEqual(first)
              expect(names.toSorted(), String(limit)).toEqual([...new Set(all)].toSorted())
            }
            const whole = (yield* pages(50)).names
            for (const offset of [1, 19, 20, 21, 60])
              expect((yield* ask({ offset, limit: 5 })).names, String(offset)).toEqual(whole.slice(offset, offset + 5))
            const mine = yield* ask({ filters: { payTo: "GBIG" } })
            expect(mine).toMatchObject({ total: 45, names: Array.from({ length: 20 }, (_, at) => `big/${44 - at}`) })
          })
        )
      )

      it.effect(
        "a listing that rises or appears during paging is shown exactly once",
        timed(
          Effect.gen(function* () {
            const { declare, pages, sell } = yield* openBrowse
            const ids: Array<bigint> = []
            for (let seller = 0; seller < 60; seller++)
              ids.push((yield* declare(at(`s${seller}`), { payer: `GP${seller}` })).resourceId!)
            for (const seller of [5, 30]) yield* sell(ids[seller]!, "GBUYER", `Gs${seller}`)
            yield* TestClock.adjust("1 second")
            const rising = Effect.gen(function* () {
              yield* TestClock.adjust("1 second")
              for (const seller of [1, 20, 45, 58]) yield* sell(ids[seller]!, "GBUYER", `Gs${seller}`)
              yield* declare(at("new"), { payer: "GNEW" })
            })
            const { first, names, total } = yield* pages(7, rising)
            // Paid lately and little: the oldest evidence first.
            expect(first.slice(0, 3)).toEqual(["s5/0", "s30/0", "s59/0"])
            expect([total, names.length, new Set(names).size]).toEqual([60, 60, 60])
            expect((yield* pages(7)).first.slice(0, 6)).toEqual(["s5/0", "s30/0", "s1/0", "s20/0", "s45/0", "s58/0"])
          })
        )
      )

      it.effect(
        "circular payments earn a listing no rank, honest chains do",
        timed(
          Effect.gen(function* () {
            const { ask, changed, declare, now, sell, sql } = yield* openBrowse
            const listings = new Map<string, bigint>()
            const list = Effect.fnUntraced(function* (name: string) {
              listings.set(name, (yield* declare(at(name), { payer: `GP${name}` })).resourceId!)
            })
            const pay = (from: string, to: string) => sell(listings.get(to)!, `G${from}`, `G${to}`)
            const ring = ["ra", "rb", "rc", "rd"]
            const chain = ["ca", "cb", "cc", "cd"]
            const market = Array.from({ length: 34 }, (_, at) => `m${at}`)
            const large = Array.from({ length: 33 }, (_, at) => `l${at}`)
            for (const name of [...ring, ...chain, ...market, ...large]) yield* list(name)
            for (const [at, name] of ring.entries()) yield* pay(name, ring[(at + 1) % 4]!)
            for (const [at, name] of market.entries()) yield* pay(name, market[(at + 1) % 34]!)
            for (const [at, name] of large.entries()) yield* pay(name, large[(at + 1) % 33]!)
            // Most of a market's revenue comes from outside it.
            for (const name of market) for (const buyer of ["one", "two"]) yield* pay(buyer, name)
            yield* pay("ca", "cb")
            yield* pay("cb", "cc")
            yield* pay("cc", "cd")
            yield* pay("buyer", "ra")
            yield* pay("rb", "cc")
            const earned = Effect.map(
              sql<{ resource: string; earned: bigint; recent: bigint; sales: bigint }>`select r.resource, a.earned,
                a.recent_payers as recent, a.recent_settled as sales from catalog_resources r
                join catalog_activity a on a.resource_id = r.id`,
              (rows) => {
                const of = new Map(rows.map((row) => [new URL(row.resource).hostname.split(".")[0]!, row]))
                const countsOf = (name: string) =>
                  [of.get(name)!.earned, of.get(name)!.recent, of.get(name)!.sales].map(Number)
                return (names: ReadonlyArray<string>) => names.map((name) => countsOf(name).join(" "))
              }
            )
            expect((yield* earned)(ring)).toEqual(["2 2 2", "1 1 1", "1 1 1", "1 1 1"])
            const since = new Date((yield* now).getTime() - 1_000)
            const probeFrom = Effect.fnUntraced(function* (after: string) {
              return yield* findCircles({ now: yield* now, since, after })
            })
            const probe = probeFrom("")
            // More payers and recipients than one statement starts from.
            const first = yield* probe
            expect(first.lost + (yield* probeFrom(first.last!)).lost).toBe(37)
            yield* changed
            const earnings = yield* earned
            expect(earnings(ring)).toEqual(["1 1 1", "0 0 0", "0 0 0", "0 0 0"])
            expect(earnings(chain)).toEqual(["0 0 0", "1 1 1", "2 2 2", "1 1 1"])
            expect(earnings(market).every((one) => one === "3 3 3")).toBe(true)
            expect(earnings(large).every((one) => one === "0 0 0")).toBe(true)
            expect(yield* probe).toMatchObject({ lost: 0 })
            const { names } = yield* ask({ limit: 100 })
            for (const name of ["rb", "rc", "rd", "ca"]) expect(names.slice(38)).toContain(`${name}/0`)
            expect(names.slice(0, 38).filter((name) => /^l\d/.test(name))).toEqual([])
            // A circular payer stays one: paying again earns nothing.
            yield* pay("ra", "rb")
            expect((yield* earned)(["rb"])).toEqual(["0 0 0"])
            yield* pay("buyer", "rb")
            expect((yield* earned)(["rb"])).toEqual(["1 1 1"])
            expect(yield* findCircles({ now: yield* now, since, after: "Gz" })).toMatchObject({ starts: 0, last: null })
          })
        )
      )

      it.effect(
        "a ring that pays thousands of other sellers too is found",
        timed(
          Effect.gen(function* () {
            const { declare, now, sell, sql } = yield* openBrowse
            const ring = ["ra", "rb", "rc"]
            const ids = yield* Effect.forEach(ring, (name) =>
              Effect.map(declare(at(name), { payer: `GP${name}` }), ({ resourceId }) => resourceId!)
            )
            // One unit to each of so large a market fills the steps of a turn.
            yield* sql`insert into catalog_resources (key, resource_key, type, resource, state, state_changed_at,
                verification, pay_tos, version, version_hash, declaration, extensions, document, first_seen_at,
                updated_at)
              select 'k' || n, 'k', 'http', 'https://s' || n || '.example.com/', 'active', now(), 'payment_observed',
                array['GS' || n], 1, 'h', '{}'::jsonb, array['catalog'], '{}', now(), now()
              from generate_series(1, 20000) n`
            yield* sql`insert into catalog_payers (resource_id, payer, settled, last_settled_at, counts)
              select r.id, p, 1, ${yield* now}, false
              from catalog_resources r, unnest(${["Gra", "Grb", "Grc"]}::text[]) p
              where r.key like 'k%' and r.resource like 'https://s%'`
            for (const [place, id] of ids.entries()) yield* sell(id, `G${ring[(place + 1) % 3]}`, `G${ring[place]}`)
            const since = new Date((yield* now).getTime() - 1_000)
            expect(yield* findCircles({ now: yield* now, since, after: "" })).toMatchObject({ lost: 3 })
          })
        )
      )

      it.effect(
        "a ring is found by a replica with a clock that is days ahead",
        timed(
          Effect.gen(function* () {
            const { declare, now, parts, sell, sql } = yield* openBrowse
            yield* TestClock.adjust("30 days")
            const ring = ["ra", "rb", "rc"]
            const ids = yield* Effect.forEach(ring, (name) =>
              Effect.map(declare(at(name), { payer: `GP${name}` }), ({ resourceId }) => resourceId!)
            )
            yield* Effect.forEach(ids, (id, place) => sell(id, `G${ring[(place + 1) % 3]}`, `G${ring[place]}`))
            const right = Effect.succeed({ now: (yield* now).getTime(), isSure: true })
            yield* startCircles.pipe(
              Effect.provideService(TrustedTime, right),
              Effect.provideService(Changes, Context.get(parts, Changes)),
              Effect.provideServiceEffect(Clock.Clock, skewedClock(10 * 86_400_000))
            )
            const isFound = Effect.map(
              sql<{ circles: number }>`select count(*)::int as circles from catalog_payers where circle`,
              ([row]) => row!.circles === 3
            )
            const pause = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 20)))
            for (let polls = 0; polls < 200 && !(yield* isFound); polls++) yield* pause
            expect(yield* isFound).toBe(true)
          })
        )
      )
    })
  },
  ["kernel", "catalog"]
)
