// A small catalog under a flood: free listings on made-up domains repeat the word for a seller's trade. The word still
// answers questions: free listings make no word common, however few sellers have evidence.
import { NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { type IngestedResource, ingest } from "../../../relevance/ingest.ts"
import { databaseKinds } from "../../../support/databases.ts"
import { eventually } from "../../../support/eventually.ts"
import { startFacilitator } from "../../../support/facilitator.ts"

const listing = (name: string, serviceName: string, description: string): IngestedResource => ({
  name,
  type: "http",
  url: `https://${name}.example/v1`,
  toolName: "",
  serviceName,
  description,
  tags: [],
  info: { input: { type: "http", method: "GET" } },
  options: [{ scheme: "exact", network: "ledger:testnet", asset: "CASSET", amount: "100", payTo: `G${name}` }]
})

const sellers = [
  listing("alpaca", "Alpaca grazing", "Where alpaca herds graze, season by season."),
  listing("weather", "Weather", "Weather forecast for any city, by the hour."),
  listing("exchange", "Exchange", "Currency exchange rates every minute."),
  listing("speech", "Speech", "Turns text into speech with a natural voice.")
]
const topics = ["hosting", "poetry", "chess", "recipes", "tax", "parking", "music", "fonts", "maps", "trivia"]
const flood = Array.from({ length: 60 }, (_, at) =>
  listing(`free-${at}`, `${topics[at % 10]} ${at}`, `Everything about ${topics[at % 10]}, alpaca ${at}.`)
)

describe.each(databaseKinds)("search of few sellers among free listings on %s", (database) => {
  it.each([1, 4])(
    "a flooded word still finds its seller where %i origins have evidence",
    (proven) =>
      Effect.runPromise(
        Effect.scoped(
          Effect.gen(function* () {
            const facilitator = yield* startFacilitator({ database, channels: 1 })
            const all = [...sellers, ...flood]
            yield* facilitator.publishedBy(ingest(facilitator.sql, all))
            // Counting payments have settled for the sellers; the flood was only verified.
            yield* facilitator.sql`update catalog_activity set earned = 1 where resource_id in (
              select id from catalog_resources order by id limit ${proven})`
            yield* facilitator.sql`update catalog_resources set standing_at = now() where id in (
              select id from catalog_resources order by id limit ${proven})`
            yield* facilitator.sql`update search_lexical_state set changed = changed + 1`
            yield* eventually(
              Effect.map(
                facilitator.sql<{ is: boolean }>`select changed = 0 and documents = ${all.length} as is
                  from search_lexical_state`,
                ([row]) => row?.is === true
              )
            )
            for (const query of ["music for alpaca", "weather on alpaca pastures"]) {
              const { json } = yield* facilitator.ask(`/discovery/search?${new URLSearchParams({ query })}`)
              expect([query, json.resources[0]?.name]).toEqual([query, "alpaca"])
            }
          })
        ).pipe(Effect.provide(NodeServices.layer)) as Effect.Effect<void>
      ),
    120_000
  )
})
