// Two hundred concurrent payments over ten channels, on a ledger that closes every second. A caller without a channel
// in time is asked to retry, and retries. At the end each payment has ended once, and the buyers' balances match the
// answers.
import { expect, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import process from "node:process"
import { describe } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { startFacilitator } from "../../support/facilitator.ts"

const payments = 200
const price = 10_000n

describe.each(databaseKinds)("a burst of %s", (database) => {
  it.live(
    "200 payments over ten channels settle once or are busy [S84, S85, S86, S340, S341]",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ database, channels: 10, closeMillis: 1_000 })
        const payers = yield* Effect.forEach(Array.from({ length: 4 }), () => facilitator.account())
        const seller = (yield* facilitator.account(0n)).publicKey()
        const bodies = yield* Effect.forEach(
          Array.from({ length: payments }),
          (_, index) =>
            Effect.map(
              facilitator.payment({
                payer: payers[index % payers.length]!,
                payTo: seller,
                amount: price,
                maxTimeoutSeconds: 300,
                extensions: { "payment-identifier": { info: { required: true, id: `one-of-a-burst-${index}` } } }
              }),
              ({ body }) => body
            ),
          { concurrency: 8 }
        )
        const startedAt = performance.now()
        const settle = (body: unknown) => facilitator.settle(body, { "idempotency-key": "burst-of-one-seller" })
        const firsts = yield* Effect.forEach(bodies, (body) => settle(body), { concurrency: "unbounded" })
        const kinds = firsts.map(({ json, status }) =>
          json.success === true ? "settled" : status === 503 ? "busy" : String(json.errorReason)
        )
        expect(kinds.filter((kind) => kind !== "settled" && kind !== "busy")).toEqual([])
        const settledFirst = kinds.filter((kind) => kind === "settled").length
        expect(settledFirst).toBeGreaterThanOrEqual(10)
        expect(yield* facilitator.balance(seller)).toBe(price * BigInt(settledFirst))
        expect(yield* facilitator.sql`select 1 from kernel_settlements`).toHaveLength(settledFirst)
        // Busy callers retry until they have an outcome; the others read the same answer again.
        const lasts = yield* Effect.forEach(
          bodies,
          (body) =>
            Effect.repeat(settle(body), {
              until: ({ status }) => status !== 503,
              schedule: Schedule.spaced("1 second")
            }),
          { concurrency: "unbounded" }
        )
        const settled = lasts.filter(({ json }) => json.success === true)
        const reasons = lasts.filter(({ json }) => json.success !== true).map(({ json }) => json.errorReason)
        const seconds = (performance.now() - startedAt) / 1_000
        process.stdout.write(
          `${settledFirst} settled at first, ${settled.length} in the end, in ${seconds.toFixed(1)} s\n`
        )
        // An authorization that ran out while it waited is refused before anything is stored.
        expect(reasons.filter((reason) => reason !== "invalid_ledger_auth_expired")).toEqual([])
        expect(new Set(settled.map(({ json }) => json.transaction)).size).toBe(settled.length)
        expect(yield* facilitator.balance(seller)).toBe(price * BigInt(settled.length))
        expect(
          yield* facilitator.sql`select state, count(*)::int as count from kernel_settlements group by state`
        ).toEqual([{ state: "settled", count: settled.length }])
        for (const [index, { json }] of firsts.entries()) {
          if (json.success === true) expect(lasts[index]!.json).toEqual(json)
        }
        expect(yield* facilitator.sql`select 1 from kernel_channels where settlement is not null`).toEqual([])
        expect(
          yield* facilitator.sql`select sum(reserved_stroops)::int8 as reserved from kernel_sponsor_budget`
        ).toEqual([{ reserved: 0n }])
      }).pipe(Effect.scoped),
    240_000
  )
})
