// Settlements against a stranger that claimed a listing first with its own recipient: declared for the other recipient
// by a payer, a key or the account itself, and in any state of the listing. On the tables themselves.
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import type { CatalogValues } from "../../../plugins/catalog/Config.ts"
import type { Carrier } from "../../../plugins/catalog/store/Recorded.ts"
import { describeDatabases } from "../../support/databases.ts"
import { timed } from "../../support/timed.ts"
import { TestClock } from "effect/testing"
import * as Records from "../../../plugins/catalog/administration/Records.ts"
import { CatalogRecords } from "../../../plugins/catalog/contract.ts"
import { answerOf, openStore, shop } from "./store.ts"

const squat = { payTo: "GSQUAT", description: "Mine", amount: "1000" }
const own = { payTo: "GOWNER", description: "Reports", amount: "1000", method: "POST" }
const stranger = { payer: "GSTRANGER" }
const signed = (signature: string) => ({ grade: "declared", signature }) as const

const openContest = (changed: Partial<CatalogValues> = {}) =>
  openStore({ versionsPerDayMax: 100, newResourcesPerDayMax: 1_000, ...changed })

describeDatabases(
  "a stranger's recipient",
  (database) => {
    const services = Facts.layer.pipe(Layer.provideMerge(database), Layer.provideMerge(Supervisor.layer))
    layer(services, { timeout: "120 seconds", excludeTestServices: true })((it) => {
      it.effect.each<readonly [string, Partial<Carrier>]>([
        ["a payer", {}],
        ["a key", { grade: "declared" }],
        ["the account's signature", signed("s1")]
      ])("gives way to what settles for the seller, declared by %s", ([_, by]) =>
        timed(
          Effect.gen(function* () {
            const { declare, listing, settle } = yield* openContest()
            yield* declare(squat, stranger)
            expect(yield* declare(own, { payer: "GBUYER", ...by })).toMatchObject({ reason: "payto_conflict" })
            expect(yield* listing).toMatchObject({ pay_tos: ["GSQUAT"], description: "Mine" })
            yield* settle(own, { payer: "GBUYER", ...by })
            expect(yield* listing).toMatchObject({ pay_tos: ["GOWNER"], description: "Reports", state: "active" })
            yield* settle(own, { payer: "GBUYER", ...by })
            expect(yield* listing).toMatchObject({ grade: by.grade ?? "claimed" })
          })
        )()
      )

      it.effect(
        "signed at no cost, gives way to a declaring seller's settled payment alone",
        timed(
          Effect.gen(function* () {
            const { declare, listing, settle } = yield* openContest()
            yield* declare(squat, { ...stranger, ...signed("s1") })
            expect(yield* listing).toMatchObject({ grade: "declared", pay_tos: ["GSQUAT"] })
            // Payments without a declaration never change declared words, and neither does a declaration without a
            // payment.
            yield* settle(own, { payer: "GBUYER" })
            yield* declare(own, { payer: "GBUYER", ...signed("s2") })
            expect(yield* listing).toMatchObject({ grade: "declared", pay_tos: ["GSQUAT"] })
            yield* settle(own, { payer: "GBUYER", ...signed("s2") })
            expect(yield* listing).toMatchObject({ pay_tos: ["GOWNER"], description: "Reports" })
          })
        )
      )

      it.effect(
        "declared words that a payment has settled for, or that a key declares, give way to none",
        timed(
          Effect.gen(function* () {
            const { declare, listing, settle } = yield* openContest()
            yield* declare(own, signed("s1"))
            yield* settle(own, { payer: "GBUYER", ...signed("s1") })
            const keyed = { ...own, resource: "https://keyed.example.com/a" }
            yield* declare(keyed, { grade: "declared" })
            for (const payer of ["G1", "G2", "G3"])
              for (const resource of [undefined, keyed.resource])
                yield* settle(
                  { ...squat, ...(resource === undefined ? {} : { resource }) },
                  { payer, ...signed(`x ${payer}`) }
                )
            expect(yield* listing).toMatchObject({ grade: "declared", pay_tos: ["GOWNER"], description: "Reports" })
          })
        )
      )

      it.effect(
        "leaves nothing behind: what the first settled payment shows is active and payment observed",
        timed(
          Effect.gen(function* () {
            const { age, declare, listing, settle } = yield* openContest({ indexOn: "settled" })
            yield* declare(squat, stranger)
            expect(yield* listing).toMatchObject({ verification: "unverified" })
            yield* settle(own, { payer: "GBUYER" })
            expect(yield* listing).toMatchObject({ verification: "payment_observed", pay_tos: ["GOWNER"] })
            const other = yield* openContest()
            yield* other.declare(squat, stranger)
            yield* TestClock.adjust("169 hours")
            yield* other.age
            expect(yield* other.listing).toMatchObject({ state: "stale", state_reason: "not_seen" })
            yield* other.settle(own, { payer: "GBUYER" })
            expect(yield* other.listing).toMatchObject({ state: "active", pay_tos: ["GOWNER"] })
            yield* other.age
            expect(yield* other.listing).toMatchObject({ state: "active" })
            yield* age
          })
        )
      )

      it.effect(
        "free lies for the seller's account take no place of what it claimed before",
        timed(
          Effect.gen(function* () {
            const { declare, listing, probe } = yield* openContest()
            yield* declare(squat, stranger)
            yield* declare(own, { payer: "GBUYER" })
            yield* declare({ ...own, description: "Lies", amount: "90000000" }, stranger)
            yield* probe(answerOf({ word: { payTos: ["GOWNER"], delisted: false } }))
            expect(yield* listing).toMatchObject({ pay_tos: ["GOWNER"], description: "Reports", ownership: "proven" })
          })
        )
      )

      it.effect(
        "a signature declares nothing any more once the key's holder changed its words",
        timed(
          Effect.gen(function* () {
            const { declare, prices } = yield* openContest()
            yield* declare(own, signed("s1"))
            yield* declare({ ...own, amount: "2000" }, { grade: "declared" })
            expect(yield* declare(own, { ...stranger, ...signed("s1") })).toMatchObject({ decision: "held" })
            expect(yield* prices).toEqual(["2000"])
          })
        )
      )

      it.effect(
        "a claim on a seller's URL for another recipient makes its payments no less its listing's",
        timed(
          Effect.gen(function* () {
            const { declare, sql } = yield* openContest()
            const { resourceId } = yield* declare(own)
            yield* sql`insert into catalog_resources (key, resource_key, type, resource, tool_name, origin, state,
                state_changed_at, verification, pay_tos, version, version_hash, declaration, extensions, document,
                first_seen_at, updated_at)
              select 'tool', resource_key, 'mcp', resource, 'add', origin, state, state_changed_at, verification,
                array['GSQUAT'], version, version_hash, declaration, extensions, document, first_seen_at, updated_at
              from catalog_resources`
            const { attribute } = yield* Effect.provide(CatalogRecords, Records.layer)
            const [mine, unknown] = yield* attribute([
              { url: `${shop}/a`, payTo: "GOWNER" },
              { url: `${shop}/a`, payTo: "GELSE" }
            ])
            expect([mine?.id, unknown]).toEqual([resourceId, undefined])
          })
        )
      )

      it.effect(
        "a settled payment of dust lists as a free one does",
        timed(
          Effect.gen(function* () {
            const { declare, sql } = yield* openContest({ freeListingsPerHourMax: 2 })
            const at = (path: number) => ({ ...squat, resource: `https://flood${path}.example.com/a` })
            const dusty = { ...stranger, stage: "settled", isDust: true } as const
            const paid = { ...stranger, stage: "settled" } as const
            expect(yield* declare(at(0), { ...dusty, ...signed("s1") })).toMatchObject({ decision: "listed" })
            expect(yield* declare(at(1), dusty)).toMatchObject({ decision: "listed" })
            expect(yield* declare(at(2), dusty)).toMatchObject({ reason: "awaits_origin", resourceId: undefined })
            expect(yield* declare(at(3), paid)).toMatchObject({ decision: "listed" })
            const rows = yield* sql<{ by: string | null; evidence: boolean }>`select listed_by as by,
              standing_at is not null as evidence from catalog_resources order by id`
            expect(rows).toEqual([
              { by: "GSTRANGER", evidence: false },
              { by: "GSTRANGER", evidence: false },
              { by: null, evidence: false }
            ])
          })
        )
      )
    })
  },
  ["kernel", "catalog"]
)
