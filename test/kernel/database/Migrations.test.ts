import { describe, expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem, Layer, Option, Path } from "effect"
import { SqlClient } from "effect/sql"
import { Settings } from "../../../kernel/config/Settings.ts"
import { Database } from "../../../kernel/database/Database.ts"
import * as Migrations from "../../../kernel/database/Migrations.ts"
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
      "run once, in order, and refuse every way of going back [S311]",
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
          expect(yield* Effect.exit(run)).toMatchObject({ _tag: "Failure" })
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
      { timeout: 60_000 }
    )

    it.effect(
      "two replicas that boot at once run each file once",
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
      { timeout: 60_000 }
    )
  })
}

it.effect("refuses a file that came late below one that ran", () =>
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
