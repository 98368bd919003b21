// Search over HTTP, in every mode: on PGlite with pgvector (HNSW), like a server, and on PostgreSQL without pgvector
// with the quantized scan.
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { databaseKinds, type DatabaseKind } from "../../support/databases.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { type EmbeddingsEndpoint, startEmbeddings } from "../../relevance/embeddings.ts"
import { ingest } from "../../relevance/ingest.ts"
import { embedTopic, topicResource } from "../../relevance/topics.ts"
import { eventually } from "../../support/eventually.ts"

const names = (answer: { readonly json: any }): ReadonlyArray<string> =>
  answer.json.resources.map(({ name }: { name: string }) => name)

const search = (facilitator: Facilitator, parameters: Record<string, string>, headers: Record<string, string> = {}) =>
  facilitator.ask(`/discovery/search?${new URLSearchParams(parameters)}`, { headers })

/** All pages of a search. */
const pages = (
  facilitator: Facilitator,
  parameters: Record<string, string>,
  between: Effect.Effect<unknown, unknown> = Effect.void
) =>
  Effect.gen(function* () {
    const seen: Array<string> = []
    let cursor: string | null = ""
    while (cursor !== null) {
      const answer: { readonly status: number; readonly json: any } = yield* search(
        facilitator,
        cursor === "" ? parameters : { ...parameters, cursor }
      )
      if (answer.status !== 200) throw new Error(JSON.stringify(answer.json))
      seen.push(...names(answer))
      cursor = answer.json.pagination.cursor
      yield* between
    }
    return seen
  })

const world = (
  database: DatabaseKind,
  use: (facilitator: Facilitator, endpoint: EmbeddingsEndpoint) => Effect.Effect<void, unknown>,
  options: {
    readonly set?: ReadonlyArray<string>
    readonly count?: number
    readonly environment?: Record<string, string>
  } = {}
) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const endpoint = yield* startEmbeddings(embedTopic)
        const facilitator = yield* startFacilitator({
          database,
          channels: 1,
          environment: options.environment ?? {},
          set: [
            "search.semantic.provider=openai",
            "search.semantic.hybrid_wait_ms=5000",
            `search.semantic.url=${endpoint.url}`,
            "search.semantic.model=one",
            "search.semantic.dimension=16",
            ...(database === "pglite" ? ["search.semantic.index=hnsw"] : []),
            ...(options.set ?? [])
          ]
        })
        const count = options.count ?? 120
        yield* facilitator.publishedBy(
          ingest(
            facilitator.sql,
            Array.from({ length: count }, (_, at) => topicResource(at))
          )
        )
        const [generation] = [`search_semantic_vectors_1`]
        yield* eventually(
          Effect.gen(function* () {
            const [row] = yield* facilitator.sql<{ lexical: number; semantic: number }>`select
        (select count(*) from search_lexical_documents where (select changed = 0 from search_lexical_state
          limit 1))::int as lexical,
        (select count(*) from ${facilitator.sql(generation!)})::int as semantic`
            return row!.lexical >= count && row!.semantic >= count
          })
        )
        yield* use(facilitator, endpoint)
      })
    ) as Effect.Effect<void>
  )

