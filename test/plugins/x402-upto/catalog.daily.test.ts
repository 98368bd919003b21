import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { max, startUpto } from "./world.ts"

const catalog = {
  info: {
    input: { type: "http", method: "GET", queryParams: { words: "5" } },
    output: { type: "json", example: { words: 5 } }
  },
  schema: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: { input: { type: "object" }, output: { type: "object" } },
    required: ["input"]
  }
}

describe("a metered resource", () => {
  it.live(
    "an upto resource is listed by its maximum; analytics count amounts transferred",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startUpto()
        const { payTo, payer } = yield* facilitator.parties()
        const resourceUrl = "http://127.0.0.1/metered"
        const versions = new Set<string>()
        for (const actual of [250n, max, 0n]) {
          const payment = yield* facilitator.upto({ payer, payTo, resourceUrl, extensions: { catalog } })
          yield* facilitator.verify(payment.verifyBody)
          const settled = yield* facilitator.settle(payment.settleBody(actual))
          assert.strictEqual(settled.json.success, true)
          let listed: any
          while (listed?.resource === undefined) {
            const found = yield* facilitator.ask(`/discovery/resource?type=http&url=${encodeURIComponent(resourceUrl)}`)
            listed = found.json
            yield* Effect.sleep("20 millis")
          }
          const [accept, ...others] = listed.resource.accepts
          assert.strictEqual(others.length, 0)
          assert.deepStrictEqual([accept.scheme, accept.amount], ["upto", String(max)])
          const [row] = (yield* facilitator.sql`select count(*)::int as versions from catalog_versions`) as any
          versions.add(String(row.versions))
        }
        assert.deepStrictEqual([...versions], ["1"])
        let totals: any
        do {
          totals = (yield* facilitator.ask("/analytics/v1/overview")).json
          yield* Effect.sleep("50 millis")
        } while (!/"3"/.test(JSON.stringify(totals)))
        assert.include(JSON.stringify(totals), `"${250n + max}"`)
      }).pipe(Effect.scoped) as Effect.Effect<void>,
    240_000
  )
})
