// `tollkeeper move --to postgres://…`: copies an embedded database into an empty one of a PostgreSQL server, while
// nothing runs over the folder, and compares both. It does not change the folder.
import { Console, Effect, Layer, Redacted, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { SqlClient } from "effect/sql"
import { join } from "node:path"
import { Database } from "../../kernel/database/Database.ts"
import { DatabaseSource } from "../../kernel/database/DatabaseSource.ts"
import * as Migrations from "../../kernel/database/Migrations.ts"
import { makeAuditLog } from "../../kernel/settlement/operators/OperatorAuditLog.ts"
import { clientOf } from "../embeddedCheck.ts"
import { moveRows, ownersOf } from "../moveDatabase.ts"
import { lockFolder } from "../platform/folderLock.ts"
import { openEmbedded } from "../platform/pglite.ts"
import { StateRefused } from "../state.ts"
import { neverStartedOver, isDatabase } from "../answeredBy.ts"
import { answer, byPerson, groundAt, jsonFlag, placeFlags, whyFlag } from "./CommandTarget.ts"

const url = Schema.String.check(
  Schema.makeFilter(
    (text) => /^postgres(ql)?:\/\/./.test(text) || "must be a URL postgres://USER:PASSWORD@HOST/DATABASE"
  )
)

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
      Flag.withSchema(url),
      Flag.withDescription("URL of an empty database: postgres://USER:PASSWORD@HOST/DATABASE")
    )
  },
  ({ json, reason, to, ...place }) =>
    Effect.gen(function* () {
      const folder = join(place.state, "database")
      if (!isDatabase(folder)) return yield* new StateRefused({ message: neverStartedOver(place.state) })
      yield* lockFolder(folder)
      const opened = yield* openEmbedded({ folder })
      const from = yield* Effect.provide(SqlClient.SqlClient, yield* Layer.build(clientOf(opened)))
      const target = Layer.succeed(DatabaseSource, {
        open: Effect.succeed({ kind: "server" as const, url: Redacted.make(to) })
      })
      const sql = yield* Effect.provide(SqlClient.SqlClient, yield* Layer.build(Layer.provide(Database.layer, target)))
      yield* prepare(from, sql)
      if (!json) yield* Console.error(`copies ${folder}; it is only read`)
      const tables = yield* moveRows(from, sql)
      const rows = tables.reduce((sum, table) => sum + table.rows, 0)
      const entry = { ...(yield* byPerson), action: "move", subject: folder, reason }
      yield* makeAuditLog(sql).recordDone(entry, "done", { after: `${tables.length} tables, ${rows} rows` })
      yield* answer(json, { folder, tables, rows }, [
        ...tables.filter((table) => table.rows > 0).map((table) => `${String(table.rows).padStart(9)}  ${table.table}`),
        `${rows} rows of ${tables.length} tables are in the new database, compared row by row; ${folder} is as it was`,
        "set DATABASE_URL to it, start, and compare it with the ledger by `tollkeeper audit`; " +
          "do not start over the folder again"
      ])
    }).pipe(Effect.scoped, Effect.provide(groundAt(place)))
).pipe(Command.withDescription("Copy an embedded database into an empty one of a PostgreSQL server, and compare both"))
