// The public status: figures of real settlements and of the process's own heartbeats, as JSON, page and CSV.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { databaseKinds } from "../../../support/databases.ts"
import { eventually } from "../../../support/eventually.ts"
import { startFacilitator } from "../../../support/facilitator.ts"

const environment = { FACILITATOR_API_KEYS: "shop:shop-secret-0123456789" }

describe.each(databaseKinds)("the status of the last 30 days on %s", (database) => {
  it.live(
    "is public, and lists incidents with begin, end and cause",
    () =>
      Effect.gen(function* () {
        const world = yield* startFacilitator({ environment, database })
        const payer = yield* world.account()
        const { body } = yield* world.payment({ payer, payTo: (yield* world.account(0n)).publicKey(), amount: 10_000n })
        const settled = yield* world.settle(body, { authorization: "Bearer shop-secret-0123456789" })
        expect(settled.json).toMatchObject({ success: true })
        yield* eventually(world.sql`select 1 from kernel_heartbeats`, ({ length }) => length > 0)
        // An hour ago two beats, eight minutes apart; and half an hour ago three minutes of an incident.
        yield* world.sql`insert into kernel_heartbeats values
          (date_trunc('minute', now()) - interval '60 minutes'), (date_trunc('minute', now()) - interval '52 minutes')`
        yield* world.sql`insert into dashboard_incidents select 'ledger_stalled', date_trunc('minute', now())
          - interval '30 minutes' + minute * interval '1 minute' from generate_series(0, 2) minute`
        const { json, status } = yield* world.ask("/status")
        expect(status).toBe(200)
        expect(json).toMatchObject({ days: 30, settlements: "1", ended_in_two_ledgers: expect.any(Number) })
        expect(json.settle_p95_ms).toBeGreaterThan(0)
        expect(json.verify_p95_ms).toBeGreaterThan(0)
        expect(json.verify_p95_ms).toBeLessThan(json.settle_p95_ms)
        expect(json.availability).toBeLessThan(0.1)
        expect(json.checks).toBeGreaterThanOrEqual(60)
        expect(json.daily).toHaveLength(30)
        // The operation view has the same figures of the same payments.
        const standing = yield* world.ask("/dashboard/v1/standing")
        expect(standing.json.pace).toMatchObject({ over: 1, p95_ms: json.settle_p95_ms })
        const minutesOf = ({ from, to }: { from: string; to: string }) => (Date.parse(to) - Date.parse(from)) / 60_000
        const found = json.items.map((item: any) => [item.cause, minutesOf(item)])
        expect(found).toEqual([
          ["ledger_stalled", 3],
          ["interruption", expect.any(Number)],
          ["interruption", 7]
        ])
        expect(JSON.stringify(json)).not.toContain(payer.publicKey())
        const page = yield* world.ask("/status", { headers: { accept: "text/html" } })
        expect(page.headers.get("content-type")).toContain("text/html")
        expect(page.headers.get("content-security-policy")).not.toContain("script")
        for (const part of ["The last 60 minutes", "No incident now", "3 min", "No new ledger was observed"])
          expect(page.text).toContain(part)
        const table = yield* world.ask("/status", { headers: { accept: "text/csv" } })
        const lines = table.text.split("\r\n")
        expect(lines[0]).toBe("cause,summary,from,to")
        expect(lines[1]).toMatch(/^ledger_stalled,No new ledger was observed[^,]+,20[^,]+Z,20[^,]+Z$/)
        // Within seconds it returns the same answer, regardless of new data.
        yield* world.sql`delete from dashboard_incidents`
        expect((yield* world.ask("/status")).json).toEqual(json)
      }).pipe(Effect.scoped),
    240_000
  )
})
