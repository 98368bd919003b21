// An embedded database with every table of the program, moved to a PostgreSQL server: each row arrives unchanged, the
// folder stays, and a target in use is refused.
import { NodeServices } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { expect, it } from "@effect/vitest"
import { Console, Effect, Exit, FileSystem, Layer, Redacted } from "effect"
import { Command } from "effect/cli"
import { SqlClient } from "effect/sql"
import { join } from "node:path"
import process from "node:process"
import { describe } from "vitest"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import * as Migrations from "../../../kernel/database/Migrations.ts"
import { makeAuditLog } from "../../../kernel/settlement/operators/OperatorAuditLog.ts"
import { move } from "../../../runtime/commands/move.ts"
import { groundAt } from "../../../runtime/commands/CommandTarget.ts"
import { clientOf } from "../../../runtime/embeddedCheck.ts"
import { openEmbedded } from "../../../runtime/platform/pglite.ts"
import { sentenceOf } from "../../../runtime/sentence.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"

const run = Effect.fnUntraced(function* (...words: ReadonlyArray<string>) {
  const out: Array<string> = []
  const outer = yield* Console.Console
  const exit = yield* Command.runWith(move, { version: "0" })(words).pipe(
    Effect.provideService(Console.Console, {
      ...outer,
      log: (...parts) => void out.push(parts.map(String).join(" ")),
      error: () => undefined
    }),
    Effect.exit
  )
  return { out: out.join("\n"), error: Exit.isFailure(exit) ? (sentenceOf(exit.cause) ?? "") : undefined }
})

/** A folder with the tables of every owner, and rows that are hard to copy. */
const fill = (state: string) =>
  Effect.gen(function* () {
    const opened = yield* openEmbedded({ folder: join(state, "database") })
    yield* Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      for (const owner of ["kernel", "catalog", "analytics", "webhooks", "receipts", "dashboard", "search-lexical"])
        yield* Migrations.run(owner)
      yield* sql`insert into kernel_facts (at, type, version, subject, data, position, principal)
        select clock_timestamp(), 'settlement.recorded', 1, 'subject "' || n || E'\\n\\\\,', jsonb_build_object('n', n),
          n, case when n % 2 = 0 then 'a, "b"' end from generate_series(1, 1201) n`
      yield* makeAuditLog(sql).recordDone(
        { person: "ada", via: "api", action: "rotate", subject: "sponsor", reason: "a leak" },
        "done",
        { after: "x" }
      )
    }).pipe(Effect.provide(clientOf(opened)), Effect.provide(groundAt({ profile: "local", state, set: [] })))
  }).pipe(Effect.scoped)

const rowsIn = <A>(url: string, use: (sql: SqlClient.SqlClient) => Effect.Effect<A, unknown>) =>
  Effect.gen(function* () {
    return yield* use(yield* SqlClient.SqlClient)
  }).pipe(Effect.provide(PgClient.layer({ url: Redacted.make(url) })), Effect.scoped)

describe.skipIf(!databaseKinds.includes("postgres"))("a move to a PostgreSQL server", () => {
  it.live(
    "copies every row, compares them, and leaves the folder as it is",
    () =>
      Effect.gen(function* () {
        const state = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped({ prefix: "tollkeeper-move-" })
        yield* fill(state)
        const opened = yield* Effect.flatMap(DatabaseSource, ({ open }) => open).pipe(
          Effect.provide(yield* Layer.build(sourceLayer("postgres")))
        )
        const url = opened.kind === "server" ? Redacted.value(opened.url) : ""
        const file = join(state, "target-url")
        yield* (yield* FileSystem.FileSystem).writeFileString(file, `${url}\n`)
        for (const [words, refused] of [
          [[], /no database is named: put its URL into TOLLKEEPER_DATABASE_URL/],
          [["--to", "postgres://host/one", "--to-file", file], /named more than once/],
          [["--to", "mysql://x"], /must be postgres:\/\//],
          [
            ["--to", "postgres://ada:secret@host/one"],
            /--to has a password, which every user of this machine can read/
          ],
          [["--to", "postgres://host/one?password=secret"], /--to has a password/],
          [["--to-file", join(state, "absent")], /absent cannot be read/]
        ] as const)
          expect((yield* run("--state", state, ...words)).error).toMatch(refused)
        const nowhere = yield* run("--to-file", file, "--state", join(state, "nowhere"))
        expect(nowhere.error).toMatch(/nothing was ever started/)
        const moved = yield* run("--to-file", file, "--state", state, "--reason", "it grows")
        expect(moved.error).toBeUndefined()
        // The embedded ledger is stopped with its facilitator.
        expect(moved.out).toMatch(/^the audit did not run: .*; run `tollkeeper audit` over the new database/m)
        expect(moved.out).toMatch(/1201 {2}kernel_facts/)
        const [facts] = yield* rowsIn(
          url,
          (sql) => sql<{ count: number; last: string; next: string }>`select count(*)::int as count,
            (select subject from kernel_facts where position = 1201) as last,
            nextval(pg_get_serial_sequence('kernel_facts', 'id'))::text as next from kernel_facts`
        )
        expect(facts).toEqual({ count: 1201, last: 'subject "1201\n\\,', next: "1202" })
        const acts = yield* rowsIn(url, (sql) => makeAuditLog(sql).list({ limit: 5 }))
        expect(acts.map(({ action, reason }) => [action, reason])).toEqual([
          ["move", "it grows"],
          ["rotate", "a leak"]
        ])
        // A second time the target is in use; the folder still has its rows. The environment names it.
        process.env["TOLLKEEPER_DATABASE_URL"] = url
        yield* Effect.addFinalizer(() => Effect.sync(() => delete process.env["TOLLKEEPER_DATABASE_URL"]))
        expect((yield* run("--state", state)).error).toMatch(/has settlements already/)
        const own = yield* Effect.scoped(
          Effect.gen(function* () {
            const folder = yield* openEmbedded({ folder: join(state, "database") })
            return yield* Effect.flatMap(
              SqlClient.SqlClient,
              (sql) => sql<{ count: number }>`select count(*)::int as count from kernel_facts`
            ).pipe(Effect.provide(clientOf(folder)))
          })
        )
        expect(own[0]?.count).toBe(1201)
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    240_000
  )
})
