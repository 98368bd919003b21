// Limits change without a restart: by the API here, by a row that another replica wrote, and back to the settings.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { databaseKinds } from "../../../support/databases.ts"
import { eventually } from "../../../support/eventually.ts"
import { startFacilitator } from "../../../support/facilitator.ts"

const environment = {
  FACILITATOR_API_KEYS: "shop:shop-secret-0123456789,poor:poor-secret-0123456789",
  OPERATOR_API_KEYS: "ops:ops-secret-0123456789"
}
const shop = { authorization: "Bearer shop-secret-0123456789" }
const poor = { authorization: "Bearer poor-secret-0123456789" }
const ops = { authorization: "Bearer ops-secret-0123456789", "content-type": "application/json" }

describe.each(databaseKinds)("limits on %s", (database) => {
  it.live(
    "a budget changes by key and for everyone while the facilitator runs",
    () =>
      Effect.gen(function* () {
        const settings = ["limits.max_sponsored_stroops_per_day_by_key={poor: 0}"]
        const world = yield* startFacilitator({ environment, database, set: settings })
        const payer = yield* world.account()
        const payTo = (yield* world.account(0n)).publicKey()
        const reasonFor = Effect.fnUntraced(function* (key: typeof shop) {
          const { body } = yield* world.payment({ payer, payTo, amount: 10_000n })
          const { json } = yield* world.verify(body, key)
          return json.isValid === true ? "valid" : (json.invalidReason as string)
        })
        const reasonOf = reasonFor(shop)
        const set = (change: object) =>
          world.ask("/dashboard/v1/moves", {
            method: "POST",
            headers: ops,
            body: JSON.stringify({ move: "limit", note: "a busy day", ...change })
          })
        const perKey = "max_sponsored_stroops_per_key_per_day"
        expect(yield* reasonOf).toBe("valid")
        expect((yield* set({ name: perKey, key: "shop", value: "0" })).json).toEqual({ done: true })
        expect(yield* reasonOf).toMatch(/sponsor_budget_exceeded$/)
        expect((yield* set({ name: perKey, key: "shop", value: "6000000" })).status).toBe(200)
        expect(yield* reasonOf).toBe("valid")
        // Another key's limit from the settings stays, until it is changed too.
        expect(yield* reasonFor(poor)).toMatch(/sponsor_budget_exceeded$/)
        expect((yield* set({ name: perKey, key: "poor", value: "6000000" })).status).toBe(200)
        expect(yield* reasonFor(poor)).toBe("valid")
        expect((yield* set({ name: perKey, key: "poor", value: null })).status).toBe(200)
        expect(yield* reasonFor(poor)).toMatch(/sponsor_budget_exceeded$/)
        expect((yield* set({ name: perKey, key: "shop", value: null })).status).toBe(200)
        // Replicas that share a server take over a change of another replica within five seconds.
        if (database === "postgres") {
          yield* world.sql`insert into kernel_limits (name, value) values ('max_global_sponsored_stroops_per_day', 0)`
          yield* eventually(reasonOf, (reason) => reason.endsWith("sponsor_budget_exceeded"))
          yield* world.sql`delete from kernel_limits`
          yield* eventually(reasonOf, (reason) => reason === "valid")
        }
        for (const wrong of [
          { name: "max_pending_settlements", value: "0" },
          { name: "settle_per_second", key: "shop", value: "1" },
          { name: perKey, key: "Not A Label", value: "1" }
        ])
          expect((yield* set(wrong)).status).toBe(409)
        const misspelled = yield* set({ name: perKey, key: "shpo", value: "1" })
        expect([misspelled.status, misspelled.json.message]).toEqual([
          409,
          "no key of a caller has the label shpo; did you mean shop?"
        ])
        expect((yield* set({ name: perKey, key: "removed", value: null })).status).toBe(200)
        const { json } = yield* world.ask("/dashboard/v1/moves", { headers: ops })
        expect(json.items.at(-1)).toMatchObject({
          by: "ops",
          move: "limit",
          subject: `${perKey} of key:shop`,
          before: expect.stringMatching(/^[1-9][0-9]*$/),
          after: "0",
          outcome: "done"
        })
      }).pipe(Effect.scoped),
    240_000
  )
})
