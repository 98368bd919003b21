// The timing of a seller's probes while others try to delay them: with payments that cost them nothing, with claims for
// slow origins, and during a running probe. Uses a test clock and a real database.
import { expect, it, layer } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { Config } from "../../../plugins/catalog/Config.ts"
import { type AskedResource, type OriginAnswer, Origins } from "../../../plugins/catalog/ownership/Origins.ts"
import { leaseProbes, restAfter, startProbes } from "../../../plugins/catalog/ownership/reconcileProbes.ts"
import { SearchSettings } from "../../../plugins/catalog/contract.ts"
import { PricedAssets } from "../../../plugins/catalog/ownership/PricedAssets.ts"
import type { Weighed } from "../../../plugins/catalog/search/rank/signals.ts"
import { ResourceSignals } from "../../../plugins/catalog/search/rank/ResourceSignals.ts"
import { requestProbesAmong, requestProbesOf } from "../../../plugins/catalog/store/Resources.ts"
import { describeDatabases } from "../../support/databases.ts"
import { timed } from "../../support/timed.ts"
import { answerOf, openStore, type Said, shop, values } from "./store.ts"

const ours = { resource: `${shop}/a` }
const dearer = { ...ours, amount: "6" }
const paid = { stage: "settled", payer: "GBUYER" } as const
const searching = Layer.succeed(SearchSettings, {
  evidence_margin: 0.3
} as SearchSettings["Service"])
const evil = { payer: "GEVIL" } as const

/** A listing with its origin's terms, probed just now. */
const openListed = Effect.gen(function* () {
  const store = yield* openStore({ newResourcesPerDayMax: 1_000 })
  const { declare, probe, now, sql } = store
  const { resourceId } = yield* declare(ours)
  yield* probe(answerOf({ said: [ours] }))
  const due = Effect.flatMap(now, (now) => leaseProbes(sql, now, true))
  return { ...store, due, id: resourceId! }
})

it.each([
  { kind: "server" as const, seconds: [2, 4, 8, 16, 16, 16, 16] },
  { kind: "embedded" as const, seconds: [2, 4, 8, 16, 32, 64, 64] }
])("the idle delay between probes doubles and resets after ($kind)", ({ kind, seconds }) => {
  const rests = [1, 2, 3, 4, 5, 6].reduce<ReadonlyArray<Duration.Duration>>(
    (all) => [...all, restAfter(all.at(-1)!, false, kind)],
    [Duration.seconds(2)]
  )
  expect(rests.map(Duration.toSeconds)).toEqual(seconds)
  expect(Duration.toSeconds(restAfter(Duration.seconds(16), true, kind))).toBe(2)
})

