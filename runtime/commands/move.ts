// `tollkeeper move`: copies an embedded database into an empty one of a PostgreSQL server, while nothing runs over the
// folder, compares both, and audits the new one. It does not change the folder. The server's URL comes from a file or
// the environment if it has a password, because every user of the machine can list the arguments of a process.
import { Console, Data, Effect, FileSystem, Layer, Option, Redacted } from "effect"
import { Command, Flag } from "effect/cli"
import { SqlClient } from "effect/sql"
import { join } from "node:path"
import process from "node:process"
import { Limits } from "../../kernel/config/Limits.ts"
import { Network } from "../../kernel/config/Network.ts"
import { Database } from "../../kernel/database/Database.ts"
import { DatabaseSource } from "../../kernel/database/DatabaseSource.ts"
import * as Migrations from "../../kernel/database/Migrations.ts"
import { makeAuditLog } from "../../kernel/settlement/operators/OperatorAuditLog.ts"
import { clientOf } from "../embeddedCheck.ts"
import { moveRows, ownersOf } from "../moveDatabase.ts"
import { lockFolder } from "../platform/folderLock.ts"
import * as NodeHttpCalls from "../platform/nodeHttpCalls.ts"
import { openEmbedded } from "../platform/pglite.ts"
import { StateRefused } from "../state.ts"
import { neverStartedOver, isDatabase } from "../answeredBy.ts"
import { examine } from "./audit.ts"
import { answer, byPerson, groundAt, jsonFlag, placeFlags, whyFlag } from "./CommandTarget.ts"

const variable = "TOLLKEEPER_DATABASE_URL"

/** The target is not named, named twice, or named where others read it. */
class TargetRefused extends Data.TaggedError("TargetRefused")<{ readonly message: string }> {}

/** The target's URL, from exactly one source. */
const targetOf = Effect.fnUntraced(function* (to: Option.Option<string>, toFile: Option.Option<string>) {
  const given = process.env[variable]?.trim() ?? ""
  const sources = [Option.isSome(to), Option.isSome(toFile), given !== ""].filter(Boolean).length
  if (sources !== 1)
    return yield* new TargetRefused({
      message:
        `${sources === 0 ? "no database is named" : "the database is named more than once"}: ` +
        `put its URL into ${variable}, or into a file for --to-file`
    })
  const text = Option.isSome(toFile)
    ? (yield* Effect.mapError(
        (yield* FileSystem.FileSystem).readFileString(toFile.value),
        () => new TargetRefused({ message: `${toFile.value} cannot be read; --to-file names a file with the URL` })
      )).trim()
    : Option.getOrElse(to, () => given)
  if (!/^postgres(ql)?:\/\/./.test(text) || !URL.canParse(text))
    return yield* new TargetRefused({ message: "the database's URL must be postgres://USER:PASSWORD@HOST/DATABASE" })
  const { password, searchParams } = new URL(text)
  if (Option.isSome(to) && (password !== "" || searchParams.has("password")))
    return yield* new TargetRefused({
      message:
        "--to has a password, which every user of this machine can read in the process list; " +
        `change the password, and put the URL into ${variable} or into a file for --to-file`
    })
  return Redacted.make(text)
})

/** Compares the new database with the ledger. A ledger that does not answer is reported, the rows are there anyway. */
const audited = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const compared = yield* examine({ rpc: Option.none(), withLog: false, logCopy: Option.none() }).pipe(
    Effect.provideService(SqlClient.SqlClient, sql),
    Effect.provide(Layer.mergeAll(Network.layer, Limits.layer, NodeHttpCalls.layer)),
    Effect.result
  )
  return compared._tag === "Success"
    ? { mismatches: compared.success.mismatches.length, settlements: compared.success.settlements }
    : { why: compared.failure.message }
})

const auditLine = (result: Effect.Success<ReturnType<typeof audited>>): string =>
  "why" in result
    ? `the audit did not run: ${result.why}; run \`tollkeeper audit\` over the new database once the ledger answers`
    : `audit: ${result.settlements} settlements, ${result.mismatches} mismatches between ledger and database`

/** Runs the source's migrations in the target; refuses a source of another version. */
const prepare = Effect.fnUntraced(function* (from: SqlClient.SqlClient, to: SqlClient.SqlClient) {
  for (const name of yield* ownersOf(from)) {
    const owner = name.replaceAll("_", "-")
    const pending = yield* Effect.provideService(Migrations.pendingCount(owner), SqlClient.SqlClient, from)
    if (pending !== 0)
      return yield* new StateRefused({
        message: `the folder's database is of an older version (${owner}); start this version over it, then move it`
      })
    yield* Effect.provideService(Migrations.run(owner), SqlClient.SqlClient, to)
  }
})

export const move = Command.make(
  "move",
  {
    ...placeFlags(),
    json: jsonFlag,
    reason: whyFlag,
    to: Flag.String("to").pipe(
      Flag.withDescription(`URL of an empty database, without a password; default ${variable}`),
      Flag.optional
    ),
    toFile: Flag.String("to-file").pipe(
      Flag.withDescription(
        "File with the URL of an empty database: postgres://USER:PASSWORD@HOST/DATABASE; default none"
      ),
      Flag.optional
    )
  },
  ({ json, reason, to, toFile, ...place }) =>
    Effect.gen(function* () {
      const url = yield* targetOf(to, toFile)
      const folder = join(place.state, "database")
      if (!isDatabase(folder)) return yield* new StateRefused({ message: neverStartedOver(place.state) })
      yield* lockFolder(folder)
      const opened = yield* openEmbedded({ folder })
      const from = yield* Effect.provide(SqlClient.SqlClient, yield* Layer.build(clientOf(opened)))
      const target = Layer.succeed(DatabaseSource, {
        open: Effect.succeed({ kind: "server" as const, url })
      })
      const sql = yield* Effect.provide(SqlClient.SqlClient, yield* Layer.build(Layer.provide(Database.layer, target)))
      yield* prepare(from, sql)
      if (!json) yield* Console.error(`copies ${folder}; it is only read`)
      const tables = yield* moveRows(from, sql)
      const rows = tables.reduce((sum, table) => sum + table.rows, 0)
      const entry = { ...(yield* byPerson), action: "move", subject: folder, reason }
      yield* makeAuditLog(sql).recordDone(entry, "done", { after: `${tables.length} tables, ${rows} rows` })
      const audit = yield* audited(sql)
      yield* answer(json, { folder, tables, rows, audit }, [
        ...tables.filter((table) => table.rows > 0).map((table) => `${String(table.rows).padStart(9)}  ${table.table}`),
        `${rows} rows of ${tables.length} tables are in the new database, compared row by row; ${folder} is as it was`,
        auditLine(audit),
        "set DATABASE_URL to it and start; do not start over the folder again"
      ])
      if ("mismatches" in audit && audit.mismatches > 0)
        return yield* new TargetRefused({
          message: `database and ledger differ in ${audit.mismatches} places; \`tollkeeper audit\` lists them`
        })
    }).pipe(Effect.scoped, Effect.provide(groundAt(place)))
).pipe(Command.withDescription("Copy an embedded database into an empty one of a PostgreSQL server, and compare both"))
