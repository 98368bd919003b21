// Databases for tests: the embedded one in memory and a real PostgreSQL, each fresh. TOLLKEEPER_TEST_DATABASES (default
// `pglite`) chooses between them. A database with tables is a copy of one in which the migrations ran: the embedded one
// starts from a dumped folder, the server's from a template.
import { PgClient } from "@effect/sql-pg"
import { NodeServices } from "@effect/platform-node"
import { it, type Vitest } from "@effect/vitest"
import { Effect, Layer, Option, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { createHash, randomUUID } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { basename, dirname, join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { describe, inject } from "vitest"
import { Settings } from "../../kernel/config/Settings.ts"
import { Database } from "../../kernel/database/Database.ts"
import { DatabaseSource } from "../../kernel/database/DatabaseSource.ts"
import * as Migrations from "../../kernel/database/Migrations.ts"
import * as NodeCrypto from "../../runtime/platform/nodeCrypto.ts"
import { openEmbedded } from "../../runtime/platform/pglite.ts"
import { slimDump } from "./slimDump.ts"

export type DatabaseKind = "pglite" | "postgres"

/** The databases this run covers. */
export const databaseKinds: ReadonlyArray<DatabaseKind> = (process.env["TOLLKEEPER_TEST_DATABASES"] ?? "pglite")
  .split(",")
  .filter((kind): kind is DatabaseKind => kind === "pglite" || kind === "postgres")

/** The default kind: the embedded database, in memory, unless the run chooses another. */
export const usualKind: DatabaseKind =
  process.env["TOLLKEEPER_TEST_FACILITATORS"] === "postgres" && databaseKinds.includes("postgres")
    ? "postgres"
    : "pglite"

const migrationsPath = fileURLToPath(new URL("../../migrations/", import.meta.url))

/** True if this owner has migrations. */
const hasFolder = (owner: string): boolean => existsSync(join(migrationsPath, owner))

/** Identifies the content of these owners' migrations, so that a dump is reused only for the same ones. */
const fingerprint = (owners: ReadonlyArray<string>): string => {
  const hash = createHash("sha256").update("slim")
  for (const owner of owners) {
    const folder = join(migrationsPath, owner)
    for (const file of readdirSync(folder).sort()) {
      hash.update(`${owner}/${file}\n`).update(readFileSync(join(folder, file)))
    }
  }
  return hash.digest("hex").slice(0, 16)
}

let compiled: Promise<WebAssembly.Module> | undefined

/** The embedded database's code, compiled once, because a test's process opens many. */
const code = Effect.promise(
  () =>
    (compiled ??= WebAssembly.compile(
      readFileSync(join(dirname(createRequire(import.meta.url).resolve("@electric-sql/pglite")), "pglite.wasm"))
    ))
)

type Embedded = Effect.Success<ReturnType<typeof openEmbedded>>

const sourceOf = ({ connect, dump }: Embedded) => ({ kind: "embedded" as const, connect, dump, connectionsMax: 8 })

/** Folder for dumps of the embedded database, reused by the next run of this tree. */
const dumpsFolder = fileURLToPath(new URL("../../node_modules/.cache/tollkeeper/", import.meta.url))

/** Begins a new log segment and returns its name; from then on only that one is needed. */
const beginSegment = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`select pg_switch_wal()::text`
  yield* sql`checkpoint`.unprepared
  const rows = yield* sql<{ readonly name: string }>`
    select pg_walfile_name(redo_lsn) as name from pg_control_checkpoint()`
  return rows[0]!.name
})

/**
 * The dump of an embedded database after the migrations of `owners`, made on first use. Then dumps of earlier
 * migrations are deleted.
 */
const dumpOf = (owners: ReadonlyArray<string>): Effect.Effect<string, unknown> =>
  Effect.gen(function* () {
    const set = owners.length === 0 ? "empty" : owners.join("+")
    const file = join(dumpsFolder, `pglite-0.5.14-${set}-${fingerprint(owners)}.tar`)
    if (existsSync(file)) return file
    const from = owners.length === 0 ? {} : { from: yield* dumpOf([]), code: yield* code }
    const database = yield* openEmbedded(from)
    const source = Layer.succeed(DatabaseSource, { open: Effect.succeed(sourceOf(database)) })
    const segment = yield* Effect.provide(beginSegment, migrated(source, owners), { local: true })
    const bytes = slimDump(yield* database.dump, segment)
    mkdirSync(dumpsFolder, { recursive: true })
    const draft = `${file}.${randomUUID()}`
    writeFileSync(draft, bytes)
    const old = readdirSync(dumpsFolder).filter(
      (name) => name.startsWith(`pglite-0.5.14-${set}-`) && name.endsWith(".tar")
    )
    renameSync(draft, file)
    for (const name of old) if (name !== basename(file)) rmSync(join(dumpsFolder, name), { force: true })
    return file
  }).pipe(Effect.scoped)

const embeddedSource = (owners: ReadonlyArray<string>) =>
  Layer.succeed(DatabaseSource, {
    open: Effect.gen(function* () {
      const from = yield* Effect.orDie(dumpOf(owners))
      return sourceOf(yield* openEmbedded({ from, code: yield* code }))
    })
  })

