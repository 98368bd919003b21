// Real damage to an embedded database, and its repair: a copy is kept, and the losses are reported.
import { NodeServices } from "@effect/platform-node"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { repairFolder } from "../../../runtime/commands/repair.ts"
import { clientOf } from "../../../runtime/embeddedCheck.ts"
import { openEmbedded } from "../../../runtime/platform/pglite.ts"
import { damageOf } from "../../../runtime/resetLog.ts"

const within = <A, E>(folder: string, use: Effect.Effect<A, E, SqlClient.SqlClient>) =>
  Effect.scoped(Effect.flatMap(openEmbedded({ folder }), (opened) => Effect.provide(use, clientOf(opened))))

/** A database of 2,000 rows; the files of its table and of its index. */
const makeDatabase = (folder: string) =>
  within(
    folder,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`create table kernel_settlements (id int primary key, recorded_at timestamptz, words text)`
      yield* sql`insert into kernel_settlements select at, clock_timestamp(), repeat('w', 100)
        from generate_series(1, 2000) as at`
      yield* sql`checkpoint`
      const [paths] = yield* sql<{ heap: string; index: string }>`select
        pg_relation_filepath('kernel_settlements') as heap, pg_relation_filepath('kernel_settlements_pkey') as index`
      return paths!
    })
  )

const logOf = (folder: string) =>
  join(
    folder,
    "pg_wal",
    readdirSync(join(folder, "pg_wal")).find((name) => /^[0-9A-F]{24}$/.test(name))!
  )

const tear = (file: string) => {
  const bytes = readFileSync(file)
  writeFileSync(file, bytes.fill(7, 8_192 + 4_000, 8_192 + 4_100))
}

interface Damage {
  readonly name: string
  readonly damage: (folder: string, files: { readonly heap: string; readonly index: string }) => void
  /** The damage as a start reports it; undefined if a start does not see it. */
  readonly seen: RegExp | undefined
  readonly done: RegExp
}

const damages: ReadonlyArray<Damage> = [
  {
    name: "cut log",
    damage: (folder) => truncateSync(logOf(folder), 4_096),
    seen: /write-ahead log .* is cut off/,
    done: /log was reset/
  },
  {
    name: "no log",
    damage: (folder) => rmSync(logOf(folder)),
    seen: /write-ahead log .* is missing/,
    done: /log was reset/
  },
  {
    name: "no control file",
    damage: (folder) => rmSync(join(folder, "global/pg_control")),
    seen: /control file .* is missing/,
    done: /control file was recreated/
  },
  {
    name: "torn page",
    damage: (folder, { heap }) => tear(join(folder, heap)),
    seen: undefined,
    done: /kernel_settlements: pages .* were emptied/
  },
  {
    name: "torn index",
    damage: (folder, { index }) => tear(join(folder, index)),
    seen: undefined,
    done: /indexes were rebuilt/
  }
]

/** One database; each damage is done to a copy. */
class Whole extends Context.Service<
  Whole,
  { readonly root: string; readonly folder: string; readonly heap: string; readonly index: string }
>()("test/Whole") {
  static readonly layer = Layer.effect(
    Whole,
    Effect.gen(function* () {
      const root = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped({ prefix: "tollkeeper-" })
      const folder = join(root, "whole")
      return { root, folder, ...(yield* makeDatabase(folder)) }
    })
  ).pipe(Layer.provide(NodeServices.layer))
}

layer(Whole.layer, { excludeTestServices: true, timeout: 240_000 })("a repair", (it) => {
  it.effect.each(damages)("brings back what $name has left", ({ damage, done: expected, name, seen }) =>
    Effect.gen(function* () {
      const whole = yield* Whole
      const folder = join(whole.root, name)
      cpSync(whole.folder, folder, { recursive: true })
      damage(folder, whole)
      expect(damageOf(folder)).toEqual(seen === undefined ? undefined : expect.stringMatching(seen))
      const { copy, done, holdings } = yield* repairFolder(folder)
      expect(existsSync(join(copy, "PG_VERSION"))).toBe(true)
      expect(done.join("; ")).toMatch(expected)
      expect(holdings.unreadable).toEqual([])
      if (name === "torn page") expect(holdings.rows).toBeGreaterThan(1_500)
      else expect(holdings.rows).toBe(2_000)
      // It opens again, accepts writes, and its index finds a row.
      const rows = yield* within(
        folder,
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          yield* sql`set enable_seqscan = off`
          yield* sql`insert into kernel_settlements values (2001, clock_timestamp(), 'after')`
          return yield* sql<{ id: number }>`select id from kernel_settlements where id in (1999, 2001) order by id`
        })
      )
      expect(rows.at(-1)?.id).toBe(2_001)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
