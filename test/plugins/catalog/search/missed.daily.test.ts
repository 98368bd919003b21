// Searches without a result, over whole facilitators: which queries are stored, how they are counted, and which callers
// may read them.
import { expect, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { describe } from "vitest"
import { csvOf } from "../../../../kernel/http/csv.ts"
import { keptWords } from "../../../../plugins/catalog/search/report/missedSearches.ts"
import { databaseKinds, lasting, usualKind } from "../../../support/databases.ts"
import { type Answer, type Facilitator, startFacilitator } from "../../../support/facilitator.ts"
import { eventually } from "../../../support/eventually.ts"
import { ingest } from "../../../relevance/ingest.ts"
import { fieldListings } from "./fieldListings.ts"
import { call, connectHttp, startTools } from "../../mcp-tools/support.ts"

const [shop, ops] = ["shop-secret-0123456789", "operator-secret-012345"]
const environment = { FACILITATOR_API_KEYS: `shop:${shop}`, OPERATOR_API_KEYS: `ops:${ops}` }
const plugins = "plugins=[ledger-local,x402-exact,catalog,search-lexical]"
const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } })
const path = "/analytics/v1/search/missed?hours=24"

const probe = (facilitator: Facilitator, query: string, init?: RequestInit) =>
  Effect.map(facilitator.ask(`/discovery/search?query=${encodeURIComponent(query)}`, init), ({ json, status }) =>
    expect([status, json.resources]).toEqual([200, []])
  )

const until = (facilitator: Facilitator, holds: (items: ReadonlyArray<any>) => boolean) =>
  eventually(
    Effect.map(facilitator.ask(path, bearer(ops)), ({ json }) => ({
      ...json,
      items: json.items.filter(({ words }: any) => words !== "almanac")
    })),
    ({ items }) => holds(items)
  )

const catalog = {
  info: { input: { type: "http", method: "GET" }, output: { type: "json", example: {} } },
  schema: { $schema: "https://json-schema.org/draft/2020-12/schema", type: "object", properties: { input: {} } }
}

/** Lists a resource and polls until the index has it; earlier searches found nothing and may be reported as missed. */
const list = Effect.fnUntraced(function* (facilitator: Facilitator) {
  const [payer, payTo] = [yield* facilitator.account(), (yield* facilitator.account()).publicKey()]
  const resourceUrl = "http://127.0.0.1:9/almanac"
  const { body } = yield* facilitator.payment({ payer, payTo, amount: 10_000n, resourceUrl, extensions: { catalog } })
  expect((yield* facilitator.settle(body, bearer(shop).headers)).json.success).toBe(true)
  const found = (query: string) =>
    Effect.map(facilitator.ask(`/discovery/search?query=${query}`), ({ json }) => json.resources.length === 1)
  yield* eventually(found("almanac"))
  expect(yield* found("the%20almanac")).toBe(true)
})

describe("the stored words of a query", () => {
  it.each([
    ["  Zebra   Migration maps ", "zebra migration maps"],
    ["mail of bob@example.com", "mail of …"],
    ["https://x.example/?t=1 status", "… status"],
    ["GAXETTQR6ENI7OSA4MOYY5VIEEP3GL3NG3DQIZXOFP6LMK4JDLRNMNZQ balance", "… balance"],
    ["call +44 20794600 tomorrow", "call +44 … tomorrow"],
    ["top 100 of 2026", "top 100 of 2026"],
    ["sk_live_51H8aBcDeFgHiJkLmNoPqR", ""],
    ["\u202eevil\u202c\u0007 word", "evil word"],
    ["ab ".repeat(80), "ab ".repeat(43).slice(0, 128).trim()]
  ])("of %j the stored words are %j", (query, kept) => {
    expect(keptWords(query)).toBe(kept)
  })
})

describe.each(databaseKinds)("searches without a result on %s", (database) => {
  it.live(
    "operators alone read missed searches, most frequent first, without callers' names",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ database, environment, set: [plugins], channels: 1 })
        yield* list(facilitator)
        for (const init of [undefined, bearer(shop), bearer(shop)]) yield* probe(facilitator, "Zebra  maps", init)
        yield* probe(facilitator, "=1+1 tides of bob@example.com", bearer(shop))
        yield* probe(facilitator, "bob@example.com", bearer(shop))
        const missed = yield* until(facilitator, (items) => items.length === 2 && items[0].times === "3")
        expect(missed.items.map(({ sessions, times, words }: any) => [words, sessions, times])).toEqual([
          ["zebra maps", "2", "3"],
          ["=1+1 tides of …", "1", "1"]
        ])
        expect(missed.pagination).toMatchObject({ limit: 50, offset: 0 })
        expect(Option.getOrThrow(csvOf(missed))).toContain("\r\n'=1+1 tides of …,")
        for (const init of [undefined, bearer(shop)]) expect((yield* facilitator.ask(path, init)).status).toBe(401)
        for (const query of ["hours=0", "hours=721", "hours=24&limit=x"])
          expect((yield* facilitator.ask(`/analytics/v1/search/missed?${query}`, bearer(ops))).status).toBe(400)
        const rows = yield* facilitator.sql<{ text: string }>`select row_to_json(m)::text as text
          from catalog_missed_searches m`
        expect(rows.map(({ text }) => text).join()).not.toMatch(/bob|example|shop|127\.0/)
      }).pipe(Effect.scoped),
    240_000
  )
})

const readPage = ({ json }: Answer) => ({
  count: json.resources.length as number,
  nearestOnly: json.nearestOnly as true | undefined,
  cursor: json.pagination.cursor as string | null
})

