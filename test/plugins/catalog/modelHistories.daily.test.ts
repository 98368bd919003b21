// The product takes the attacks that break a listing's model: for each rule the shortest history that breaks the model
// without it is played on the real store, and each step leaves the listing that the model with all rules has.
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Verdicts } from "../../../plugins/catalog/ownership/Verdicts.ts"
import type { Carrier } from "../../../plugins/catalog/store/Recorded.ts"
import { answerOf, openStore, type Said, shop } from "./store.ts"
import { describeDatabases } from "../../support/databases.ts"
import { timed } from "../../support/timed.ts"
import { listing, replayListing } from "../../model/listing.ts"

const saidOf = (words: string): Said => {
  const [description = "", account = ""] = words.split(":")
  return { description, payTo: `G${account}`, amount: "1000", method: "POST" }
}

const openProduct = Effect.gen(function* () {
  const store = yield* openStore({ versionsPerDayMax: 100, newResourcesPerDayMax: 1_000 })
  const { sightings, sql } = store
  const probes: Array<ReturnType<typeof answerOf>> = []

  const declare = Effect.fnUntraced(function* (words: string, kind: string, at: number) {
    const isSettled = kind.endsWith("settled")
    const said = saidOf(words)
    const recorded = yield* store.declare(said, {
      payer: `GBUYER${at}`,
      stage: isSettled ? "settled" : "verified",
      ...(kind.startsWith("signed") ? { grade: "declared", signature: `signature ${at}` } : {})
    } satisfies Partial<Carrier>)
    if (!isSettled) return
    const sale = { transaction: `sale ${at}`, payer: `GBUYER${at}`, payTo: said.payTo!, amount: "1000", risked: "1000" }
    const claimed = recorded.claim === undefined ? sale : { ...sale, claim: recorded.claim }
    if (recorded.decision !== "rejected") yield* sightings.touch(recorded.resourceId!, yield* store.now, claimed)
    else if (recorded.isContender === true) yield* sightings.contend(recorded.resourceId!, yield* store.now, claimed)
  })

  const play = Effect.fnUntraced(function* (did: string, at: number) {
    const [, words, kind] = /^(\S+) by a payment that is (.+)$/.exec(did) ?? []
    if (words !== undefined) return yield* declare(words, kind!, at)
    const [, account, served] = /^the origin names (\S*) ?([^,]*)/.exec(did) ?? []
    if (account !== undefined) {
      const payTos = account === "" || account.startsWith(",") ? [] : [`G${account}`]
      const word = { payTos, delisted: did.endsWith("delists") }
      return void probes.push(answerOf({ word, said: served === "" ? [] : [saidOf(served!)] }))
    }
    if (did.startsWith("the probe")) return yield* store.probe(probes.pop()!)
    if (did === "the sale is stored") return yield* sightings.flush
    if (did === "thirty days pass") return yield* TestClock.adjust("31 days")
    const { applyDomain } = Context.get(store.parts, Verdicts)
    return yield* applyDomain(shop, [`G${did.at(-1)}`], yield* store.now)
  })

  const shown = Effect.gen(function* () {
    const { description, pay_tos, state } = yield* store.listing
    const [row] = yield* sql<{ stands: boolean; paid: string }>`select standing_at is not null as stands,
      (select pay_to from catalog_options where retired_at is null order by id desc limit 1) as paid
      from catalog_resources`
    return {
      payTo: pay_tos[0]!.slice(1),
      words: `${description}:${row!.paid?.slice(1)}`,
      hasEvidence: row!.stands,
      state
    }
  })
  return { play, shown }
})

describeDatabases(
  "the histories of a listing",
  (database) => {
    const services = Facts.layer.pipe(Layer.provideMerge(database), Layer.provideMerge(Supervisor.layer))
    layer(services, { timeout: "240 seconds", excludeTestServices: true })((it) => {
      // An answer that a later probe overtook is refused by the fence, which `probes.test.ts` tests.
      it.effect.each(listing.rules.filter((rule) => !rule.startsWith("an overtaken")))(
        "hold, by the rule: %s",
        (rule) =>
          timed(
            Effect.gen(function* () {
              const { play, shown } = yield* openProduct
              const history = listing.explore(rule).broken!.slice(1, -1)
              for (const [at, expected] of replayListing(history).entries()) {
                if (expected === undefined) continue
                yield* play(history[at]!, at)
                const { hasEvidence, payTo, state, words } = expected
                // A quarantined listing is not shown.
                const visible = state === "active" ? { payTo, words, hasEvidence, state } : { payTo, state }
                expect([history[at], yield* shown]).toMatchObject([history[at], visible])
              }
            })
          )()
      )
    })
  },
  ["kernel", "catalog"]
)
