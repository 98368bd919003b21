// A paid flood: rivals on separate origins, each paid once with dust, repeat the exact words that a listing with one
// genuine customer answers. Even when they outnumber a branch's candidates, they hide nothing, and they take no place
// from the listing under its own name.
import { NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { expect, it } from "vitest"
import { ingest } from "../../../relevance/ingest.ts"
import { pay } from "../../../relevance/costToFake.ts"
import { untilIndexed } from "../../../relevance/untilIndexed.ts"
import { startFacilitator } from "../../../support/facilitator.ts"
import { fieldListings } from "./fieldListings.ts"

const dust = { payers: 1, each: 0.00001 }

it("two hundred rivals paid with dust hide no listing with a customer", { timeout: 240_000 }, () =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const victim = fieldListings[0]!
        const rivals = Array.from({ length: 200 }, (_, at) => {
          const isUnderItsName = at % 2 === 0
          const name = `rival-${at}`
          return {
            ...victim,
            name,
            serviceName: `Weather forecast ${at}`,
            description: `Weather forecast, the weather forecast number ${at}. ${at % 7} weather forecasts`,
            url: isUnderItsName ? `${victim.url}/invented/${at}` : `https://${name}.example/v1`,
            options: isUnderItsName ? victim.options : victim.options.map((one) => ({ ...one, payTo: `G${name}` }))
          }
        })
        const facilitator = yield* startFacilitator({ database: "pglite", channels: 1 })
        yield* facilitator.publishedBy(ingest(facilitator.sql, [...fieldListings, ...rivals]))
        const honest = fieldListings.map(({ name }) => name)
        yield* pay(facilitator, honest, { ...dust, days: 1 })
        const [early, late] = [rivals.slice(0, 100), rivals.slice(100)]
        for (const [at, some] of [early, late].entries())
          yield* pay(
            facilitator,
            some.map(({ name }) => name),
            { ...dust, days: 0.5 - at / 4 }
          )
        yield* facilitator.sql`update search_lexical_state set changed = changed + 1`
        yield* untilIndexed(facilitator, fieldListings.length + rivals.length)
        for (const query of ["weather forecast", "forecast for a place"]) {
          const { json } = yield* facilitator.ask(`/discovery/search?${new URLSearchParams({ query })}`)
          expect([query, json.resources[0]?.name]).toEqual([query, victim.name])
        }
      })
    ).pipe(Effect.provide(NodeServices.layer)) as Effect.Effect<void, unknown>
  )
)
