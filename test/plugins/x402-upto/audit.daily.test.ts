import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { compare } from "../../../kernel/audit/compare.ts"
import { databaseKinds } from "../../support/databases.ts"
import { readBooks } from "../../support/readBooks.ts"
import { max, startUpto } from "./world.ts"

describe.each(databaseKinds)("the audit on %s", (database) => {
  it.live(
    "the audit matches the ledger for partial, full and zero settlements",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startUpto({ database })
        const { payTo, payer } = yield* facilitator.parties()
        for (const actual of [250n, max, 0n]) {
          const payment = yield* facilitator.upto({ payer, payTo })
          assert.strictEqual((yield* facilitator.settle(payment.settleBody(actual))).json.success, true)
        }
        const { body } = yield* facilitator.payment({ payer, payTo, amount: 10n })
        assert.strictEqual((yield* facilitator.settle(body)).json.success, true)
        const { claims, view } = yield* readBooks(facilitator)
        assert.deepStrictEqual(compare(claims, view).mismatches, [])
        assert.strictEqual(compare(claims, view).settlements, 4)
        const claiming = (moved: string, change: string) => ({
          ...claims,
          settlements: claims.settlements.map((one) => (one.moved === moved ? { ...one, moved: change } : one))
        })
        const rulesOf = (changed: typeof claims) => compare(changed, view).mismatches.map(({ rule }) => rule)
        assert.include(rulesOf(claiming("250", "0")), "one movement")
        assert.include(rulesOf(claiming("0", "250")), "movement")
      }).pipe(Effect.scoped) as Effect.Effect<void>,
    240_000
  )
})
