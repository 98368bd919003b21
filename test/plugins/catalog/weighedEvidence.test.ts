// The weight of evidence, on the tables themselves: a stranger that names a proven seller's recipient, that pays
// itself, and that waits; and an honest seller that changes a price or an account.
import { expect, layer } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { describeDatabases } from "../../support/databases.ts"
import { timed } from "../../support/timed.ts"
import { answerOf, openStore, shop } from "./store.ts"

const open = () => openStore({ versionsPerDayMax: 100, newResourcesPerDayMax: 1_000 })

const own = { payTo: "GOWNER", description: "Reports", amount: "1000", method: "POST" }
const buyer = { payer: "GBUYER", dollars: 0.0001 }

/** The account's authorization of declarations that name another recipient, in the form of its signature. */
const authorizedBy = (account: string, signature: string) => ({
  authorizedBy: (payTo: string) => Effect.succeed(payTo === account ? Option.some({ signature }) : Option.none())
})

describeDatabases(
  "the weight of evidence",
  (database) => {
    const services = Facts.layer.pipe(Layer.provideMerge(database), Layer.provideMerge(Supervisor.layer))
    layer(services, { timeout: "120 seconds", excludeTestServices: true })((it) => {
      const evidence = Effect.fnUntraced(function* (store: Effect.Success<ReturnType<typeof open>>) {
        return yield* store.sql<{ stands: boolean; established: boolean }>`select standing_at is not null as stands,
          established_at is not null as established from catalog_resources order by id`
      })

      it.effect(
        "an origin that names a recipient gives a stranger's words no evidence",
        timed(
          Effect.gen(function* () {
            const store = yield* open()
            yield* store.declare({ ...own, resource: `${shop}/invented` }, { payer: "GSTRANGER" })
            yield* store.probe(answerOf({ word: { payTos: ["GOWNER"], delisted: false } }))
            expect(yield* store.listing).toMatchObject({ ownership: "proven", grade: "claimed" })
            expect(yield* evidence(store)).toEqual([{ stands: false, established: false }])
            // The origin's own words count as evidence.
            yield* store.probe(answerOf({ said: [{ ...own, resource: `${shop}/invented` }] }))
            expect(yield* evidence(store)).toEqual([{ stands: true, established: true }])
          })
        )
      )

      it.effect(
        "words that a customer paid under resist any number of payers",
        timed(
          Effect.gen(function* () {
            const { listing, prices, settle } = yield* open()
            yield* settle(own, buyer)
            for (let at = 0; at < 5; at++) {
              yield* settle({ ...own, description: "Lies", amount: "1" }, { payer: `G${at}`, dollars: 5 })
              yield* settle({ ...own, description: "Mine", payTo: "GTHIEF" }, { payer: `H${at}`, dollars: 5 })
            }
            expect(yield* listing).toMatchObject({ description: "Reports", pay_tos: ["GOWNER"] })
            expect(yield* prices).toEqual(["1000"])
          })
        )
      )

      it.effect(
        "waiting displaces no words that customers still pay under",
        timed(
          Effect.gen(function* () {
            const { age, listing, now, settle } = yield* open()
            const lie = { ...own, description: "Lies", amount: "700" }
            yield* settle(own, buyer)
            yield* settle(lie, { payer: "GTHIEF", dollars: 1 })
            yield* TestClock.adjust("20 days")
            yield* settle(own, { ...buyer, now: yield* now })
            yield* TestClock.adjust("20 days")
            yield* settle(lie, { payer: "GTHIEF", dollars: 1, now: yield* now })
            expect(yield* listing).toMatchObject({ description: "Reports" })
            // No payment was made under them for thirty days; those under the others began earlier.
            yield* TestClock.adjust("12 days")
            yield* age
            yield* settle(lie, { payer: "GTHIEF", dollars: 1, now: yield* now })
            expect(yield* listing).toMatchObject({ description: "Lies" })
          })
        )
      )

      it.effect(
        "payments establish a listing by what ten payers risk, once each",
        timed(
          Effect.gen(function* () {
            const store = yield* open()
            for (let at = 0; at < 9; at++) yield* store.settle(own, { payer: `G${at}`, dollars: 40 })
            for (let at = 0; at < 9; at++) yield* store.settle(own, { payer: "G0", dollars: 40 })
            expect(yield* evidence(store)).toEqual([{ stands: true, established: false }])
            yield* store.settle(own, { payer: "G9", dollars: 1 })
            expect(yield* evidence(store)).toEqual([{ stands: true, established: true }])
          })
        )
      )

      it.effect(
        "payments under other words are no evidence for those shown",
        timed(
          Effect.gen(function* () {
            const store = yield* open()
            yield* store.probe(answerOf()).pipe(Effect.ignoreCause)
            yield* store.declare(own, { payer: "GSELLER", grade: "declared", signature: "s1" })
            yield* store.settle({ ...own, description: "Lies" }, { payer: "GSTRANGER", dollars: 1 })
            expect(yield* evidence(store)).toEqual([{ stands: false, established: false }])
            yield* store.settle(own, buyer)
            expect(yield* evidence(store)).toEqual([{ stands: true, established: false }])
          })
        )
      )

      it.effect(
        "the listed account's signature changes a price immediately, and its successor",
        timed(
          Effect.gen(function* () {
            const { declare, listing, prices, settle } = yield* open()
            yield* settle(own, buyer)
            yield* declare({ ...own, amount: "2000" }, { grade: "declared", signature: "s1" })
            expect(yield* prices).toEqual(["2000"])
            const moved = { ...own, payTo: "GNEW", amount: "2000" }
            expect(yield* declare(moved, authorizedBy("GTHIEF", "x"))).toMatchObject({ reason: "payto_conflict" })
            expect(yield* declare(moved, authorizedBy("GOWNER", "s2"))).toMatchObject({ decision: "updated" })
            expect(yield* listing).toMatchObject({ pay_tos: ["GNEW"], state: "active", grade: "declared" })
            expect(yield* prices).toEqual(["2000"])
            // The former account's key may have leaked, so it can no longer change anything, and neither can its
            // replaced signature.
            const back = { ...own, payTo: "GTHIEF" }
            expect(yield* declare(back, authorizedBy("GOWNER", "s3"))).toMatchObject({ reason: "payto_conflict" })
            expect(yield* declare(own, authorizedBy("GNEW", "s4"))).toMatchObject({ decision: "updated" })
            expect(yield* declare(moved, authorizedBy("GOWNER", "s2"))).toMatchObject({ reason: "payto_conflict" })
            expect(yield* listing).toMatchObject({ pay_tos: ["GOWNER"] })
          })
        )
      )

      it.effect(
        "an account's signature moves nothing that the origin said or an operator closed",
        timed(
          Effect.gen(function* () {
            const { declare, listing, probe, settle, sql } = yield* open()
            yield* settle(own, buyer)
            const moved = { ...own, payTo: "GNEW" }
            yield* sql`update catalog_resources set state = 'quarantined', state_reason = 'operator'`
            yield* declare(moved, authorizedBy("GOWNER", "s1"))
            expect(yield* listing).toMatchObject({ pay_tos: ["GOWNER"], state: "quarantined" })
            yield* sql`update catalog_resources set state = 'active', state_reason = null`
            yield* probe(answerOf({ said: [own] }))
            yield* declare(moved, authorizedBy("GOWNER", "s2"))
            expect(yield* listing).toMatchObject({ pay_tos: ["GOWNER"], grade: "origin" })
          })
        )
      )

      it.effect(
        "an origin that names a new account moves a proven seller's words to it",
        timed(
          Effect.gen(function* () {
            const store = yield* open()
            const names = (payTo: string) => answerOf({ word: { payTos: [payTo], delisted: false } })
            yield* store.settle(own, buyer)
            yield* store.probe(names("GOWNER"))
            // A rival that reads the document first claims other words for the new account.
            yield* store.declare({ ...own, payTo: "GNEW", description: "Lies" }, { payer: "GSTRANGER" })
            yield* store.probe(names("GNEW"))
            expect(yield* store.listing).toMatchObject({ pay_tos: ["GNEW"], description: "Reports", state: "active" })
            const paid = store.sql<{ pay_to: string }>`select pay_to from catalog_options where retired_at is null`
            expect(yield* paid).toEqual([{ pay_to: "GNEW" }])
            expect(yield* evidence(store)).toEqual([{ stands: true, established: false }])
            // Without a rival's claim too.
            yield* store.probe(names("GNEXT"))
            expect(yield* store.listing).toMatchObject({ pay_tos: ["GNEXT"], description: "Reports", state: "active" })
          })
        )
      )

      it.effect(
        "a squatter's words and evidence leave with its recipient",
        timed(
          Effect.gen(function* () {
            const store = yield* open()
            yield* store.settle({ ...own, payTo: "GSQUAT", description: "Mine" }, { payer: "GSTRANGER", dollars: 1 })
            expect(yield* evidence(store)).toEqual([{ stands: true, established: false }])
            yield* store.declare({ ...own, description: "Lies" }, { payer: "GSTRANGER" })
            yield* store.settle(own, buyer)
            yield* store.probe(answerOf({ word: { payTos: ["GOWNER"], delisted: false } }))
            // Among the claims for the recipient, the paid words are shown.
            expect(yield* store.listing).toMatchObject({ pay_tos: ["GOWNER"], description: "Reports" })
          })
        )
      )

      it.effect.each(["the origin's words", "a late sale"] as const)(
        "free words gain no evidence from %s in quarantine",
        (source) =>
          timed(
            Effect.gen(function* () {
              const store = yield* open()
              const squat = { ...own, payTo: "GSQUAT", description: "Mine" }
              const recorded = yield* store.declare(squat, { payer: "GSTRANGER" })
              yield* store.probe(answerOf({ word: { payTos: ["GOWNER"], delisted: false } }))
              expect(yield* store.listing).toMatchObject({ state: "quarantined", pay_tos: ["GOWNER"] })
              if (source === "a late sale") {
                const sale = { transaction: "late", payer: "GBUYER", payTo: "GSQUAT", amount: "1000", risked: "1000" }
                yield* store.sightings.touch(recorded.resourceId!, yield* store.now, {
                  ...sale,
                  claim: recorded.claim!
                })
                yield* store.sightings.flush
              } else yield* store.probe(answerOf({ said: [own] }))
              yield* store.declare({ ...own, description: "Lies" }, { payer: "GSTRANGER" })
              const { description } = yield* store.listing
              expect([description, ...(yield* evidence(store))]).toEqual(
                source === "a late sale"
                  ? ["Lies", { stands: false, established: false }]
                  : ["Reports", { stands: true, established: true }]
              )
            })
          )()
      )
    })
  },
  ["kernel", "catalog"]
)
