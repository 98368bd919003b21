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
        const pending = { receiver: "shop", position: 1n, type: "settlement.settled", at: new Date(0), body: null }
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
  })
})