/** A session on a server's maintenance database, or on the database in the URL. */
const onServer = <A, E>(url: string, use: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>) =>
  Effect.orDie(
    Effect.scoped(
      Effect.flatMap(SqlClient.SqlClient, use).pipe(
        Effect.provide(PgClient.layer({ url: Redacted.make(url), maxConnections: 1 }))
      )
    )
  )

const urlOf = (server: string, database: string): Redacted.Redacted => {
  const own = new URL(server)
  own.pathname = `/${database}`
  return Redacted.make(own.href)
}

/**
 * The template database after the migrations of `owners`, made on first use on a server that belongs to the run. On a
 * server that outlives the run we leave nothing behind, so each database there is migrated separately.
 */
const templateOf = (server: string, owners: ReadonlyArray<string>): Effect.Effect<string | undefined> => {
  if (owners.length === 0 || process.env["TOLLKEEPER_TEST_DATABASE_URL"]) return Effect.succeed(undefined)
  const name = `template_${fingerprint(owners)}`
  return onServer(server, (sql) =>
    Effect.gen(function* () {
      // A session lock: the second caller finds the finished template.
      yield* sql`select pg_advisory_lock(hashtext(${name}))`
      const made = yield* sql`select 1 from pg_database where datname = ${name}`
      if (made.length > 0) return name
      const draft = `draft_${randomUUID().replaceAll("-", "")}`
      yield* sql`create database ${sql(draft)}`.unprepared
      const source = { kind: "server" as const, url: urlOf(server, draft) }
      yield* migrate(Layer.succeed(DatabaseSource, { open: Effect.succeed(source) }), owners)
      yield* sql`alter database ${sql(draft)} rename to ${sql(name)}`.unprepared
      return name
    })
  )
}

/** A fresh database on the run's server, dropped when the Scope closes. */
const serverSource = (owners: ReadonlyArray<string>) =>
  Layer.succeed(DatabaseSource, {
    open: Effect.gen(function* () {
      const server = inject("postgresUrl")
      const name = `test_${randomUUID().replaceAll("-", "")}`
      const template = yield* templateOf(server, owners)
      yield* Effect.acquireRelease(
        onServer(server, (sql) =>
          template === undefined
            ? sql`create database ${sql(name)}`.unprepared
            : sql`create database ${sql(name)} template ${sql(template)}`.unprepared
        ),
        () => onServer(server, (sql) => sql`drop database ${sql(name)} with (force)`.unprepared)
      )
      return { kind: "server" as const, url: urlOf(server, name) }
    })
  })

/** Only the database source; for tests that start whole processes' worth of layers over one database. */
export const sourceLayer = (kind: DatabaseKind): Layer.Layer<DatabaseSource> =>
  kind === "pglite" ? embeddedSource([]) : serverSource([])

/**
 * The same after the migrations of the kernel and of those plugins: a copy of a migrated database. A program that
 * starts on it runs the migrations again without effect.
 */
export const migratedSourceLayer = (
  kind: DatabaseKind,
  plugins: ReadonlyArray<string>
): Layer.Layer<DatabaseSource> => {
  const owners = ["kernel", ...plugins.filter((id) => id !== "kernel" && hasFolder(id)).sort()]
  return kind === "pglite" ? embeddedSource(owners) : serverSource(owners)
}

export const migrationsFolder = Layer.succeed(Migrations.MigrationsFolder, { path: migrationsPath })

const platform = Layer.mergeAll(NodeServices.layer, NodeCrypto.layer, migrationsFolder)

/** The database of `source`, after the migrations of `owners`. */
const migrated = (source: Layer.Layer<DatabaseSource>, owners: ReadonlyArray<string>) =>
  Layer.effectDiscard(Effect.forEach(owners, Migrations.run)).pipe(
    Layer.provideMerge(Database.layer),
    Layer.provideMerge(platform),
    Layer.provide(source),
    Layer.provide(Settings.layerTest({}, () => Option.none())),
    Layer.orDie
  )

/** Runs the migrations and releases the database; separately, since the caller also builds a client. */
const migrate = (source: Layer.Layer<DatabaseSource>, owners: ReadonlyArray<string>) =>
  Effect.provide(Effect.void, migrated(source, owners), { local: true })

/** A fresh database after the migrations of `owners`, with the services that migrations need. */
export const databaseLayer = (kind: DatabaseKind, owners: ReadonlyArray<string> = ["kernel"]) =>
  migrated(owners.length === 0 ? sourceLayer(kind) : migratedSourceLayer(kind, owners), owners)

type DatabaseLayer = ReturnType<typeof databaseLayer>

/** Runs all of these tests on one database. Each test empties the tables that it needs. */
export const onOneDatabase =
  (facts: (tests: Vitest.MethodsNonLive<Layer.Success<DatabaseLayer>>) => void) =>
  (layer: DatabaseLayer): void =>
    it.layer(layer)(facts)

/** Runs the same tests against each database of this run. */
export const describeDatabases = (
  name: string,
  facts: (layer: DatabaseLayer, kind: DatabaseKind) => void,
  owners: ReadonlyArray<string> = ["kernel"]
): void => {
  for (const kind of databaseKinds) describe(`${name} on ${kind}`, () => facts(databaseLayer(kind, owners), kind))
}
