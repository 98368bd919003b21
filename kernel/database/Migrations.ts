// Forward-only migrations: plain SQL files `migrations/<owner>/NNNN_name.sql`. Each owner has a ledger table that keeps
// a checksum of every file that has run. Each file runs in a transaction, under a lock that makes a second replica wait
// and then find nothing to do. While other replicas serve, a file waits for a table only briefly, rolls back, and
// retries: so it neither blocks payments nor deadlocks with them. States that could not be repaired later are refused
// before anything runs: a gap in the numbers, an edited file that has already run, a file added below the last executed
// file, a database newer than the code.
import { Context, Effect, FileSystem, Path, Schedule, Schema } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient, type SqlError } from "effect/sql"
import { errorMessage } from "./errorMessage.ts"
import { isSerializationConflict, Lane } from "./Connections.ts"
import { Crypto } from "../platform/Crypto.ts"

/** The folder `migrations/` of this program; the runtime gives its path. */
export class MigrationsFolder extends Context.Service<MigrationsFolder, { readonly path: string }>()(
  "tollkeeper/database/MigrationsFolder"
) {}

/** The files and the database do not fit together. Nothing was run. */
export class MigrationRefused extends Schema.TaggedError<MigrationRefused>()("MigrationRefused", {
  owner: Schema.String,
  migration: Schema.String,
  message: Schema.String
}) {}

/** A file failed; none of its changes were kept. */
export class MigrationFailed extends Schema.TaggedError<MigrationFailed>()("MigrationFailed", {
  owner: Schema.String,
  migration: Schema.String,
  message: Schema.String
}) {}

export interface Migration {
  readonly id: number
  readonly name: string
  readonly sql: string
  /** sha-256 hex of the file. */
  readonly checksum: string
}

interface AppliedMigration {
  readonly id: number
  readonly name: string
  readonly checksum: string
}

const fileName = /^(\d{4})_([a-z0-9_]+)\.sql$/

/** Reads an owner's files, in order; refuses an invalid name, a duplicate number and a gap. */
const read = Effect.fnUntraced(function* (owner: string) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { sha256 } = yield* Crypto
  const folder = path.join((yield* MigrationsFolder).path, owner)
  const refuse = (migration: string, message: string) => new MigrationRefused({ owner, migration, message })
  const names = (yield* Effect.mapError(files.readDirectory(folder), () =>
    refuse("", `there is no folder ${owner}`)
  )).sort()
  const migrations: Array<Migration> = []
  for (const file of names) {
    const match = fileName.exec(file)
    if (match === null) return yield* refuse(file, "a migration is named NNNN_name.sql")
    const [, digits, name] = match
    if (Number(digits) !== migrations.length + 1)
      return yield* refuse(file, `number ${migrations.length + 1} is required here`)
    const sql = yield* Effect.mapError(files.readFileString(path.join(folder, file)), () =>
      refuse(file, "cannot be read")
    )
    const checksum = Hex.encode(sha256(new TextEncoder().encode(sql)))
    migrations.push({ id: migrations.length + 1, name: name!, sql, checksum })
  }
  return migrations
})

/** The pending files; rejects files that do not fit the database. Pure. */
export const pending = (
  owner: string,
  migrations: ReadonlyArray<Migration>,
  applied: ReadonlyArray<AppliedMigration>
): Effect.Effect<ReadonlyArray<Migration>, MigrationRefused> =>
  Effect.gen(function* () {
    const byId = new Map(migrations.map((migration) => [migration.id, migration]))
    const highest = Math.max(0, ...applied.map(({ id }) => id))
    for (const { checksum, id, name } of applied) {
      const refuse = (message: string) => new MigrationRefused({ owner, migration: `${id} ${name}`, message })
      const file = byId.get(id)
      if (file === undefined)
        return yield* refuse("ran here, but this program does not contain it: the program is older than the database")
      if (file.name !== name) return yield* refuse(`ran under this name, the file is now ${file.name}`)
      if (file.checksum !== checksum) return yield* refuse("was edited after it ran; write a new migration instead")
    }
    const done = new Set(applied.map(({ id }) => id))
    const late = migrations.find(({ id }) => id < highest && !done.has(id))
    if (late !== undefined) {
      return yield* new MigrationRefused({
        owner,
        migration: `${late.id} ${late.name}`,
        message: `came after ${highest} had run`
      })
    }
    return migrations.filter(({ id }) => id > highest)
  })

const tableOf = (owner: string): string => `tollkeeper_migrations_${owner.replaceAll("-", "_")}`

/** Lock timeout of a file: shorter than the server's deadlock timeout. */
const lockWait = "700ms"
/** After this many tries of a file, about two minutes, its tables are considered locked permanently. */
const triesMax = 60
const between = Schedule.jittered(Schedule.spaced("1500 millis"))

