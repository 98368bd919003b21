// The books: totals by calendar month and key, and a month's statement beyond any page, as CSV and as JSON lines.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { startFacilitator } from "../../support/facilitator.ts"

const environment = {
  FACILITATOR_API_KEYS: "shop:shop-secret-0123456789",
  OPERATOR_API_KEYS: "ops:ops-secret-0123456789"
}
const ops = { authorization: "Bearer ops-secret-0123456789" }
const copies = 12_000

describe.each(databaseKinds)("the books on %s", (database) => {
  it.live(
    "have decimal totals a month, and statements of any length",
    () =>
      Effect.gen(function* () {
        const world = yield* startFacilitator({ environment, database })
        const payer = yield* world.account()
        const payTo = (yield* world.account(0n)).publicKey()
        const { body } = yield* world.payment({ payer, payTo, amount: 12_345n })
        expect((yield* world.settle(body, { authorization: "Bearer shop-secret-0123456789" })).json.success).toBe(true)
        // The same settlement many times in January, an hour before and after its ends.
        const columns = (yield* world.sql<{ name: string }>`select column_name as name from information_schema.columns
          where table_name = 'kernel_settlements' and column_name not in
            ('id', 'authorization_key', 'inner_hash', 'recorded_at', 'closed_at', 'ended_by')
            and is_generated = 'NEVER'`).map(({ name }) => name)
        const rest = world.sql.literal(columns.join(", "))
        yield* world.sql`insert into kernel_settlements
            (id, authorization_key, inner_hash, recorded_at, closed_at, ${rest})
          select gen_random_uuid(), 'copy ' || n, md5(n::text) || md5(n::text), t, t, ${rest}
          from kernel_settlements, generate_series(0, ${copies + 1}) n,
            lateral (select case n when 0 then timestamptz '2026-01-31 23:59:59Z' when 1 then '2026-02-01 00:00:00Z'
              else timestamptz '2026-01-10 00:00Z' end as t) at`
        const { json, text } = yield* world.ask("/dashboard/v1/books", { headers: ops })
        const fee = text.match(/"fees_xlm":"([0-9.]+)"/)![1]
        expect(json.items[0]).toMatchObject({ key: "key:shop", settled: 1, amount: "0.0012345", fees_xlm: fee })
        expect(Number(fee)).toBeGreaterThan(0)
        const statement = (query: string) => world.ask(`/dashboard/v1/statement?${query}`, { headers: ops })
        const january = yield* statement("month=2026-01&format=jsonl&key=key:shop")
        const lines = january.text.trim().split("\n")
        expect(lines.length).toBe(copies + 1)
        expect(new Set(lines.map((line) => JSON.parse(line).settlement)).size).toBe(copies + 1)
        expect(JSON.parse(lines.at(-1)!)).toMatchObject({
          status: "settled",
          amount: "0.0012345",
          key: "key:shop",
          closed_at: "2026-01-31T23:59:59.000Z",
          ledger: expect.any(Number),
          fee_xlm: expect.stringMatching(/^0\.[0-9]{7}$/)
        })
        const csv = (yield* statement("month=2026-01&format=csv")).text.trim().split("\r\n")
        expect(csv.length).toBe(copies + 2)
        expect(csv.filter((line) => line.startsWith("settlement,"))).toEqual([csv[0]])
        expect((yield* statement("month=2026-02")).text.trim().split("\n").length).toBe(1)
        expect((yield* statement("month=2025-01")).text).toBe("")
        expect((yield* statement("month=1")).status).toBe(400)
        expect((yield* world.ask("/dashboard/v1/statement?month=2026-01")).status).toBe(401)
      }).pipe(Effect.scoped),
    240_000
  )
})
