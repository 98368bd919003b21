// A free flood and copies, over HTTP: claims without evidence rank behind settled payers at about equal relevance,
// padding makes no distinct text, one payer has three places, an original precedes its copies, and listings with
// evidence are found however many claims fill the candidates.
import { NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { type IngestedResource, ingest } from "../../relevance/ingest.ts"
import { databaseKinds } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { browse, declaring, verified } from "./support.ts"

const listing = (name: string, description: string, payTo: string): IngestedResource => ({
  name,
  type: "http",
  url: `https://${name}.example/v1`,
  toolName: "",
  serviceName: name,
  description,
  tags: [],
  info: { input: { type: "http", method: "GET" } },
  options: [{ scheme: "exact", network: "ledger:testnet", asset: "CASSET", amount: "100", payTo }]
})

/** Letters that occur in no other listing. */
const padding = (at: number, count: number): string =>
  Array.from(
    { length: count },
    (_, word) => `q${"abcdefghij"[at % 10]}${"klmnopqrst"[Math.floor(at / 10)]}${"uvwxyzabcd"[word]}`
  ).join(" ")

const honest = listing("tides", "Tide tables and sea levels for any harbour, by the hour.", "GTIDES")
const flood = Array.from({ length: 36 }, (_, at) =>
  listing(
    `flood-${at}`,
    `${padding(at, 9)} Tide tables, tide tables and sea levels for any harbour ${padding(at, 4)}`,
    `GF${at % 12}`
  )
)
const original = listing("harvest", "Predicts the harvest of an orchard from photographs of its blossoms.", "GHARVEST")
const copies = [1, 2, 3].map((at) => listing(`bland-${at}`, original.description, `GBLAND${at}`))
const others = Array.from({ length: 40 }, (_, at) =>
  listing(`ledger-${at}`, `Bookkeeping accounts, series ${at}.`, `GO${at}`)
)

const things = ["tide", "orchard", "glacier"]
const services = ["forecast by the hour", "photo appraisal", "price history"]
const subjects = services.flatMap((service) => things.map((thing) => `${thing} ${service}`))
const sellers = subjects.map((subject, at) =>
  listing(`seller-${at}`, `Gives the ${subject}, for one request, as data.`, `GSELLER${at}`)
)
/** A fifth holds every question; eighty are named after each, more than are weighed first. Each has its own payer. */
const burying = Array.from({ length: 900 }, (_, at) => {
  const subject = subjects[at % subjects.length]!
  const about = at % 5 === 0 ? subjects.join(", ") : `${subject} ${padding(at % 100, 9)}`
  return { ...listing(`bury-${at}`, about, `GB${at}`), ...(at % 5 === 0 ? {} : { serviceName: subject }) }
})

const search = (facilitator: Facilitator, query: string, mode = "") =>
  Effect.map(
    facilitator.ask(`/discovery/search?${new URLSearchParams({ query, ...(mode === "" ? {} : { mode }) })}`),
    ({ json }) => (json.resources as ReadonlyArray<{ name: string }>).map(({ name }) => name)
  )

const untilIndexed = (facilitator: Facilitator, count: number) =>
  eventually(
    Effect.map(
      facilitator.sql<{ words: number; meanings: number }>`select
        (select count(*) from search_lexical_documents)::int as words,
        (select count(*) from search_semantic_word_vectors)::int as meanings`,
      ([row]) => row!.words === count && row!.meanings === count
    )
  )

const run = (effect: Effect.Effect<void, unknown, unknown>) =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(NodeServices.layer)) as Effect.Effect<void>)