describe("a search without a confident answer", () => {
  it.live(
    "a search without an answer shows the nearest three and says so",
    () =>
      Effect.gen(function* () {
        const all = "plugins=[ledger-local,x402-exact,catalog,search-lexical,search-semantic]"
        const few = ["search.lexical.candidate_count=10", "search.embedded.candidate_count=10"]
        const facilitator = yield* startFacilitator({ environment, set: [all, ...few], channels: 1 })
        yield* facilitator.publishedBy(ingest(facilitator.sql, fieldListings))
        const [answered, unanswered] = ["wine%20ratings", "which%20mushroom%20is%20safe"]
        const found = (query: string) => Effect.map(facilitator.ask(`/discovery/search?query=${query}`), readPage)
        const isAnswer = ({ count, nearestOnly }: ReturnType<typeof readPage>) => count > 0 && nearestOnly === undefined
        // Searched without a result until the index has it, which is reported as missed.
        yield* eventually(found("chess%20moves"), isAnswer)
        expect(isAnswer(yield* found(answered!))).toBe(true)
        yield* eventually(found(unanswered!), ({ count }) => count === 3)
        for (const limit of [20, 3])
          expect(yield* found(`${unanswered}&limit=${limit}`)).toEqual({ count: 3, nearestOnly: true, cursor: null })
        const pagesOf = Effect.fnUntraced(function* (query: string) {
          const pages: Array<ReturnType<typeof readPage>> = []
          for (let cursor: string | null = ""; cursor !== null; cursor = pages.at(-1)!.cursor)
            pages.push(yield* found(`${query}&limit=1${cursor === "" ? "" : `&cursor=${cursor}`}`))
          return pages.map(({ count, nearestOnly }) => [count, nearestOnly])
        })
        expect(yield* pagesOf(unanswered!)).toEqual([1, 1, 1].map((one) => [one, true]))
        // There is nothing after them, however much a word of every listing matches.
        expect(yield* found("which%20mushroom%20has%20a%20name&limit=3")).toEqual({
          count: 3,
          nearestOnly: true,
          cursor: null
        })
        const agent = yield* connectHttp(yield* startTools({ facilitatorUrl: facilitator.url }))
        const searchFor = (query: string) => call(agent, "x402_search_resources", { query: decodeURIComponent(query) })
        const warned = ({ body }: Effect.Success<ReturnType<typeof searchFor>>) =>
          body["resources"].map(({ wrapper }: any) => /^nearest_only:/.test(wrapper.warnings[0]))
        const [sure, guessed] = [yield* searchFor(answered!), yield* searchFor(unanswered!)]
        expect(sure.body["nearestOnly"]).toBe(undefined)
        expect(warned(sure)).not.toContain(true)
        expect(guessed.body["nearestOnly"]).toBe(true)
        expect(warned(guessed)).toEqual([true, true, true])
        yield* until(facilitator, (items) => items.some(({ words }) => words === "which mushroom is safe"))
        expect((yield* facilitator.ask(path, bearer(ops))).json.items.map(({ words }: any) => words)).not.toContain(
          "wine ratings"
        )
        // Hits that do not pass the filter are not answers; passing hits are.
        expect(isAnswer(yield* found(`${answered}&payTo=GOWNER18`))).toBe(true)
        expect(yield* pagesOf("film%20reviews&payTo=GOWNER18")).toEqual([[1, true]])
      }).pipe(Effect.scoped),
    240_000
  )
})

describe("impressions", () => {
  it.live(
    "a search at any offset loses no other impression",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ environment, set: [plugins], channels: 1 })
        const searched = (offset: number) => facilitator.ask(`/discovery/search?query=tide&offset=${offset}`)
        yield* Effect.all([searched(9_999_999_999), searched(0)], { concurrency: 2 })
        const stored = facilitator.sql<{ count: number }>`select count(*)::int as count from catalog_impressions`
        yield* eventually(stored, ([row]) => row!.count === 2)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a start deletes impressions older than the setting's days",
    () =>
      Effect.gen(function* () {
        const options = { database: yield* lasting(usualKind), environment, channels: 1, set: [plugins] }
        const first = yield* startFacilitator(options)
        yield* first.sql`insert into catalog_impressions (at, session, mode, first_position, resource_ids, milliseconds,
            missing, reranking)
          select now() - days * interval '1 day', days, 'lexical', 0, '{}', 1, '{}', 'off'
          from unnest(array[89, 91]) as kept (days)`
        yield* first.stop
        const { sql } = yield* startFacilitator(options)
        const stored = sql<{ session: string }>`select session from catalog_impressions`
        expect(yield* eventually(stored, (rows) => rows.length < 2)).toEqual([{ session: "89" }])
      }).pipe(Effect.scoped),
    240_000
  )
})

describe("a facilitator that stores no queries", () => {
  it.live(
    "a facilitator configured to store no queries reports no missed searches",
    () =>
      Effect.gen(function* () {
        const set = [plugins, "search.missed_days=0"]
        const facilitator = yield* startFacilitator({ environment, set, channels: 1 })
        // Impressions are written in later runs, which would have written the words too.
        const impressions = facilitator.sql<{ count: number }>`select count(*)::int as count from catalog_impressions`
        for (const written of [1, 2, 3]) {
          yield* probe(facilitator, "zebra maps")
          yield* eventually(impressions, ([row]) => row!.count >= written)
        }
        expect((yield* facilitator.ask(path, bearer(ops))).json.items).toEqual([])
      }).pipe(Effect.scoped),
    240_000
  )
})