describe.each(databaseKinds)("search on %s", (database) => {
  it(
    "search answers in every mode and refuses what the specification refuses [S115–S123, S127, S130–S132]",
    () =>
      world(database, (facilitator) =>
        Effect.gen(function* () {
          for (const mode of ["lexical", "semantic", "hybrid", ""]) {
            const answer = yield* search(facilitator, { query: "weather data", ...(mode === "" ? {} : { mode }) })
            expect(answer.status).toBe(200)
            expect(Object.keys(answer.json).toSorted()).toEqual([
              "pagination",
              "partialResults",
              "resources",
              "x402Version"
            ])
            expect(answer.json).toMatchObject({ x402Version: 2, partialResults: false, pagination: { limit: 20 } })
            for (const name of names(answer).slice(0, 8)) expect(Number(name.split("-")[1]) % 8).toBe(0)
            // A resource that only shares a common word is not relevant.
            expect(names(answer)).toHaveLength(15)
            for (const [filter, value, holds] of [
              ["type", "mcp", (at: number) => at % 5 === 4],
              ["scheme", "exact", (at: number) => at % 2 === 0],
              ["payTo", "GPAYTO4", (at: number) => at % 10 === 4],
              ["network", "stellar:testnet", () => true],
              ["network", "ledger:pubnet", () => false],
              ["extensions", "bazaar", () => true],
              ["asset", "COTHER", () => false]
            ] as const) {
              const filtered = names(
                yield* search(facilitator, {
                  query: "data about translation",
                  limit: "200",
                  [filter]: value,
                  ...(mode === "" ? {} : { mode })
                })
              )
              expect(filtered.every((name) => holds(Number(name.split("-")[1])))).toBe(true)
              expect(filtered.length > 0).toBe(filter !== "asset" && value !== "ledger:pubnet")
            }
            const cheap = names(
              yield* search(facilitator, {
                query: "weather data",
                maxPrice: "1000",
                asset: "CASSET",
                ...(mode === "" ? {} : { mode })
              })
            )
            expect(cheap.length).toBeGreaterThan(0)
            expect(cheap.every((name) => Number(name.split("-")[1]) <= 9)).toBe(true)
          }
          expect(names(yield* search(facilitator, { query: "bookkeeping", mode: "semantic" }))[0]).toMatch(
            /^resource-\d*[19]$|^resource-\d+$/
          )
          for (const [parameters, error] of [
            [{}, "query_required"],
            [{ query: "x".repeat(513) }, "query_too_long"],
            [{ query: "x", mode: "fuzzy" }, "invalid_filter"],
            [{ query: "x", limit: "0" }, "invalid_filter"],
            [{ query: "x", limit: "201" }, "invalid_filter"],
            [{ query: "x", offset: "-1" }, "invalid_filter"],
            [{ query: "x", maxPrice: "01", asset: "C" }, "invalid_filter"],
            [{ query: "x", maxPrice: "1" }, "invalid_filter"],
            [{ query: "x", type: "ftp" }, "invalid_filter"],
            [{ query: "x", cursor: "c1.x.y" }, "invalid_cursor"]
          ] as const) {
            const answer = yield* search(facilitator, parameters as Record<string, string>)
            expect([answer.status, answer.json.error]).toEqual([400, error])
            if (answer.json.details !== undefined)
              expect(answer.json.details.every((detail: unknown) => typeof detail === "string")).toBe(true)
          }
          expect(names(yield* search(facilitator, { query: "the of and", mode: "lexical" }))).toEqual([])
          expect(names(yield* search(facilitator, { query: "zzyzx qqq", mode: "lexical" }))).toEqual([])
        })
      ),
    240_000
  )

  it(
    "paging keeps one ranking while the catalog changes, on any replica [S124, S125, S126]",
    () =>
      world(database, (facilitator) =>
        Effect.gen(function* () {
          let next = 1_000
          for (const mode of ["lexical", "semantic", "hybrid"]) {
            // Another mode may show resources that were written, and indexed, before its first page.
            const firstOfMode = 8 * next
            const write = Effect.suspend(() =>
              ingest(facilitator.sql, [topicResource(8 * next++, { serviceName: "Weather weather" })])
            )
            const seen = yield* pages(facilitator, { query: "weather", mode, limit: "4" }, write)
            expect(new Set(seen).size).toBe(seen.length)
            expect(
              Array.from({ length: 15 }, (_, at) => `resource-${8 * at}`).every((name) => seen.includes(name))
            ).toBe(true)
            expect(next).toBeGreaterThan(firstOfMode / 8)
            expect(seen.filter((name) => Number(name.split("-")[1]) >= firstOfMode)).toEqual([])
          }
          const first = yield* search(facilitator, { query: "weather", limit: "2" })
          const cursor = first.json.pagination.cursor as string
          for (const other of [
            { query: "rain" },
            { query: "weather", type: "http" },
            { query: "weather", mode: "lexical" }
          ]) {
            expect((yield* search(facilitator, { limit: "2", cursor, ...other })).json.error).toBe("invalid_cursor")
          }
          expect(
            (yield* search(facilitator, {
              query: "weather",
              limit: "2",
              cursor: `${cursor.slice(0, -4)}${cursor.slice(-4) === "AAAA" ? "BBBB" : "AAAA"}`
            })).json.error
          ).toBe("invalid_cursor")
        })
      ),
    240_000
  )

  it(
    "search pages beyond its first window without repeating",
    () =>
      world(
        database,
        (facilitator) =>
          Effect.gen(function* () {
            const seen = yield* pages(facilitator, { query: "data", mode: "lexical", limit: "50" })
            expect(seen).toHaveLength(260)
            expect(new Set(seen).size).toBe(260)
            expect((yield* pages(facilitator, { query: "data", mode: "lexical", limit: "200" })).toSorted()).toEqual(
              seen.toSorted()
            )
          }),
        { count: 260 }
      ),
    240_000
  )

  it(
    "search degrades to lexical while the provider fails, and recovers [S70, S128, S129, S296]",
    () =>
      world(
        database,
        (facilitator, endpoint) =>
          Effect.gen(function* () {
            let query = 0
            for (const failure of ["status", "hang", "length", "nonsense", "zero"] as const) {
              endpoint.fault.current = failure
              const answer = yield* search(facilitator, { query: `weather ${query++}`, mode: "hybrid" })
              expect([answer.status, answer.json.partialResults]).toEqual([200, true])
              expect(names(answer).length).toBeGreaterThan(0)
              // A mode without its branch falls back to the available one.
              const alone = yield* search(facilitator, { query: `weather ${query++}`, mode: "semantic" })
              expect([alone.json.partialResults, names(alone).length > 0]).toEqual([true, true])
              // Later pages come from the same list, with the same flags as the first.
              const asked = { query: `data ${query++}`, mode: "hybrid", limit: "1" }
              const first = yield* search(facilitator, asked)
              const second = yield* search(facilitator, { ...asked, cursor: first.json.pagination.cursor })
              expect([first, second].map(({ json }) => [json.partialResults, json.resources.length])).toEqual(
                [1, 1].map((one) => [true, one])
              )
            }
            const ready = yield* facilitator.ask("/health/ready")
            expect([ready.status, ready.json.search.semantic, ready.json.search.lexical]).toEqual([
              200,
              "degraded",
              "ready"
            ])
            expect(ready.json.search.detail.length).toBeLessThanOrEqual(200)
            const before = endpoint.requests()
            yield* search(facilitator, { query: "weather again" })
            expect(endpoint.requests()).toBe(before)
            endpoint.fault.current = "none"
            yield* eventually(
              Effect.map(search(facilitator, { query: "climate" }), ({ json }) => json.partialResults === false)
            )
            expect((yield* facilitator.ask("/health/ready")).json.search).toMatchObject({
              semantic: "ready",
              vectorSupport: database === "pglite",
              generation: "one@1"
            })
            const cached = endpoint.requests()
            yield* search(facilitator, { query: "climate" })
            expect(endpoint.requests()).toBe(cached)
          }),
        {
          set: [
            "search.semantic.timeout_ms=300",
            "search.semantic.breaker_failures=5",
            "search.semantic.breaker_ms=3000"
          ]
        }
      ),
    240_000
  )

  it(
    "ranks are explained only to callers with a key",
    () =>
      world(
        database,
        (facilitator) =>
          Effect.gen(function* () {
            expect((yield* search(facilitator, { query: "weather", explain: "1" })).status).toBe(401)
            const answer = yield* search(
              facilitator,
              { query: "weather", explain: "1" },
              { authorization: "Bearer 0123456789abcdef" }
            )
            expect(answer.json.explained[0]).toMatchObject({
              position: 1,
              branches: { lexical: { rank: expect.any(Number) } },
              signals: { popularity: 0, originHits: 0 }
            })
            expect((yield* search(facilitator, { query: "weather" })).json.explained).toBeUndefined()
          }),
        { environment: { FACILITATOR_API_KEYS: "0123456789abcdef" } }
      ),
    240_000
  )
})
