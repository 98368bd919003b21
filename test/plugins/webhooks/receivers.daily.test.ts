// What a receiver may delay, miss or see of others: events that it never accepts, replicas whose settings differ, and a
// receiver whose name moves to another key.
import { expect, it } from "@effect/vitest"
import { Context, Effect, Option } from "effect"
import { describe } from "vitest"
import { databaseKinds, lasting } from "../../support/databases.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { Extensions } from "../../../kernel/payment/Extension.ts"
import { startReceiver } from "./receiver.ts"
import { environment, otherKey, paying, quick, receivers, secret, start, startLedger } from "./shop.ts"

describe.skipIf(!databaseKinds.includes("postgres"))("replicas with other receivers", () => {
  it.live(
    "a receiver gets the events that a replica without it reads",
    () =>
      Effect.gen(function* () {
        const ledger = yield* startLedger
        const pay = yield* paying(ledger)
        const database = yield* lasting("postgres")
        const [old, added] = [yield* startReceiver({ secret }), yield* startReceiver({ secret })]
        const hook = { key: "shop", url: old.url, secret_env: "SHOP_HOOK" }
        const startWith = (...list: ReadonlyArray<typeof hook & { readonly name?: string }>) =>
          startFacilitator({
            ...{ ledgerUrl: ledger.ledgerUrl, database, environment, channels: 3 },
            set: ["plugins=[x402-exact,webhooks]", ...quick, receivers(...list)]
          })
        const before = yield* startWith(hook)
        yield* startWith(hook, { ...hook, url: added.url, name: "added" })
        for (let times = 0; times < 3; times++) expect((yield* pay(before)).json).toMatchObject({ success: true })
        expect((yield* old.until(({ length }) => length >= 6)).length).toBe(6)
        expect((yield* added.until(({ length }) => length >= 6)).length).toBe(6)
      }).pipe(Effect.scoped),
    240_000
  )
})

describe("a receiver", () => {
  it.live(
    "events that a receiver never accepts delay none of its other events",
    () =>
      Effect.gen(function* () {
        const refused = new Set<string>()
        const receiver = yield* startReceiver({
          secret,
          answer: ({ data }) => (refused.size < 8 || refused.has(data.id) ? (refused.add(data.id), 500) : 204)
        })
        const facilitator = yield* start([receivers({ key: "*", url: receiver.url, secret_env: "SHOP_HOOK" })])
        const pay = yield* paying(facilitator)
        yield* Effect.all(
          Array.from({ length: 8 }, () => pay(facilitator)),
          { concurrency: 2 }
        )
        yield* receiver.until(() => refused.size === 8)
        // All of them are due again and again.
        yield* receiver.until(({ length }) => length >= 12)
        const before = receiver.received.length
        const paid = (yield* pay(facilitator)).json.transaction
        const events = yield* receiver.until((all) => all.some(({ data }) => data.transaction === paid))
        const first = events.findIndex(({ data }) => data.transaction === paid)
        const between = events.slice(before, first).filter(({ data }) => refused.has(data.id))
        // One message a second while it fails: those of the payment's own seconds.
        expect(between.length).toBeLessThan(6)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a hook that waits for a remote key holds no transaction",
    () =>
      Effect.gen(function* () {
        const receiver = yield* startReceiver({ secret })
        const facilitator = yield* start([receivers({ key: "*", url: receiver.url, secret_env: "SHOP_HOOK" })])
        const { onSettledAnswer } = Context.get(facilitator.services as Context.Context<any>, Extensions)
        yield* onSettledAnswer({
          key: "slow",
          add: () => Effect.as(Effect.sleep("2 seconds"), Option.some({ is: "late" }))
        })
        const pay = yield* paying(facilitator)
        let longest = 0
        const watching = Effect.gen(function* () {
          const begun = performance.now()
          yield* facilitator.sql`select 1`
          longest = Math.max(longest, performance.now() - begun)
          yield* Effect.sleep("50 millis")
        }).pipe(Effect.forever)
        yield* Effect.forkScoped(watching)
        yield* Effect.all(
          Array.from({ length: 4 }, () => pay(facilitator)),
          { concurrency: 4 }
        )
        const events = yield* receiver.until(({ length }) => length >= 8)
        const settled = events.filter(({ type }) => type === "settlement.settled")
        expect(settled.map(({ data }) => data.extensions)).toEqual(settled.map(() => ({ slow: { is: "late" } })))
        expect(longest).toBeLessThan(1_500)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a receiver moved to another key gets no former payment",
    () =>
      Effect.gen(function* () {
        const ledger = yield* startLedger
        const pay = yield* paying(ledger)
        const database = yield* lasting(databaseKinds[0]!)
        const former = yield* startReceiver({ secret, answer: () => 500 })
        const next = yield* startReceiver({ secret })
        const startWith = (key: string, url: string) =>
          startFacilitator({
            ...{ ledgerUrl: ledger.ledgerUrl, database, environment, channels: 3 },
            set: [
              "plugins=[x402-exact,webhooks]",
              ...quick,
              receivers({ key, url, secret_env: "SHOP_HOOK", name: "hook" })
            ]
          })
        const first = yield* startWith("shop", former.url)
        const paid = (yield* pay(first)).json.transaction
        yield* former.until(({ length }) => length >= 1)
        yield* first.stop
        const second = yield* startWith("other", next.url)
        expect((yield* pay(second, otherKey)).json).toMatchObject({ success: true })
        const events = yield* next.until(({ length }) => length >= 2)
        expect(events.map(({ data }) => data.transaction)).not.toContain(paid)
        const due = second.sql<{ principal: string }>`select distinct principal from webhooks_deliveries
          where state = 'due'`
        expect(yield* due).toEqual([{ principal: "key:shop" }])
      }).pipe(Effect.scoped),
    240_000
  )
})
