// Real damage to an embedded database, and its repair: a copy is kept, and the losses are reported.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
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

it.live(
  "a repair brings back what real damage has left",
  () =>
    Effect.gen(function* () {
      const place = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped({ prefix: "tollkeeper-" })
      const whole = join(place, "whole")
      const { heap, index } = yield* makeDatabase(whole)
      const damages: ReadonlyArray<
        readonly [name: string, damage: (folder: string) => void, seen: RegExp | undefined, said: RegExp]
      > = [
        ["cut log", (folder) => truncateSync(logOf(folder), 4_096), /write-ahead log .* is cut off/, /log was reset/],
        ["no log", (folder) => rmSync(logOf(folder)), /write-ahead log .* is missing/, /log was reset/],
        [
          "no control file",
          (folder) => rmSync(join(folder, "global/pg_control")),
          /control file .* is missing/,
          /control file was recreated/
        ],
        ["torn page", (folder) => tear(join(folder, heap)), undefined, /kernel_settlements: pages .* were emptied/],
        ["torn index", (folder) => tear(join(folder, index)), undefined, /indexes were rebuilt/]
      ]
      for (const [name, damage, seen, said] of damages) {
        const folder = join(place, name)
        cpSync(whole, folder, { recursive: true })
        damage(folder)
        const found = damageOf(folder)
        expect([name, found]).toEqual([name, seen === undefined ? undefined : expect.stringMatching(seen)])
        const { copy, done, holdings } = yield* repairFolder(folder)
        expect(existsSync(join(copy, "PG_VERSION"))).toBe(true)
        expect([name, done.join("; ")]).toEqual([name, expect.stringMatching(said)])
        expect([name, holdings.unreadable]).toEqual([name, []])
        if (name === "torn page") expect(holdings.rows).toBeGreaterThan(1_500)
        else expect([name, holdings.rows]).toEqual([name, 2_000])
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
        expect([name, rows.at(-1)?.id]).toEqual([name, 2_001])
      }
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  240_000
)