const fileOf = ({ id, name }: Migration): string => `${String(id).padStart(4, "0")}_${name}`

/** Runs the first pending file of an owner; undefined if none is pending. */
const runNext = (sql: SqlClient.SqlClient, owner: string, migrations: ReadonlyArray<Migration>) => {
  const table = tableOf(owner)
  const runFile = ({ checksum, id, name, sql: text }: Migration) =>
    Effect.gen(function* () {
      yield* sql`set local lock_timeout = ${sql.literal(`'${lockWait}'`)}`.unprepared
      for (const statement of splitStatements(text)) yield* sql.unsafe(statement).unprepared
      yield* sql`insert into ${sql(table)} ${sql.insert({ id, name, checksum })}`
    })
  return sql.withTransaction(
    Effect.gen(function* () {
      // Without a limit, because another replica's files, or this one's over large tables, may take long.
      yield* sql`set local statement_timeout = 0`.unprepared
      yield* sql`set local lock_timeout = 0`.unprepared
      // One lock for all owners, held to the end of the transaction.
      yield* sql`select pg_advisory_xact_lock(724402402)`
      yield* sql`create table if not exists ${sql(table)} (
        id integer primary key, name text not null, checksum text not null,
        ran_at timestamptz not null default clock_timestamp())`
      const applied = yield* sql<AppliedMigration>`select id, name, checksum from ${sql(table)} order by id`
      const [next] = yield* pending(owner, migrations, applied)
      if (next === undefined) return undefined
      const migration = fileOf(next)
      yield* Effect.mapError(runFile(next), (cause) => new FileFailed({ migration, cause }))
      return next.name
    })
  )
}

/** The error of a file, before the decision to retry it. */
class FileFailed extends Schema.TaggedError<FileFailed>()("FileFailed", {
  migration: Schema.String,
  cause: Schema.Defect()
}) {}

/** Runs an owner's pending migrations and returns their names; empty if the database is up to date. */
export const run = Effect.fn("Migrations.run")(
  function* (
    owner: string
  ): Effect.fn.Return<
    ReadonlyArray<string>,
    MigrationRefused | MigrationFailed | SqlError.SqlError,
    SqlClient.SqlClient | FileSystem.FileSystem | Path.Path | Crypto | MigrationsFolder
  > {
    const sql = yield* SqlClient.SqlClient
    const migrations = yield* read(owner)
    const next = runNext(sql, owner, migrations).pipe(
      Effect.tapError((error) =>
        error._tag === "FileFailed" && isSerializationConflict(error.cause)
          ? Effect.logInfo("a migration waits for locks on its tables").pipe(
              Effect.annotateLogs({ event: "migration_waits", migration: `${owner}/${error.migration}` })
            )
          : Effect.void
      ),
      Effect.retry({
        schedule: between,
        times: triesMax - 1,
        while: (error) => error._tag === "FileFailed" && isSerializationConflict(error.cause)
      }),
      Effect.catchTag("FileFailed", ({ cause, migration }) => {
        const reported = `migration ${owner}/${migration}: ${errorMessage(cause)}`
        const message = isSerializationConflict(cause)
          ? `${reported}, after ${triesMax} tries while other sessions used its tables`
          : reported
        return Effect.fail(new MigrationFailed({ owner, migration, message }))
      })
    )
    const ran: Array<string> = []
    for (let name = yield* next; name !== undefined; name = yield* next) ran.push(name)
    return ran
  },
  Effect.provideService(Lane, "maintenance")
)

/**
 * The number of an owner's migrations that have not run; undefined when none has ever run. Creates nothing. Rejects
 * files that do not fit, as a run does.
 */
export const pendingCount = Effect.fn("Migrations.pendingCount")(function* (owner: string) {
  const sql = yield* SqlClient.SqlClient
  const migrations = yield* read(owner)
  const table = tableOf(owner)
  const [found] = yield* sql<{ there: boolean }>`select to_regclass(${table}) is not null as there`
  if (found?.there !== true) return undefined
  const applied = yield* sql<AppliedMigration>`select id, name, checksum from ${sql(table)} order by id`
  return (yield* pending(owner, migrations, applied)).length
})

/** Splits SQL at semicolons outside of strings, quoted names, dollar quotes and comments. Comments are dropped. */
export const splitStatements = (text: string): ReadonlyArray<string> => {
  const token = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|(\$[A-Za-z_]*\$)[\s\S]*?\1|;/g
  const statements: Array<string> = []
  let current = ""
  let from = 0
  const end = () => {
    if (current.trim() !== "") statements.push(current.trim())
    current = ""
  }
  for (const match of text.matchAll(token)) {
    current += text.slice(from, match.index)
    from = match.index + match[0].length
    if (match[0] === ";") end()
    else if (match[0].startsWith("--") || match[0].startsWith("/*")) current += " "
    else current += match[0]
  }
  current += text.slice(from)
  end()
  return statements
}
