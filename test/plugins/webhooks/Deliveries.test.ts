// The queue of deliveries: a lease of a row that the database has given again to another event holds nothing.
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { describe } from "vitest"
import { Deliveries } from "../../../plugins/webhooks/Deliveries.ts"
import { databaseKinds, databaseLayer } from "../../support/databases.ts"

const settlement = (n: number) => `00000000-0000-4000-a000-00000000000${n}`

describe.each(databaseKinds)("deliveries on %s", (kind) => {
  const tested = Deliveries.layer.pipe(Layer.provideMerge(databaseLayer(kind, ["kernel", "webhooks"])))
  layer(tested, { timeout: "240 seconds", excludeTestServices: true })((it) => {
    it.effect("a lease from before lost commits ends no other event's delivery", () =>
      Effect.gen(function* () {
        const deliveries = yield* Deliveries
        const sql = yield* SqlClient.SqlClient
        const pending = {
          receiver: "shop",
          position: 1n,
          type: "settlement.settled",
          at: new Date(0),
          body: null,
          principal: null
        }
        yield* deliveries.owe([{ ...pending, settlement: settlement(1) }])
        const [lease] = yield* deliveries.lease("shop", 1, 60_000)
        const rows = sql<{ state: string; body: string | null }>`select state, body from webhooks_deliveries`
        for (const change of [
          sql`update webhooks_deliveries set settlement = ${settlement(2)}::uuid`,
          sql`update webhooks_deliveries set settlement = ${settlement(1)}::uuid, type = 'settlement.recorded'`
        ]) {
          yield* change
          yield* deliveries.fix(lease!, "of the first")
          yield* deliveries.note(lease!, { _tag: "Delivered", answer: "204" })
          expect(yield* rows).toEqual([{ state: "due", body: null }])
        }
        yield* sql`update webhooks_deliveries set type = 'settlement.settled'`
        yield* deliveries.note(lease!, { _tag: "Delivered", answer: "204" })
        expect(yield* rows).toMatchObject([{ state: "delivered" }])
      })
    )

    it.effect("a receiver moved to another key gets nothing of the former", () =>
      Effect.gen(function* () {
        const deliveries = yield* Deliveries
        const sql = yield* SqlClient.SqlClient
        const pending = { receiver: "moved", type: "settlement.settled", at: new Date(0), body: null }
        const owners = ["key:former", "key:new", null]
        yield* deliveries.owe(
          owners.map((principal, at) => ({
            ...pending,
            position: BigInt(at + 1),
            settlement: settlement(at),
            principal
          }))
        )
        const leased = yield* deliveries.lease("moved", 4, 60_000, "key:new")
        expect(leased.map(({ settlement }) => settlement).toSorted()).toEqual([settlement(1), settlement(2)])
        yield* deliveries.announce([{ name: "moved", principal: "key:new" }])
        yield* deliveries.forget(3_600_000, 0)
        const due = sql<{ principal: string | null }>`select principal from webhooks_deliveries
          where receiver = 'moved' and state = 'due' order by position`
        expect(yield* due).toEqual([{ principal: "key:new" }, { principal: null }])
      })
    )

    it.effect("first attempts are leased before retries, and one retry with several", () =>
      Effect.gen(function* () {
        const deliveries = yield* Deliveries
        const owe = (...numbers: ReadonlyArray<number>) =>
          deliveries.owe(
            numbers.map((n) => ({
              ...{ receiver: "mixed", position: BigInt(n), settlement: settlement(n), type: "settlement.settled" },
              ...{ at: new Date(0), body: null, principal: null }
            }))
          )
        const lease = (limit: number) =>
          Effect.map(deliveries.lease("mixed", limit, 60_000), (leased) =>
            leased.map(({ settlement }) => Number(settlement.at(-1))).toSorted()
          )
        yield* owe(1, 2, 3)
        const leased = yield* deliveries.lease("mixed", 4, 60_000)
        for (const one of leased.toSorted((a, b) => Number(a.id - b.id)))
          yield* deliveries.note(one, { _tag: "Failed", answer: "500", pauseMillis: 0, isAsked: false })
        yield* owe(4, 5, 6, 7, 8)
        expect(yield* lease(1)).toEqual([4])
        expect(yield* lease(4)).toEqual([1, 5, 6, 7])
        expect(yield* lease(4)).toEqual([2, 3, 8])
        expect(yield* lease(4)).toEqual([])
      })
    )
  })
})
