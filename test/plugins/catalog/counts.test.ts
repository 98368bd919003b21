// Totals of discovery: their lifetime in the cache, their recomputation, and its limits.
import { expect, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { type CatalogValues, Config } from "../../../plugins/catalog/Config.ts"
import { changedFact } from "../../../plugins/catalog/contract.ts"
import { Counts } from "../../../plugins/catalog/discovery/Counts.ts"
import { Changes } from "../../../plugins/catalog/store/Changes.ts"
import { describeDatabases } from "../../support/databases.ts"

const config = { includeStale: false, includeUnverified: false } as CatalogValues

const addResources = Effect.fnUntraced(function* (count: number) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`insert into catalog_resources (key, resource_key, type, resource, state, state_changed_at, verification,
    pay_tos, version, version_hash, declaration, extensions, document, first_seen_at, updated_at)
    select gen_random_uuid()::text, 'k', 'http', 'https://a.example.com/', 'active', now(), 'payment_observed',
      array['G'], 1, 'h', '{}'::jsonb, array['catalog'], '{}', now(), now() from generate_series(1, ${count})`
})

/** Writes the fact as another replica does, without notifying this process. */
const report = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { publish } = yield* Facts
  yield* sql.withTransaction(publish({ type: changedFact, version: 1, subject: "1", data: {} }))
})

const open = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`truncate catalog_resources restart identity cascade`
  const parts = yield* Layer.build(
    Counts.layer.pipe(Layer.provideMerge(Changes.layer), Layer.provide(Layer.succeed(Config, config)))
  )
  return { count: Context.get(parts, Counts).count, changed: Context.get(parts, Changes).listed }
})

describeDatabases(
  "totals of discovery",
  (database, kind) => {
    const parts = Facts.layer.pipe(Layer.provideMerge(database), Layer.provideMerge(Supervisor.layer))
    layer(parts, { timeout: "240 seconds" })((it) => {
      it.effect("counts are cached until this process changes a listing, then recomputed immediately [S109]", () =>
        Effect.gen(function* () {
          const { changed, count } = yield* open
          yield* addResources(3)
          expect(yield* count({}, "all")).toMatchObject({ total: 3, snapshot: 3n })
          yield* addResources(2)
          expect(yield* count({}, "all")).toMatchObject({ total: 3 })
          expect(yield* count({ type: "mcp" }, "mcp")).toMatchObject({ total: 0, snapshot: 5n })
          yield* changed
          expect(yield* count({}, "all")).toMatchObject({ total: 5, snapshot: 5n })
        })
      )

      it.effect("counts follow another replica's changes, however much time has passed", () =>
        Effect.gen(function* () {
          const { count } = yield* open
          yield* addResources(1)
          expect(yield* count({}, "all")).toMatchObject({ total: 1 })
          // Without a fact nothing has changed: rows written to the table directly are not counted.
          yield* addResources(1)
          yield* TestClock.adjust("4 seconds")
          expect(yield* count({}, "all")).toMatchObject({ total: 1 })
          yield* report
          yield* TestClock.adjust("4 seconds")
          for (const pause of ["4 seconds", "1 hour"] as const) {
            const { total } = yield* count({}, "all")
            yield* addResources(1)
            yield* report
            yield* TestClock.adjust(pause)
            expect(yield* count({}, "all")).toMatchObject({ total: total + 1 })
          }
        })
      )

      it.effect("counts of a large catalog lag at most two seconds behind changes", () =>
        Effect.gen(function* () {
          const { changed, count } = yield* open
          yield* addResources(10_000)
          expect(yield* count({}, "all")).toMatchObject({ total: 10_000 })
          yield* addResources(1)
          yield* changed
          expect(yield* count({}, "all")).toMatchObject({ total: 10_000 })
          yield* TestClock.adjust("2 seconds")
          expect(yield* count({}, "all")).toMatchObject({ total: 10_001 })
        })
      )

      it.effect("too many concurrent counts are refused while cached counts are still served", () =>
        Effect.gen(function* () {
          // The embedded database has a single session, so no other session could hold a lock during the counts.
          if (kind === "pglite") return
          const sql = yield* SqlClient.SqlClient
          const { count } = yield* open
          yield* addResources(1)
          yield* count({}, "all")
          const [locked, end] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
          const holder = yield* Effect.forkScoped(
            sql.withTransaction(
              Effect.andThen(
                sql`lock table catalog_resources in access exclusive mode`,
                Effect.andThen(Deferred.succeed(locked, undefined), Deferred.await(end))
              )
            )
          )
          yield* Deferred.await(locked)
          const asking = yield* Effect.forEach(
            Array.from({ length: 66 }, (_, at) => at),
            (at) => Effect.forkScoped(count({ payTo: `G${at}` }, `${at}`), { startImmediately: true })
          )
          const twin = yield* Effect.forkScoped(count({ payTo: "G0" }, "0"), { startImmediately: true })
          const refused = yield* Effect.exit(count({ payTo: "one more" }, "one more"))
          expect(Exit.isFailure(refused)).toBe(true)
          expect(JSON.stringify(refused)).toContain("CatalogOverloaded")
          expect(yield* count({}, "all")).toMatchObject({ total: 1 })
          yield* Deferred.succeed(end, undefined)
          yield* Fiber.join(holder)
          for (const one of [...asking, twin]) expect(yield* Fiber.join(one)).toMatchObject({ total: 0 })
          expect(yield* count({ payTo: "one more" }, "one more")).toMatchObject({ total: 0 })
        })
      )
    })
  },
  ["kernel", "catalog"]
)
