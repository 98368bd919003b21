// Why declarations were rejected, including those never listed: readable by operators only.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { explain, type Json, queryDeclaration, verified } from "./support.ts"
import { catalogWorld } from "./catalogWorld.ts"

describe.each(databaseKinds)("rejected declarations on %s", (database) => {
  it.live(
    "rejected declarations appear with details in operator analytics only [S257]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { declare, facilitator, payTo } = yield* catalogWorld({
            database,
            closeMillis: 1_000,
            set: ["plugins=[ledger-local, x402-exact, catalog, analytics]", "catalog_security.probe_origins=false"]
          })
          const url = "https://shop.example.com/never"
          const extension = { ...queryDeclaration(), schema: { required: ["nothing"] } }
          for (let time = 0; time < 2; time++) yield* verified(facilitator, yield* declare({ url, extension }))
          const page = yield* eventually(
            Effect.map(facilitator.ask("/analytics/v1/rejections"), ({ json }) => json as Json),
            ({ items }) => items.length > 0
          )
          expect(page["items"]).toMatchObject([
            { url, pay_to: payTo, stage: "verified", reason: "schema_invalid", resource_id: null, type: "http" }
          ])
          expect(page["items"][0].detail).toContain("required")
          expect(page["pagination"]).toEqual({ limit: 50, offset: 0, total: 1 })
          expect(JSON.stringify(yield* explain(facilitator, url))).not.toContain(page["items"][0].detail)
        })
      ),
    240_000
  )

  it.live(
    "a declaration with unstorable text stops no other seller's sale",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { declare, facilitator } = yield* catalogWorld({
            database,
            closeMillis: 1_000,
            set: ["plugins=[ledger-local, x402-exact, catalog, analytics]", "catalog_security.probe_origins=false"]
          })
          const url = "https://shop.example.com/hostile"
          const strange = (key: string) => ({
            ...queryDeclaration(),
            info: { ...queryDeclaration()["info"], [key]: 1 },
            schema: { properties: { [key]: { type: "string" } } }
          })
          for (const key of ["a\u0000b", `${"a".repeat(98)}\u{1f600}`])
            yield* verified(facilitator, yield* declare({ url, extension: strange(key) }))
          const sold = yield* declare({ url: "https://other.example.com/sold", extension: queryDeclaration() })
          expect((yield* facilitator.settle(sold)).json).toMatchObject({ success: true })
          const sales = facilitator.sql<{ count: bigint }>`select count(*) from catalog_sales`
          yield* eventually(sales, ([row]) => row!.count === 1n)
          const page = yield* eventually(
            Effect.map(facilitator.ask("/analytics/v1/rejections"), ({ json }) => json as Json),
            ({ items }) => items.length === 2
          )
          expect(page["items"].map(({ url }: Json) => url)).toEqual([url, url])
        })
      ),
    240_000
  )
})
