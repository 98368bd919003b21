// Restores of complete, truncated, foreign and damaged archives: a refused one leaves nothing behind and reports the
// file and the problem, and `verify` reports the same without restoring.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Console, Context, Effect, Exit, FileSystem } from "effect"
import { Command } from "effect/cli"
import { SqlClient } from "effect/sql"
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Database } from "../../../kernel/database/Database.ts"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { readKeptActs } from "../../../kernel/settlement/operators/keptActs.ts"
import { backup } from "../../../runtime/commands/backup.ts"
import { Within } from "../../../runtime/commands/CommandTarget.ts"
import { clientOf } from "../../../runtime/embeddedCheck.ts"
import { layer as embedded, openEmbedded } from "../../../runtime/platform/pglite.ts"
import { sentenceOf } from "../../../runtime/sentence.ts"

const run = Effect.fnUntraced(function* (...words: ReadonlyArray<string>) {
  const out: Array<string> = []
  const outer = yield* Console.Console
  const exit = yield* Command.runWith(backup, { version: "0" })(words).pipe(
    Effect.provideService(Console.Console, { ...outer, log: (...parts) => void out.push(parts.map(String).join(" ")) }),
    Effect.exit
  )
  return { out: out.join("\n"), error: Exit.isFailure(exit) ? (sentenceOf(exit.cause) ?? "") : undefined }
})

const marker = "a row of the one table that is in this archive"

/** An archive of a database with one table of many rows. */
const makeArchive = Effect.fnUntraced(function* (file: string) {
  const opened = yield* openEmbedded({})
  yield* Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`create table kernel_settlements (id int primary key, recorded_at timestamptz, words text)`
    yield* sql`insert into kernel_settlements select at, '2026-01-02T03:04:05Z'::timestamptz, ${marker}
      from generate_series(1, 500) as at`
    yield* sql`checkpoint`
  }).pipe(Effect.provide(clientOf(opened)))
  writeFileSync(file, yield* opened.dump)
}, Effect.scoped)

it.live(
  "a refused restore leaves nothing and names the file",
  () =>
    Effect.gen(function* () {
      const folder = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped({ prefix: "tollkeeper-" })
      const whole = join(folder, "whole.tar")
      yield* makeArchive(whole)
      const verified = yield* run("verify", whole)
      expect(verified.error).toBeUndefined()
      expect(verified.out).toBe(
        `${whole} can be restored: 1 tables, 500 rows, 500 settlements, the newest recorded at 2026-01-02T03:04:05.000Z`
      )
      const bytes = readFileSync(whole)
      // The log has it first, and the table last.
      const page = bytes.lastIndexOf(marker)
      const torn = Buffer.from(bytes).fill(7, page, page + 8)
      const damaged: ReadonlyArray<readonly [name: string, content: Uint8Array, why: RegExp]> = [
        ["text.tar", Buffer.from("no archive".repeat(200)), /it is not a tar archive, or is damaged at byte 0/],
        ["empty.tar", Buffer.alloc(0), /it ends at byte 0, within the archive/],
        ["cut.tar", bytes.subarray(0, bytes.length / 2), /it ends at byte \d+, within the archive/],
        ["hollow.tar", Buffer.alloc(1_024), /it has no PG_VERSION/],
        ["torn.tar", torn, /table kernel_settlements is damaged \(invalid page/]
      ]
      for (const [name, content, why] of damaged) {
        const file = join(folder, name)
        writeFileSync(file, content)
        const state = join(folder, `from-${name}`)
        for (const words of [
          ["restore", file, "--state", state],
          ["verify", file]
        ]) {
          const { error } = yield* run(...words)
          expect([name, error]).toEqual([name, expect.stringMatching(why)])
          expect(error).toContain(file)
          expect(existsSync(state)).toBe(false)
        }
      }
      const state = join(folder, "restored")
      expect((yield* run("restore", whole, "--state", state)).out).toContain("500 rows")
      expect(existsSync(join(state, "database", "PG_VERSION"))).toBe(true)
      const acts = yield* readKeptActs(state)
      expect(acts).toMatchObject([{ action: "restore", subject: whole, outcome: "done" }])
      expect(existsSync(join(state, "database.restoring"))).toBe(false)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  240_000
)

it.live("an archive that cannot be written leaves no part of it", () =>
  Effect.gen(function* () {
    const folder = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped({ prefix: "tollkeeper-" })
    const target = join(folder, "taken.tar")
    mkdirSync(target)
    const services = Context.make(Database, { dump: Effect.succeed(new Uint8Array(9)) } as Database["Service"])
    const { error } = yield* Effect.provideService(run("save", target), Within, {
      services: services as unknown as Context.Context<never>,
      folder
    })
    expect(error).toContain("taken.tar")
    expect(readdirSync(folder)).toEqual(["taken.tar"])
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)

it.live("a restore that was cut off does not open empty", () =>
  Effect.gen(function* () {
    const folder = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped({ prefix: "tollkeeper-" })
    const database = join(folder, "database")
    mkdirSync(`${database}.restoring`)
    const { open } = yield* Effect.provide(DatabaseSource, embedded(database))
    const refused = yield* Effect.flip(Effect.scoped(open))
    expect(refused.message).toMatch(/a restore into .* was cut off; run `tollkeeper backup restore` again/)
    expect(existsSync(database)).toBe(false)
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)
