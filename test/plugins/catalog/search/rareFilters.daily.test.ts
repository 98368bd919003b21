import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { SqlClient } from "effect/sql"
import type { NeutralNetwork } from "../../../../kernel/Dialect.ts"
import { Catalog, type Filters } from "../../../../plugins/catalog/contract.ts"
import { RareFilters } from "../../../../plugins/catalog/search/rank/RareFilters.ts"
import { makeWorld } from "../../../bench/searchWorld.ts"
import { ingest } from "../../../relevance/ingest.ts"
import { countStatements } from "../../../support/countStatements.ts"
import { describeDatabases } from "../../../support/databases.ts"

/** Slightly more than search ranks individually. */
const resources = makeWorld(5_100, 1).resources

/** The position of the catalog's journal; a test moves it. */
const journal: { edition: Catalog["Service"]["edition"] } = { edition: Effect.succeed("1") }

/** Only the catalog's conditions: by type, and by recipient. */
const catalog = Layer.effect(
  Catalog,
  Effect.map(SqlClient.SqlClient, (sql) => {
    const condition: Catalog["Service"]["condition"] = ({ network, payTo, type }) =>
      network !== undefined
        ? sql.literal(network)
        : payTo !== undefined
          ? sql`exists (select 1 from catalog_options o where o.resource_id = r.id and o.pay_to = ${payTo})`
          : type === undefined
            ? sql`true`
            : sql`r.type = ${type}`
    return { condition, edition: Effect.suspend(() => journal.edition) } as unknown as Catalog["Service"]
  })
)

describeDatabases(
  "resources that pass rare filters",
  (layer) => {
    it.effect("rare filters read all matches in one statement; common ones are cached [S117]", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* ingest(sql, resources)
        yield* sql`update catalog_resources set type = 'http'`
        journal.edition = Effect.succeed("1")
        const { passing } = yield* RareFilters
        const ask = (filters: Filters) => countStatements(passing(filters, 1_000_000n))
        expect(yield* ask({})).toEqual({ value: undefined, statements: 0 })
        const payTo = "GPAYTO2000"
        const [{ id }] = (yield* sql<{ id: bigint }>`select resource_id as id from catalog_options
          where pay_to = ${payTo}`) as [{ id: bigint }]
        expect(yield* ask({ payTo })).toEqual({ value: [id], statements: 1 })
        // An agent repeats its filters: the matches are cached while the catalog is unchanged, half a minute at most.
        expect(yield* ask({ payTo })).toEqual({ value: [id], statements: 0 })
        expect(yield* countStatements(passing({ payTo }, 999_999n))).toEqual({ value: [id], statements: 1 })
        expect(yield* ask({ payTo })).toEqual({ value: [id], statements: 1 })
        journal.edition = Effect.succeed("2")
        for (const statements of [1, 0]) expect(yield* ask({ payTo })).toEqual({ value: [id], statements })
        yield* TestClock.adjust("30 seconds")
        expect(yield* ask({ payTo })).toEqual({ value: [id], statements: 1 })
        // Nothing is cached when its edition is unknown.
        journal.edition = Effect.fail(new Error("no journal")) as never
        for (const _ of [1, 2]) expect(yield* ask({ payTo })).toEqual({ value: [id], statements: 1 })
        journal.edition = Effect.succeed("2")
        expect(yield* ask({ payTo: "GNOBODY" })).toEqual({ value: [], statements: 1 })
        expect(yield* ask({ type: "http" })).toEqual({ value: undefined, statements: 1 })
        expect(yield* ask({ type: "http" })).toEqual({ value: undefined, statements: 0 })
        // Other filters are cached separately, and a filter that became rare is noticed within a minute.
        expect((yield* ask({ type: "http", payTo })).value).toEqual([id])
        yield* sql`update catalog_resources set type = 'mcp' where id <> ${id}`
        expect(yield* ask({ type: "http" })).toEqual({ value: undefined, statements: 0 })
        yield* TestClock.adjust("1 minute")
        expect(yield* ask({ type: "http" })).toEqual({ value: [id], statements: 1 })
        // When the database does not answer, no search fails or waits long for it.
        expect(yield* passing({ network: "1 / 0 = 1" as NeutralNetwork }, 1n)).toBeUndefined()
        const asked = yield* Effect.forkChild(
          passing({ network: "(select pg_sleep(1)) is null" as NeutralNetwork }, 1n)
        )
        yield* Effect.yieldNow
        expect(asked.pollUnsafe()).toBeUndefined()
        yield* TestClock.adjust("500 millis")
        expect(yield* Fiber.join(asked)).toBeUndefined()
      }).pipe(
        Effect.scoped,
        Effect.provide(RareFilters.layer.pipe(Layer.provideMerge(catalog), Layer.provideMerge(layer)))
      )
    )
  },
  ["kernel", "catalog", "search-lexical"]
)