describeDatabases(
  "a seller's probe",
  (database) => {
    const services = Facts.layer.pipe(Layer.provideMerge(database), Layer.provideMerge(Supervisor.layer))
    layer(services, { timeout: "120 seconds", excludeTestServices: true })((it) => {
      it.effect(
        "a probe requested during a running one follows after the pause [S317]",
        timed(
          Effect.gen(function* () {
            const { apply, declare, due, id, now, prices } = yield* openListed
            yield* TestClock.adjust("24 hours")
            const [first] = yield* due
            // The origin was probed; then the seller changes its price and is paid; then the old answer is stored.
            yield* TestClock.adjust("1 second")
            yield* declare(dearer, paid)
            expect(yield* due).toEqual([])
            yield* apply(id, first!.fence, answerOf({ said: [ours] }), yield* now)
            expect(yield* prices).toEqual(["5"])
            expect(yield* due).toEqual([])
            yield* TestClock.adjust("60 seconds")
            const [second] = yield* due
            expect(second).toMatchObject({ id, free: false })
            yield* apply(id, second!.fence, answerOf({ said: [dearer] }), yield* now)
            expect(yield* prices).toEqual(["6"])
            yield* TestClock.adjust("23 hours")
            expect(yield* due).toEqual([])
          })
        )
      )

      it.effect.each<readonly [string, Said]>([
        ["another price", { ...ours, amount: "1" }],
        ["another recipient", { ...ours, payTo: "GEVIL" }]
      ])("a probe requested by free payments of %s becomes the seller's once paid", ([_, lie]) =>
        timed(
          Effect.gen(function* () {
            const { apply, declare, due, id, now } = yield* openListed
            yield* TestClock.adjust("60 seconds")
            yield* declare(lie, evil)
            const [free] = yield* due
            expect(free).toMatchObject({ id, stands: true, free: true })
            yield* apply(id, free!.fence, answerOf({ said: [ours] }), yield* now)
            yield* TestClock.adjust("60 seconds")
            yield* declare(lie, evil)
            yield* declare(dearer, paid)
            yield* declare(lie, evil)
            expect(yield* due).toMatchObject([{ id, free: false }])
            // Paid for during a free probe.
            yield* TestClock.adjust("61 seconds")
            const [again] = yield* due
            yield* apply(id, again!.fence, answerOf({ said: [ours] }), yield* now)
            // A scheduled probe is the seller's own, also when another caller requests one at that time.
            yield* TestClock.adjust("24 hours")
            yield* declare(lie, evil)
            expect(yield* due).toMatchObject([{ id, free: false }])
          })
        )()
      )

      it.effect(
        "a new listing's probe precedes claimed ones once its payment counts",
        timed(
          Effect.gen(function* () {
            const { declare, now, sightings, sql } = yield* openStore({ newResourcesPerDayMax: 1_000 })
            const { claim, resourceId } = yield* declare({ ...ours, amount: "1000" }, paid)
            expect(yield* leaseProbes(sql, yield* now, true)).toEqual([])
            const sale = { transaction: "sale", payer: "GBUYER", payTo: "GOWNER", amount: "1000", claim: claim! }
            yield* sightings.touch(resourceId!, yield* now, sale)
            yield* sightings.flush
            expect(yield* leaseProbes(sql, yield* now, true)).toMatchObject([{ id: resourceId, free: false }])
          })
        )
      )

      it.effect(
        "probes of an origin's listings are requested free and bounded, hidden ones first",
        timed(
          Effect.gen(function* () {
            const { declare, due, id, now, sql } = yield* openListed
            const { resourceId: hidden } = yield* declare({ resource: `${shop}/hidden` }, paid)
            yield* declare({ resource: "https://other.example.com/a" }, paid)
            yield* sql`update catalog_resources set state = 'stale', standing_at = now(), last_look_at = '2040-01-01'
              where id = ${hidden}`
            yield* TestClock.adjust("60 seconds")
            const later = new Date((yield* now).getTime() + 86_400_000)
            yield* sql`update catalog_probes set due_at = ${later}, stands = true`
            const request = (max: number) =>
              Effect.flatMap(now, (now) => requestProbesOf(sql, { origin: shop, max }, values, now))
            expect(yield* request(1)).toBe(1)
            expect(yield* due).toMatchObject([{ id: hidden, free: true }])
            expect(yield* request(9)).toBe(2)
            expect(yield* due).toMatchObject([{ id, free: true }])
          })
        )
      )

      it.effect(
        "a listing is probed again minutes after a sale, then at doubling intervals",
        timed(
          Effect.gen(function* () {
            const { apply, now, probe, settle, sql } = yield* openStore({ newResourcesPerDayMax: 1_000 })
            const offer = { ...ours, amount: "1000" }
            yield* settle(offer, { payer: "GBUYER", dollars: 1 })
            yield* probe(answerOf({ said: [offer] }))
            const minutes: Array<number> = []
            for (let minute = 0; minute <= 50; minute++) {
              for (const { fence, id } of yield* leaseProbes(sql, yield* now, true)) {
                yield* apply(id, fence, answerOf({ said: [offer] }), yield* now)
                minutes.push(minute)
              }
              yield* TestClock.adjust("1 minute")
            }
            expect(minutes).toEqual([5, 10, 20, 40])
          })
        )
      )

      it.effect(
        "a seller that is gone ranks below live ones until it sells again",
        timed(
          Effect.gen(function* () {
            const { declare, now, parts, probeAt, settle, sql } = yield* openStore({ newResourcesPerDayMax: 1_000 })
            const offers = ["dead", "alive"].map((name) => ({
              resource: `https://${name}.example.com/weather`,
              payTo: `G${name}`,
              description: "The weather of a city, hour by hour"
            }))
            const ids: Array<bigint> = []
            for (const one of offers) {
              ids.push((yield* declare(one)).resourceId!)
              yield* TestClock.adjust("1 minute")
              yield* probeAt(one.resource, answerOf({ said: [one] }))
            }
            const order = Effect.gen(function* () {
              const { apply } = yield* ResourceSignals
              const hits = ids.map((id, at) => ({ id, score: 1 - at / 100, ranks: {} })) as ReadonlyArray<Weighed>
              const wish = { isOfOneSeller: false, prefers: [], query: "weather", evidenced: new Set<bigint>() }
              return (yield* apply(hits, wish)).hits.map(({ id }) => ids.indexOf(id))
            }).pipe(
              Effect.provide(Layer.fresh(ResourceSignals.layer)),
              Effect.provide(Layer.mergeAll(Layer.succeed(PricedAssets, { assets: [] }), searching)),
              Effect.provideContext(parts)
            )
            expect(yield* order).toEqual([0, 1])
            yield* TestClock.adjust("5 minutes")
            const dead = offers[0]!
            yield* probeAt(dead.resource, answerOf({ life: "origin_gone" }))
            expect(yield* order).toEqual([1, 0])
            // A probe that proves nothing leaves it below; nor does it become the original of the other's text.
            yield* probeAt(dead.resource, answerOf({ life: "unknown" }))
            expect(yield* order).toEqual([1, 0])
            yield* TestClock.adjust("1 minute")
            yield* settle({ ...dead, amount: "1000" }, { payer: "GBUYER", dollars: 1 })
            expect(yield* order).toEqual([0, 1])
            yield* TestClock.adjust("1 minute")
            yield* probeAt(dead.resource, answerOf({ life: "origin_gone" }))
            expect(yield* order).toEqual([1, 0])
            yield* probeAt(dead.resource, answerOf({ said: [dead] }))
            expect(yield* order).toEqual([0, 1])
            const [count] = yield* sql`select 1 from catalog_probes where gone_at > ${yield* now}`
            expect(count).toBeUndefined()
          })
        )
      )

      it.effect(
        "shown listings are probed unless they were lately, the oldest first",
        timed(
          Effect.gen(function* () {
            const { declare, due, id, now, sql } = yield* openListed
            const { resourceId: other } = yield* declare({ resource: `${shop}/b` }, paid)
            const request = (max: number, ids: ReadonlyArray<bigint>) =>
              Effect.flatMap(now, (now) => {
                const since = new Date(now.getTime() - 300_000)
                return requestProbesAmong(sql, { ids, max, since }, values, now)
              })
            expect(yield* request(9, [id])).toBe(0)
            yield* TestClock.adjust("6 minutes")
            expect(yield* request(1, [id, other!])).toBe(1)
            expect(yield* due).toEqual([])
            expect(yield* request(2, [id, other!])).toBe(2)
            expect(yield* due).toMatchObject([{ id, free: true }])
          })
        )
      )

      it.effect(
        "a requested probe runs within two seconds, however long none was due",
        timed(
          Effect.gen(function* () {
            const store = yield* openStore({ newResourcesPerDayMax: 1_000 })
            const asked: Array<AskedResource> = []
            const ask = (one: AskedResource) => Effect.sync(() => (asked.push(one), answerOf({ said: [ours] })))
            yield* Effect.provideContext(startProbes, store.parts).pipe(
              Effect.provide(Layer.succeed(Origins, { ask, read: () => Effect.succeed([]) })),
              Effect.provide(Layer.succeed(Config, values))
            )
            // Actor runs with nothing due: the statements are real, so each takes time.
            for (let turns = 0; turns < 6; turns++) {
              yield* TestClock.adjust("16 seconds")
              yield* TestClock.withLive(Effect.sleep("20 millis"))
            }
            yield* store.declare(ours)
            let seconds = 0
            for (; seconds < 10 && asked.length === 0; seconds++) {
              yield* TestClock.adjust("1 second")
              for (let waits = 0; waits < 200 && asked.length === 0; waits++)
                yield* TestClock.withLive(Effect.sleep("10 millis"))
            }
            expect(asked).toHaveLength(1)
            expect(seconds).toBeLessThan(10)
          }).pipe(Effect.scoped)
        )
      )

      it.effect(
        "a probe counts whatever paths the origin's documents name",
        timed(
          Effect.gen(function* () {
            const store = yield* openListed
            const letters = Array.from({ length: 220 }, (_, at) => `%EF%B7%BA%${(0x61 + (at % 7)).toString(16)}`)
            const named = ["/%00", "/b%2500", `/${letters.join("")}`, "/c"].map((path) => `${shop}${path}`)
            const ask = () => Effect.succeed({ ...answerOf({ said: [dearer] }), named })
            yield* TestClock.adjust("24 hours")
            yield* Effect.provideContext(startProbes, store.parts).pipe(
              Effect.provide(Layer.succeed(Origins, { ask, read: () => Effect.succeed([]) })),
              Effect.provide(Layer.succeed(Config, values))
            )
            for (let turns = 0; turns < 400 && !(yield* store.prices).includes("6"); turns++) {
              yield* TestClock.adjust("2 seconds")
              yield* TestClock.withLive(Effect.sleep("5 millis"))
            }
            expect(yield* store.prices).toEqual(["6"])
            expect(yield* store.sql`select path from catalog_named_paths order by path`).toEqual([
              { path: "" },
              { path: "/b" },
              { path: "/c" }
            ])
          }).pipe(Effect.scoped)
        )
      )

      it.effect(
        "a probe does not wait for slow claimed origins",
        timed(
          Effect.gen(function* () {
            const store = yield* openListed
            const asked: Array<AskedResource> = []
            const ask = (one: AskedResource): Effect.Effect<OriginAnswer | "later"> =>
              Effect.suspend((): Effect.Effect<OriginAnswer | "later"> => {
                asked.push(one)
                if (one.share === "claimed") return Effect.never
                if (one.share === "own") return Effect.succeed(answerOf({ said: [dearer] }))
                return Effect.as(Effect.orDie(store.declare(dearer, paid)), "later" as const)
              })
            for (let at = 0; at < 20; at++)
              yield* store.declare({ resource: `https://slow${at}.example.com/`, payTo: `GSLOW${at}` }, evil)
            yield* TestClock.adjust("60 seconds")
            yield* store.declare({ ...ours, amount: "1" }, evil)
            const since = yield* store.now
            yield* Effect.provideContext(startProbes, store.parts).pipe(
              Effect.provide(
                Layer.mergeAll(
                  Layer.succeed(Origins, { ask, read: () => Effect.succeed([]) }),
                  Layer.succeed(Config, values)
                )
              )
            )
            const of = (share: AskedResource["share"]) => asked.filter((one) => one.share === share).length
            /** Runs the actors until the condition holds. */
            const until = Effect.fnUntraced(function* (isSo: Effect.Effect<boolean, unknown>) {
              for (let turns = 0; turns < 400 && !(yield* Effect.orDie(isSo)); turns++) {
                yield* TestClock.adjust("2 seconds")
                yield* TestClock.withLive(Effect.sleep("5 millis"))
              }
            })
            yield* until(Effect.map(store.prices, (prices) => prices.includes("6")))
            yield* until(Effect.sync(() => of("claimed") > 0))
            expect([of("free"), of("own"), of("claimed")]).toEqual([1, 1, 4])
            expect((yield* store.now).getTime() - since.getTime()).toBeLessThan(60_000)
          }).pipe(Effect.scoped)
        )
      )
    })
  },
  ["kernel", "catalog"]
)