describe.each(databaseKinds)("a free flood on %s", (database) => {
  it(
    "a free flood ranks behind settled listings with three places per page",
    () =>
      run(
        Effect.gen(function* () {
          const facilitator = yield* startFacilitator({ database, channels: 1 })
          const all = [...copies, ...others, honest, original, ...flood]
          yield* facilitator.publishedBy(ingest(facilitator.sql, all))
          yield* untilIndexed(facilitator, all.length)
          yield* facilitator.sql`update catalog_activity set earned = 5, recent_payers = 5 where resource_id =
          (select id from catalog_resources where key = 'tides')`
          yield* facilitator.sql`update catalog_resources set standing_at = now() where key = 'tides'`
          yield* facilitator.sql`update catalog_resources set listed_by = 'GFLOOD' where key like 'flood-%'`
          // The unremarkable ones are older, with today's text.
          yield* facilitator.sql`update catalog_resources set words_at = now() + interval '1 hour'
            where key like 'bland-%'`
          for (const query of ["tide tables and sea levels for any harbour", "tide tables", "sea levels by the hour"]) {
            const names = yield* search(facilitator, query)
            expect(names[0], query).toBe("tides")
            const others = names.slice(0, 1 + names.findLastIndex((name) => !name.startsWith("flood")))
            expect(others.filter((name) => name.startsWith("flood")).length, query).toBeLessThanOrEqual(3)
          }
          for (const query of ["harvest of an orchard", original.description])
            expect((yield* search(facilitator, query))[0], query).toBe("harvest")
          // A later page applies the filters again; without keys only this machine may read the ranking explanation.
          const filtered = { query: "bookkeeping accounts", asset: "CASSET", maxPrice: "100", limit: "5" }
          const { json: page } = yield* facilitator.ask(`/discovery/search?${new URLSearchParams(filtered)}`)
          expect(page.resources).toHaveLength(5)
          yield* facilitator.sql`update catalog_options set amount = 101`
          const { json: later } = yield* facilitator.ask(
            `/discovery/search?${new URLSearchParams({ ...filtered, cursor: page.pagination.cursor })}`
          )
          expect(later.resources).toEqual([])
          const explain = (headers: Record<string, string>) =>
            Effect.map(facilitator.ask("/discovery/search?query=tide&explain=1", { headers }), ({ status }) => status)
          expect([yield* explain({}), yield* explain({ "x-forwarded-for": "203.0.113.7" })]).toEqual([200, 401])
        })
      ),
    240_000
  )

  it(
    "a listing with evidence is found however many claims match better",
    () =>
      run(
        Effect.gen(function* () {
          const facilitator = yield* startFacilitator({ database, channels: 1 })
          const all = [...burying, ...others, ...sellers]
          yield* facilitator.publishedBy(ingest(facilitator.sql, all))
          yield* untilIndexed(facilitator, all.length)
          yield* facilitator.sql`update catalog_resources set standing_at = now() where key like 'seller-%'`
          yield* facilitator.sql`update catalog_resources set listed_by = 'G' || id where key like 'bury-%'`
          for (const mode of ["", "lexical", "hybrid"])
            for (const [at, subject] of subjects.entries()) {
              const names = yield* search(facilitator, subject, mode)
              expect(names, `${mode} ${subject}`).toContain(`seller-${at}`)
              expect(names, subject).toHaveLength(20)
            }
        })
      ),
    240_000
  )

  it(
    "an unkeyed caller's repeated searches add at most twenty impression lists",
    () =>
      run(
        Effect.gen(function* () {
          const facilitator = yield* startFacilitator({ database, channels: 1 })
          yield* facilitator.publishedBy(ingest(facilitator.sql, sellers))
          yield* untilIndexed(facilitator, sellers.length)
          const conversion = Effect.map(facilitator.ask("/analytics/v1/search/conversion"), ({ json }) => json)
          const stored = (count: number) =>
            eventually(
              Effect.map(
                facilitator.sql<{ count: number }>`select count(*)::int as count from catalog_impressions`,
                ([row]) => row!.count === count
              )
            )
          for (let time = 0; time < 60; time++) yield* search(facilitator, subjects[0]!)
          yield* stored(60)
          // One list unless the statistics of the words were renewed between two of the searches.
          const [lists] = yield* facilitator.sql<{ count: number }>`select
            count(distinct (mode, resource_ids))::int as count from catalog_impressions`
          expect(lists!.count).toBeLessThan(10)
          expect(yield* conversion).toMatchObject({ impressions: String(lists!.count), sessions: "1" })
          for (let time = 0; time < 60; time++)
            yield* facilitator.ask(`/discovery/search?query=${encodeURIComponent(subjects[0]!)}&offset=${time}&limit=1`)
          yield* stored(120)
          const report = yield* conversion
          expect(report).toMatchObject({ impressions: "20", sessions: "1" })
          expect(Object.values<any>(report.byMode).map(({ impressions }) => impressions)).toEqual(["20"])
        })
      ),
    240_000
  )

  it(
    "impressions of keyed callers count in full; unkeyed addresses are capped separately",
    () =>
      run(
        Effect.gen(function* () {
          const secret = "0123456789abcdef0123456789"
          const facilitator = yield* startFacilitator({
            database,
            channels: 1,
            environment: { FACILITATOR_API_KEYS: `agent:${secret}` },
            set: ['server.trusted_proxies=["127.0.0.1"]']
          })
          const keyed = { headers: { authorization: `Bearer ${secret}` } }
          const ask = (init: RequestInit) => facilitator.ask("/discovery/search?query=tide", init)
          for (let time = 0; time < 25; time++) yield* ask(keyed)
          for (const address of ["203.0.113.7", "203.0.113.8", "203.0.113.8"])
            yield* ask({ headers: { "x-forwarded-for": address } })
          yield* eventually(
            Effect.map(
              facilitator.sql<{ count: number }>`select count(*)::int as count from catalog_impressions`,
              ([row]) => row!.count === 28
            )
          )
          const { json } = yield* facilitator.ask("/analytics/v1/search/conversion", keyed)
          expect(json).toMatchObject({ impressions: "27", sessions: "3" })
        })
      ),
    240_000
  )

  it(
    "one payer's new listings are limited per hour across names and recipients",
    () =>
      run(
        Effect.gen(function* () {
          const facilitator = yield* startFacilitator({
            database,
            closeMillis: 1_000,
            set: [
              "plugins=[ledger-local, x402-exact, catalog]",
              "catalog_security.probe_origins=false",
              "indexing.max_free_listings_per_hour=5"
            ]
          })
          const payer = yield* facilitator.account()
          const payTos = yield* Effect.forEach([1, 2, 3], () => facilitator.account())
          const statuses: Array<string> = []
          for (let at = 0; at < 8; at++) {
            const payTo = payTos[at % 3]!.publicKey()
            const body = yield* declaring(facilitator, { payer, payTo, url: `https://flood${at}.example.com/v1` })
            const { status } = at < 5 ? (yield* verified(facilitator, body)).outcome! : { status: "processing" }
            if (at >= 5) yield* facilitator.verify(body)
            statuses.push(status)
          }
          expect(statuses.filter((status) => status === "success")).toHaveLength(5)
          // A settled payment of dust costs as little, and does not list; a payment that counts does.
          for (const amount of [1n, 1_000n]) {
            const payTo = payTos[0]!.publicKey()
            const url = `https://settled${amount}.example.com/v1`
            const { json } = yield* facilitator.settle(yield* declaring(facilitator, { payer, payTo, url, amount }))
            expect(json).toMatchObject({ success: true })
          }
          yield* Effect.sleep("1 second")
          const { items } = yield* browse(facilitator)
          expect(items).toHaveLength(6)
          expect(items[0]).toMatchObject({ resource: "https://settled1000.example.com/v1" })
        })
      ),
    240_000
  )
})
