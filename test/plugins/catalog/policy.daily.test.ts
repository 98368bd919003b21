// Which payments list a resource, which resources are shown, and that catalog failures never affect a payment.
import { expect, it } from "@effect/vitest"
import type { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { describe } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { eventually } from "../../support/eventually.ts"
import { browse, declaring, explain, outcomes, resolve, verified } from "./support.ts"
import { catalogWorld } from "./catalogWorld.ts"

const url = "https://shop.example.com/item"
const quiet = "catalog_security.probe_origins=false"

describe.each(databaseKinds)("policy on %s", (database) => {
  it.live(
    "with index_on settled, a verified payment lists nothing yet [S17][S18][S22][S114][S287][S292]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const set = [quiet, "indexing.index_on=settled"]
          const { declare, facilitator } = yield* catalogWorld({ database, set })
          const answer = yield* facilitator.verify(yield* declare({ url }))
          expect(outcomes(answer)?.["catalog"].status).toBe("processing")
          yield* eventually(explain(facilitator, url), ({ listings }) => listings.length === 1)
          expect((yield* explain(facilitator, url))["listings"][0]).toMatchObject({ verification: "unverified" })
          expect((yield* browse(facilitator))["items"]).toEqual([])
          expect((yield* resolve(facilitator, url)).status).toBe(404)
          const shown = yield* startFacilitator({ database, set: [...set, "discovery.include_unverified=true"] })
          const other = yield* declaring(shown, {
            payer: yield* shown.account(),
            payTo: (yield* shown.account()).publicKey(),
            url
          })
          yield* shown.verify(other)
          const { items } = yield* eventually(browse(shown), ({ items }) => items.length === 1)
          expect(items[0]).toMatchObject({ resource: url, verification: "unverified" })
          const settled = yield* facilitator.settle(yield* declare({ url }))
          expect(settled.json.success, settled.text).toBe(true)
          const listed = yield* eventually(browse(facilitator), ({ items }) => items.length === 1)
          expect(listed["items"][0]).toMatchObject({ resource: url, verification: "payment_observed" })
        })
      ),
    240_000
  )

  it.live(
    "with auto_catalog off, nothing is listed and no extension is offered [S17][S286]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* startFacilitator({ database, set: [quiet, "indexing.auto_catalog=false"] })
          const body = yield* declaring(facilitator, {
            payer: yield* facilitator.account(),
            payTo: (yield* facilitator.account()).publicKey(),
            url
          })
          const answer = yield* facilitator.verify(body)
          expect([answer.json.isValid, outcomes(answer)]).toEqual([true, undefined])
          expect((yield* browse(facilitator))["items"]).toEqual([])
          expect((yield* facilitator.ask("/supported")).json.extensions).not.toContain("catalog")
        })
      ),
    240_000
  )

  it.live(
    "an unchanged declaration writes nothing, and a settled one is counted once [S310]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { declare, facilitator, payTo } = yield* catalogWorld({ database, set: [quiet] })
          const body = yield* declare({ url })
          yield* verified(facilitator, body)
          const writes = Effect.map(
            facilitator.sql<{ n: bigint }>`select coalesce(max(xmin::text::bigint), 0) as n from catalog_resources`,
            ([row]) => row!.n
          )
          const [rowBefore, facts] = [
            yield* writes,
            facilitator.sql<{ n: number }>`select count(*)::int as n from kernel_facts where type = 'catalog.changed'`
          ]
          const [before] = yield* facts
          for (let at = 0; at < 5; at++) yield* verified(facilitator, body)
          expect(yield* writes).toBe(rowBefore)
          const counted = (sales: bigint, seen: bigint) =>
            Effect.map(
              eventually(
                facilitator.sql<{
                  observed: bigint
                  settled: bigint
                  payers: bigint
                }>`select observed, settled, payers from catalog_activity`,
                ([row]) => row?.settled === sales && row.observed >= seen
              ),
              ([row]) => row
            )
          expect((yield* facilitator.settle(body)).json.success).toBe(true)
          yield* facilitator.settle(body)
          expect(yield* counted(1n, 6n)).toMatchObject({ settled: 1n, payers: 1n })
          // The first sale raises it above claimed listings, once and after the payment; no other sale writes.
          expect(yield* eventually(facts, ([now]) => now!.n > before!.n)).toEqual([{ n: before!.n + 1 }])
          const rowRaised = yield* writes
          const another = yield* declaring(facilitator, { payer: yield* facilitator.account(), payTo, url })
          expect((yield* facilitator.settle(another)).json.success).toBe(true)
          expect(yield* counted(2n, 7n)).toMatchObject({ settled: 2n, payers: 2n })
          expect(yield* writes).toBe(rowRaised)
          expect(yield* facts).toEqual([{ n: before!.n + 1 }])
        })
      ),
    240_000
  )

  it.live(
    "missing catalog tables do not affect payments; header and log report it [S256][S260]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* startFacilitator({ database, set: [quiet] })
          const payer = yield* facilitator.account()
          const body = yield* declaring(facilitator, { payer, payTo: (yield* facilitator.account()).publicKey(), url })
          yield* facilitator.sql`alter table catalog_resources rename to catalog_away`
          const { answer, outcome } = yield* verified(facilitator, body)
          expect(answer.json.isValid).toBe(true)
          expect(outcome).toEqual({ status: "rejected", rejectedReason: "catalog_unavailable" })
          expect((yield* facilitator.settle(body)).json.success).toBe(true)
          expect((yield* facilitator.ask("/discovery/resources")).status).toBe(503)
          yield* facilitator.sql`alter table catalog_away rename to catalog_resources`
          const why = yield* eventually(explain(facilitator, url), ({ items }) => items.length > 0)
          expect(why["items"][0]).toMatchObject({ decision: "rejected", reason: "catalog_unavailable" })
          const [internal] = yield* facilitator.sql<{ detail: string }>`select detail from catalog_observations limit 1`
          expect(internal?.detail).toMatch(/^database: /)
          expect(JSON.stringify(why)).not.toContain("database: ")
        })
      ),
    240_000
  )

  it.live(
    "a hundred concurrent payments declaring one new resource make one listing",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { declare, facilitator } = yield* catalogWorld({ database, set: [quiet] })
          const body = yield* declare({ url })
          const bodies = Array.from({ length: 100 }, (_, at) =>
            at % 2 === 0
              ? body
              : {
                  ...body,
                  paymentPayload: { ...body.paymentPayload, resource: { url: `${url}?buyer=${at}` } }
                }
          )
          yield* Effect.forEach(bodies, (one) => facilitator.verify(one), { concurrency: 100 })
          const page = yield* eventually(browse(facilitator), ({ pagination }) => pagination.total === 1)
          expect(page["pagination"].total).toBe(1)
          expect((yield* explain(facilitator, url))["listings"][0].version).toBe(1)
        })
      ),
    240_000
  )

  it.live(
    "each payer may claim an eighth of an origin's daily listings",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* startFacilitator({
            database,
            set: [quiet, "indexing.max_new_resources_per_day=16"]
          })
          const payTo = (yield* facilitator.account()).publicKey()
          const outcomesOf = (payer: Keypair, count: number) =>
            Effect.forEach(
              Array.from({ length: count }, (_, at) => at),
              (at) =>
                Effect.flatMap(
                  declaring(facilitator, { payer, payTo, url: `${url}/${payer.publicKey()}/${at}` }),
                  (body) => Effect.map(verified(facilitator, body), ({ outcome }) => outcome?.["status"])
                )
            )
          for (let payers = 0; payers < 8; payers++)
            expect(yield* outcomesOf(yield* facilitator.account(), 3)).toEqual(["success", "success", "rejected"])
          // A used-up quota of others refuses no declaration: the origin is probed instead.
          expect(yield* outcomesOf(yield* facilitator.account(), 1)).toEqual(["processing"])
          expect((yield* browse(facilitator, "?limit=1"))["pagination"].total).toBe(16)
        })
      ),
    240_000
  )

  it.live(
    "declared bytes are limited per payer and day without affecting other payers",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* startFacilitator({
            database,
            set: [quiet, "indexing.max_declared_bytes_per_day=65536"]
          })
          const payTo = (yield* facilitator.account()).publicKey()
          const declare = (payer: Keypair, word: string) =>
            Effect.flatMap(
              declaring(facilitator, {
                payer,
                payTo,
                url: `${url}/${word}`,
                about: { description: word.repeat(1_500) }
              }),
              (body) => Effect.map(verified(facilitator, body), ({ outcome }) => outcome?.["status"])
            )
          const [first, second] = [yield* facilitator.account(), yield* facilitator.account()]
          const statuses = yield* Effect.forEach(["a", "b", "c", "d", "e", "f"], (word) => declare(first, word))
          expect(statuses.at(0)).toBe("success")
          expect(statuses.at(-1)).toBe("rejected")
          expect(yield* declare(second, "z")).toBe("success")
          const [{ kept }] = (yield* facilitator.sql<{
            kept: number
          }>`select sum(length(document))::int as kept from catalog_versions`) as [{ kept: number }]
          expect(kept).toBeLessThan(2 * 8_192)
        })
      ),
    240_000
  )
})
