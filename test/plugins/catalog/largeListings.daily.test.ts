// The size of listings and of the pages that show them: the costs that routes declare hold for the largest listings.
import { expect, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { documentBytesMax } from "../../../plugins/catalog/Config.ts"
import { browse as browseCost } from "../../../plugins/catalog/description.ts"
import { listResources } from "../../bench/viewsFill.ts"
import { describeDatabases } from "../../support/databases.ts"
import { type Answer, startFacilitator } from "../../support/facilitator.ts"
import { timed } from "../../support/timed.ts"
import { answerOf, openStore } from "./store.ts"

const methods = ["DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"]
const small = { metadataBytesMax: 1_024 }

describeDatabases(
  "a listing's size",
  (database) => {
    const services = Facts.layer.pipe(Layer.provideMerge(database), Layer.provideMerge(Supervisor.layer))
    layer(services, { timeout: "120 seconds", excludeTestServices: true })((it) => {
      it.effect(
        "operations beyond a listing's bytes are refused, and those of its origin left out",
        timed(
          Effect.gen(function* () {
            const { declare, probe, sql } = yield* openStore({ ...small, versionsPerDayMax: 100 })
            const stored = Effect.map(
              sql<{ bytes: number; methods: ReadonlyArray<string> }>`select octet_length(document) as bytes,
                array(select jsonb_array_elements(declaration->'operations')->>'method') as methods
                from catalog_resources`,
              ([row]) => row
            )
            const long = { description: "x".repeat(documentBytesMax(small)) }
            expect(yield* declare(long)).toMatchObject({ decision: "rejected", reason: "metadata_too_large" })
            expect(yield* stored).toBeUndefined()
            const outcomes = yield* Effect.forEach(methods, (method) => declare({ method }, { grade: "declared" }))
            expect(outcomes[0]).toMatchObject({ decision: "listed" })
            expect(outcomes.at(-1)).toMatchObject({ decision: "rejected", reason: "metadata_too_large" })
            const before = (yield* stored)!
            expect(before.bytes).toBeLessThanOrEqual(documentBytesMax(small))
            yield* probe(answerOf({ said: methods.map((method) => ({ method, description: "Its own words" })) }))
            const after = (yield* stored)!
            expect(after.bytes).toBeLessThanOrEqual(documentBytesMax(small))
            expect(after.methods).toEqual(methods.slice(0, after.methods.length))
            expect(after.methods.length).toBeGreaterThan(0)
          })
        )
      )
    })
  },
  ["kernel", "catalog"]
)

it.live(
  "a page of the largest listings ends by its bytes",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({
        channels: 1,
        set: ["plugins=[ledger-local, x402-exact, catalog]", "catalog_security.probe_origins=false"]
      })
      yield* listResources(facilitator.sql, { settlements: 0, buyers: 0, sellers: 0, resources: 130, historyDays: 0 })
      const pad = documentBytesMax({ metadataBytesMax: 131_072 }) - 300
      yield* facilitator.sql`update catalog_resources set document = json_build_object('resource', resource,
        'type', 'http', 'x402Version', 2, 'accepts', '[]'::json, 'pad', repeat('x', ${pad}::int))::text`
      for (const query of ["limit=100", "limit=100&type=http", "limit=60&offset=30", "limit=1000"]) {
        const shown: Array<string> = []
        for (let cursor: string | null = ""; cursor !== null;) {
          const page: Answer = yield* facilitator.ask(`/discovery/resources?${query}&cursor=${cursor}`)
          expect(Buffer.byteLength(page.text), query).toBeLessThan(browseCost.cost.bytesOut)
          shown.push(...page.json.items.map(({ resource }: { readonly resource: string }) => resource))
          cursor = page.json.pagination.cursor
        }
        expect([shown.length, new Set(shown).size], query).toEqual(query.includes("offset") ? [100, 100] : [130, 130])
      }
    }).pipe(Effect.scoped),
  240_000
)
