// The public status: figures of real settlements and of the process's own beats, as JSON, page and CSV.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "../../support/eventually.ts"
import { startFacilitator } from "../../support/facilitator.ts"

it.live(
  "the status of the last 30 days is public, and lists interruptions of two minutes and more",
  () =>
    Effect.gen(function* () {
      const world = yield* startFacilitator({ environment: { FACILITATOR_API_KEYS: "shop:shop-secret-0123456789" } })
      const payer = yield* world.account()
      const { body } = yield* world.payment({ payer, payTo: (yield* world.account(0n)).publicKey(), amount: 10_000n })
      const settled = yield* world.settle(body, { authorization: "Bearer shop-secret-0123456789" })
      expect(settled.json).toMatchObject({ success: true })
      yield* eventually(world.sql`select 1 from kernel_heartbeats`, ({ length }) => length > 0)
      // An hour ago two beats, eight minutes apart.
      yield* world.sql`insert into kernel_heartbeats values
        (date_trunc('minute', now()) - interval '60 minutes'), (date_trunc('minute', now()) - interval '52 minutes')`
      const { json, status } = yield* world.ask("/status")
      expect(status).toBe(200)
      expect(json).toMatchObject({ days: 30, settlements: "1", ended_in_two_ledgers: expect.any(Number) })
      expect(json.settle_p95_ms).toBeGreaterThan(0)
      expect(json.verify_p95_ms).toBeGreaterThan(0)
      expect(json.availability).toBeLessThan(0.1)
      expect(json.items).toHaveLength(2)
      expect(Date.parse(json.items[1].to) - Date.parse(json.items[1].from)).toBe(7 * 60_000)
      const page = yield* world.ask("/status", { headers: { accept: "text/html" } })
      expect(page.headers.get("content-type")).toContain("text/html")
      expect(page.text).toContain("Status, last 30 days")
      const table = yield* world.ask("/status", { headers: { accept: "text/csv" } })
      expect(table.text.split("\r\n")[0]).toBe("from,to")
      expect(JSON.stringify(json)).not.toContain(payer.publicKey())
    }).pipe(Effect.scoped),
  240_000
)
