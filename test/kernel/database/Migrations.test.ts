import { describe, expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Deferred, Effect, Fiber, FileSystem, Layer, Option, Path, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { Settings } from "../../../kernel/config/Settings.ts"
import { Database } from "../../../kernel/database/Database.ts"
import * as Migrations from "../../../kernel/database/Migrations.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"

const platform = Layer.mergeAll(NodeServices.layer, NodeCrypto.layer)

for (const kind of databaseKinds) {
  describe(`migrations on ${kind}`, () => {
    const database = Database.layer.pipe(
      Layer.provide(sourceLayer(kind)),
      Layer.provide(Settings.layerTest({}, () => Option.none()))
    )

    it.effect(
      "migrations run once, in order, and never backwards [S311]",
      () =>
        Effect.gen(function* () {
          const files = yield* FileSystem.FileSystem
          const path = yield* Path.Path
          const folder = yield* files.makeTempDirectoryScoped()
          yield* files.makeDirectory(path.join(folder, "plug-in"))
          const write = (name: string, text: string) => files.writeFileString(path.join(folder, "plug-in", name), text)
          const remove = (name: string) => files.remove(path.join(folder, "plug-in", name))
          const run = Migrations.run("plug-in").pipe(
            Effect.provideService(Migrations.MigrationsFolder, { path: folder })
          )
          const refusal = Effect.map(Effect.flip(run), (error) => ("message" in error ? error.message : ""))

          yield* write(
            "0001_first.sql",
            "create table a (x int); -- one; two\ncreate function f() returns int language sql as $$ select 1; $$;"
          )
          yield* write("0002_second.sql", "insert into a values (f()); insert into a values (2);")
          expect(yield* run).toEqual(["first", "second"])
          expect(yield* run).toEqual([])
          yield* write("0003_third.sql", "insert into a values (3); insert into missing values (1);")
          expect(yield* Effect.flip(run)).toMatchObject({
            _tag: "MigrationFailed",
            message: 'migration plug-in/0003_third: relation "missing" does not exist'
          })
          const sql = yield* SqlClient.SqlClient
          expect(yield* sql`select x from a order by x`).toEqual([{ x: 1 }, { x: 2 }])
          yield* write("0003_third.sql", "insert into a values (3)")
          expect(yield* run).toEqual(["third"])

          yield* write("0002_second.sql", "insert into a values (9)")
          expect(yield* refusal).toContain("edited after it ran")
          yield* write("0002_second.sql", "insert into a values (f()); insert into a values (2);")
          yield* remove("0003_third.sql")
          expect(yield* refusal).toContain("older than the database")
          yield* write("0004_third.sql", "select 1")
          expect(yield* refusal).toContain("number 3 is required")
          yield* remove("0004_third.sql")
          yield* write("3-third.sql", "select 1")
          expect(yield* refusal).toContain("named NNNN_name.sql")
        }).pipe(Effect.scoped, Effect.provide(database), Effect.provide(platform)),
      { timeout: 240_000 }
    )

    it.effect(
      "two replicas that boot concurrently run each migration once",
      () =>
        Effect.gen(function* () {
          const files = yield* FileSystem.FileSystem
          const path = yield* Path.Path
          const folder = yield* files.makeTempDirectoryScoped()
          yield* files.makeDirectory(path.join(folder, "own"))
          yield* files.writeFileString(
            path.join(folder, "own", "0001_a.sql"),
            "create table b (x int); insert into b values (1); select pg_sleep(0.2)"
          )
          const run = Migrations.run("own").pipe(Effect.provideService(Migrations.MigrationsFolder, { path: folder }))
          const ran = yield* Effect.all([run, run, run], { concurrency: 3 })
          expect(ran.flat()).toEqual(["a"])
          expect(yield* (yield* SqlClient.SqlClient)`select x from b`).toEqual([{ x: 1 }])
        }).pipe(Effect.scoped, Effect.provide(database), Effect.provide(platform)),
      { timeout: 240_000 }
    )
  })
}

/** Only with a server can replicas serve at the same time. */
describe("migrations beside replicas that serve", () => {
  const settings = { database: { statement_timeout_ms: 1_500, lock_timeout_ms: 200 } }
  const database = Database.layer.pipe(
    Layer.provide(sourceLayer("postgres")),
    Layer.provide(Settings.layerTest(settings, () => Option.none()))
  )
  const tested = <A, E>(
    work: Effect.Effect<
      A,
      E,
      SqlClient.SqlClient | FileSystem.FileSystem | Path.Path | Crypto | Migrations.MigrationsFolder | Scope.Scope
    >
  ) =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const folder = yield* files.makeTempDirectoryScoped()
      yield* files.makeDirectory(`${folder}/own`)
      return yield* Effect.provideService(work, Migrations.MigrationsFolder, { path: folder })
    }).pipe(Effect.scoped, Effect.provide(database), Effect.provide(platform))
  const write = Effect.fnUntraced(function* (name: string, text: string) {
    const files = yield* FileSystem.FileSystem
    yield* files.writeFileString(`${(yield* Migrations.MigrationsFolder).path}/own/${name}`, text)
  })

  it.live.skipIf(!databaseKinds.includes("postgres"))(
    "take longer than a statement may, as may a second replica's wait for them",
    () =>
      tested(
        Effect.gen(function* () {
          yield* write("0001_slow.sql", "select pg_sleep(2.5); create table slow (x int)")
          const ran = yield* Effect.all([Migrations.run("own"), Migrations.run("own")], { concurrency: 2 })
          expect(ran.flat()).toEqual(["slow"])
        })
      ),
    240_000
  )

  it.live.skipIf(!databaseKinds.includes("postgres"))(
    "give way to payments that hold their tables the other way round, and run when those are through",
    () =>
      tested(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          yield* write(
            "0001_two.sql",
            "create table one (x int); create table two (x int); insert into one values (1);"
          )
          yield* write("0002_both.sql", "alter table one add column y int; alter table two add column y int;")
          yield* write("0003_last.sql", "create table three (x int)")
          const files = yield* FileSystem.FileSystem
          const folder = (yield* Migrations.MigrationsFolder).path
          const held = yield* files.makeTempDirectoryScoped()
          for (const file of ["0002_both.sql", "0003_last.sql"])
            yield* files.rename(`${folder}/own/${file}`, `${held}/${file}`)
          expect(yield* Migrations.run("own")).toEqual(["two"])
          for (const file of ["0002_both.sql", "0003_last.sql"])
            yield* files.rename(`${held}/${file}`, `${folder}/own/${file}`)
          const hasBegun = yield* Deferred.make<void>()
          const isBeaten = yield* Deferred.make<void>()
          // A payment's transaction: it holds the second table, and asks for the first while the migration has that.
          const payment = sql.withTransaction(
            Effect.gen(function* () {
              yield* sql`set local lock_timeout = '20s'`
              yield* sql`set local statement_timeout = '20s'`
              yield* sql`insert into two values (1)`
              yield* Deferred.succeed(hasBegun, undefined)
              yield* Deferred.await(isBeaten)
              yield* sql`update one set x = 2`
            })
          )
          const paying = yield* Effect.forkChild(payment)
          yield* Deferred.await(hasBegun)
          const migrating = yield* Effect.forkChild(Migrations.run("own"))
          const waits = sql<{ count: number }>`select count(*)::int as count from pg_locks
            where not granted and database = (select oid from pg_database where datname = current_database())`
          while ((yield* waits)[0]!.count === 0) yield* Effect.sleep("20 millis")
          yield* Deferred.succeed(isBeaten, undefined)
          expect(yield* Fiber.join(migrating)).toEqual(["both", "last"])
          yield* Fiber.join(paying)
          expect(yield* sql`select x, y from one`).toEqual([{ x: 2, y: null }])
          expect(yield* sql`select x, y from two`).toEqual([{ x: 1, y: null }])
        })
      ),
    240_000
  )
})

it.effect("refuses a new migration below one that ran", () =>
  Effect.gen(function* () {
    const file = (id: number) => ({ id, name: `m${id}`, sql: "", checksum: `c${id}` })
    const refusal = yield* Effect.flip(Migrations.pending("x", [1, 2, 3].map(file), [file(1), file(3)]))
    expect(refusal).toMatchObject({ migration: "2 m2", message: "came after 3 had run" })
  })
)

it("splits statements outside of strings, dollar quotes and comments", () => {
  const text = "select ';' as \"a;b\"; -- x; y\n/* z; */ do $body$ begin; end $body$;;\n select 'it''s;'"
  expect(Migrations.splitStatements(text)).toEqual([
    `select ';' as "a;b"`,
    "do $body$ begin; end $body$",
    "select 'it''s;'"
  ])
})
