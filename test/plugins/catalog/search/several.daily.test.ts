// Facets, feeds and matched words over listings with evidence and a stranger's free claims: claims are counted, but
// they displace no value and enter no feed, and a seller's markup stays text.
import { NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { type IngestedResource, ingest } from "../../../relevance/ingest.ts"
import { untilIndexed } from "../../../relevance/untilIndexed.ts"
import { testnetUsdc } from "../../../../runtime/redteam/buyer.ts"
import { databaseKinds } from "../../../support/databases.ts"
import { startFacilitator } from "../../../support/facilitator.ts"

const listing = (name: string, asset: string, amount: string, toolName = ""): IngestedResource => ({
  name,
  type: toolName === "" ? "http" : "mcp",
  url: `https://${name}.example/weather`,
  toolName,
  serviceName: `Weather ${name}`,
  description: "Weather forecast for any city. <img src=x onerror=alert(1)>",
  tags: ["weather"],
  info: {},
  options: [{ scheme: "exact", network: "ledger:testnet", asset, amount, payTo: `G${name}` }]
})

const sellers = [
  listing("alpha", testnetUsdc, "10000"),
  listing("beta", testnetUsdc, "5000000"),
  listing("gamma", testnetUsdc, "20000", "forecast")
]
const claims = Array.from({ length: 25 }, (_, at) =>
  [0, 1, 2, 3].map((of) => listing(`free-${at}-${of}`, `CFREE${at}`, "1"))
)

interface Count {
  readonly value: string
  readonly count: number
  readonly evidenced: number
}

describe.each(databaseKinds)("facets and feeds on %s", (database) => {
  it("free claims displace no facet, enter no feed; matches are positions", () =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* startFacilitator({ database, channels: 1 })
          const all = [...sellers, ...claims.flat()]
          yield* facilitator.publishedBy(ingest(facilitator.sql, all))
          yield* facilitator.sql`update catalog_resources
              set standing_at = now() - interval '1 day' + id * interval '1s'
            where resource like any (array['%alpha%', '%beta%', '%gamma%'])`
          yield* untilIndexed(facilitator, all.length)
          for (const query of ["", "query=weather+forecast"]) {
            const { json } = yield* facilitator.ask(`/discovery/facets?${query}`)
            const { asset, evidence, maxPrice, type } = json.facets as Record<string, ReadonlyArray<Count>>
            expect([json.counted, json.complete], query).toEqual([all.length, true])
            expect(asset![0], query).toEqual({ value: testnetUsdc, count: 3, evidenced: 3 })
            expect(asset, query).toHaveLength(20)
            expect(type).toContainEqual({ value: "mcp", count: 1, evidenced: 1 })
            expect(evidence).toContainEqual({ value: "none", count: 100, evidenced: 0 })
            const limits = maxPrice!.map(({ count, value }) => [Number(value), count])
            expect(limits.toSorted(([a = 0], [b = 0]) => a - b).map(([, count]) => count)).toEqual([1, 2, 2, 3, 3])
            const feed = yield* facilitator.ask(`/discovery/feed?${query}`)
            const items = feed.json.items as ReadonlyArray<{ readonly url: string; readonly content_html?: string }>
            expect(items.map(({ url }) => new URL(url).host.split(".")[0])).toEqual(["gamma", "beta", "alpha"])
            expect(items.every((item) => !("content_html" in item))).toBe(true)
            expect(feed.headers.get("cache-control")).toContain("max-age=300")
          }
          const filtered = yield* facilitator.ask("/discovery/resources?evidence=any")
          expect(filtered.json.pagination.total).toBe(3)
          const unrelated = yield* facilitator.ask("/discovery/feed?query=chess+openings")
          expect(unrelated.json.items).toEqual([])
          const ask = (query: string) => facilitator.ask(`/discovery/search?matches=1&limit=5&query=${query}`)
          const { json: matched } = yield* ask("wether+forecasting")
          expect(matched.corrected).toEqual([{ word: "wether", instead: "weather" }])
          const { description, serviceName } = matched.resources[0] as Readonly<Record<string, string>>
          const wordsAt = (text: string, spans: ReadonlyArray<readonly [number, number]>) =>
            spans.map(([start, end]) => text.slice(start, end))
          expect(wordsAt(serviceName!, matched.matches[0].serviceName)).toEqual(["Weather"])
          expect(wordsAt(description!, matched.matches[0].description)).toEqual(["Weather", "forecast"])
          expect(description).toContain("<img")
          // A stranger's free words correct no query, also for the misspelling itself, once a seller is established.
          yield* facilitator.sql`update catalog_resources set established_at = now() where standing_at is not null`
          const words = ["forccast forcaast forcasst foorcast", "forcast", "forcastx forcasty"]
          const typed = words.map((text, at) => ({
            ...listing(`typed-${at}`, testnetUsdc, "1"),
            serviceName: text,
            description: `${text} of weather`,
            tags: [text.split(" ")[0]!]
          }))
          yield* facilitator.publishedBy(ingest(facilitator.sql, typed))
          yield* untilIndexed(facilitator, all.length + typed.length)
          const { json: steered } = yield* ask("forcast+weather")
          expect(steered.corrected).toEqual([{ word: "forcast", instead: "forecast" }])
          const firsts = (steered.resources as ReadonlyArray<{ readonly resource: string }>).slice(0, 3)
          expect(firsts.filter(({ resource }) => resource.includes("typed"))).toEqual([])
          const { json: plain } = yield* ask("forecast")
          expect([plain.corrected, plain.matches.length]).toEqual([undefined, 5])
          expect((yield* facilitator.ask("/discovery/facets?evidence=mine")).status).toBe(400)
        })
      ).pipe(Effect.provide(NodeServices.layer)) as Effect.Effect<void>
    ))
})
