// Spam in the catalog: listings stuffed with common words, and a seller of 180 near-identical ones. The honest listing
// stays on the first page of every query it answers, and no hit is lost under a cursor.
import { NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { type IngestedResource, ingest } from "../../../relevance/ingest.ts"
import { databaseKinds } from "../../../support/databases.ts"
import { type Facilitator, startFacilitator } from "../../../support/facilitator.ts"
import { eventually } from "../../../support/eventually.ts"

const listing = (name: string, serviceName: string, description: string, payTo: string): IngestedResource => ({
  name,
  type: "http",
  url: `https://${name}.example/v1`,
  toolName: "",
  serviceName,
  description,
  tags: [],
  info: { input: { type: "http", method: "GET" } },
  options: [{ scheme: "exact", network: "ledger:testnet", asset: "CASSET", amount: "100", payTo }]
})

const honest = [
  listing("forecast", "Forecast", "Weather forecast for any city: rain, wind and temperature by the hour.", "GHONEST1"),
  listing("exchange", "Exchange", "Currency exchange rates, dollars and euros, every minute.", "GHONEST2"),
  listing("speech", "Speech", "Turns text into speech with a natural voice.", "GHONEST3")
]
const words = "weather forecast city currency exchange rates dollars euros text speech voice translate image price"
const stuffed = Array.from({ length: 3 }, (_, at) =>
  listing(`stuffed-${at}`, words, `${words} ${words} best cheap ${at}`, `GSTUFFED${at}`)
)
const crowd = Array.from({ length: 180 }, (_, at) =>
  listing(
    `crowd-${at}`,
    `Weather forecast ${at}`,
    `Weather forecast exchange rates speech voice, city ${at}.`,
    "GCROWD"
  )
)
const others = Array.from({ length: 60 }, (_, at) =>
  listing(`other-${at}`, `Ledger ${at}`, `Bookkeeping accounts, series ${at}.`, `GOTHER${at}`)
)
const all = [...crowd, ...stuffed, ...others, ...honest]

/**
 * Sellers with one listing each and almost the same text: in three wordings, in look-alike letters, or only in tags.
 */
const sybils = Array.from({ length: 200 }, (_, at) => {
  const said = [
    `Weather forecast exchange rates text to speech voice, city ${at}.`,
    `Wettervorhersage für die Stadt und der Wechselkurs, weather forecast speech ${at}.`,
    "Weather forecast, exchange rates and speech, voice of any city".replaceAll("a", "\u0430"),
    "All that you need for less"
  ][at % 4]!
  const one = listing(`sybil-${at}`, `Weather forecast ${at}`, `${said} ${at}`, `GSYBIL${at}`)
  return at % 4 === 3 ? { ...one, tags: words.split(" ") } : one
})

const queries = [
  ["weather forecast", "forecast"],
  ["weather forecast for a city", "forecast"],
  ["will it rain, and how strong is the wind", "forecast"],
  ["currency exchange rates", "exchange"],
  ["dollars to euros", "exchange"],
  ["text to speech", "speech"],
  ["natural voice", "speech"]
] as const

interface Understood {
  readonly understood?: { readonly words: ReadonlyArray<string>; readonly maxPrice?: string; readonly prefers?: string }
}

const ask = (facilitator: Facilitator, parameters: Record<string, string>) =>
  Effect.map(
    facilitator.ask(`/discovery/search?${new URLSearchParams(parameters)}`),
    ({ json }) =>
      json as { resources: ReadonlyArray<{ name: string }>; pagination: { cursor: string | null } } & Understood
  )

const untilFound = (facilitator: Facilitator, count: number) =>
  eventually(
    Effect.gen(function* () {
      const [row] = yield* facilitator.sql<{ words: number; meanings: number }>`select
        (select count(*) from search_lexical_documents where (select changed = 0 from search_lexical_state
          limit 1))::int as words,
        (select count(*) from search_semantic_word_vectors)::int as meanings`
      return row!.words === count && row!.meanings === count
    })
  )

describe.each(databaseKinds)("search among spam on %s", (database) => {
  it(
    "an honest listing stays on the first page among one-listing spam sellers",
    () =>
      Effect.runPromise(
        Effect.scoped(
          Effect.gen(function* () {
            const facilitator = yield* startFacilitator({ database, channels: 1 })
            yield* facilitator.publishedBy(ingest(facilitator.sql, [...sybils, ...others, ...honest]))
            yield* untilFound(facilitator, sybils.length + others.length + honest.length)
            // Each of them was paid once, by some payer.
            yield* facilitator.sql`update catalog_activity set earned = 1`
            yield* facilitator.sql`update catalog_resources set standing_at = now()`
            for (const [query, name] of queries) {
              const { resources } = yield* ask(facilitator, { query })
              expect(
                resources.map(({ name }) => name),
                query
              ).toContain(name)
            }
          })
        ).pipe(Effect.provide(NodeServices.layer)) as Effect.Effect<void>
      ),
    240_000
  )

  it(
    "an honest listing stays on every first page, and paging loses none",
    () =>
      Effect.runPromise(
        Effect.scoped(
          Effect.gen(function* () {
            const facilitator = yield* startFacilitator({ database, channels: 1 })
            yield* facilitator.publishedBy(ingest(facilitator.sql, all))
            yield* untilFound(facilitator, all.length)
            for (const [query, name] of queries) {
              const { resources } = yield* ask(facilitator, { query })
              const names = resources.map(({ name }) => name)
              expect(names, query).toContain(name)
              // If the others do not fill the page, the crowd follows behind all of them.
              const others = names.slice(0, 1 + names.findLastIndex((one) => !one.startsWith("crowd")))
              expect(others.filter((one) => one.startsWith("crowd")).length, query).toBeLessThanOrEqual(3)
            }
            const seen: Array<string> = []
            let cursor: string | null = ""
            while (cursor !== null) {
              const page: Effect.Success<ReturnType<typeof ask>> = yield* ask(facilitator, {
                query: "weather forecast",
                limit: "50",
                ...(cursor === "" ? {} : { cursor })
              })
              seen.push(...page.resources.map(({ name }) => name))
              cursor = page.pagination.cursor
            }
            expect(new Set(seen).size).toBe(seen.length)
            expect(seen.filter((name) => name.startsWith("crowd"))).toHaveLength(180)
            // Price words are not search terms, and the response shows how they were read.
            const [cheap, limited] = [
              yield* ask(facilitator, { query: "cheapest weather forecast" }),
              yield* ask(facilitator, { query: "weather forecast under $0.001 per call" })
            ]
            expect(cheap.understood).toEqual({ words: ["cheapest"], prefers: "cheap" })
            expect(cheap.resources.map(({ name }) => name)).toContain("forecast")
            const { maxPrice, words } = limited.understood!
            expect([maxPrice, words]).toEqual(["10000", ["under $0.001 per call"]])
            // None of these listings accepts an asset that a dollar price refers to.
            expect(limited.resources).toEqual([])
            // A search for one seller finds it.
            const { resources } = yield* ask(facilitator, { query: "weather forecast", payTo: "GCROWD" })
            expect(resources).toHaveLength(20)
          })
        ).pipe(Effect.provide(NodeServices.layer)) as Effect.Effect<void>
      ),
    240_000
  )
})
