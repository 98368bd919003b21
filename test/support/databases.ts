// Databases for tests: the embedded one in memory and a real PostgreSQL, each fresh. TOLLKEEPER_TEST_DATABASES (default
// `pglite`) chooses between them. A database with tables is a copy of one in which the migrations ran: the embedded one
// starts from a dumped folder, the server's from a template.
import { PgClient } from "@effect/sql-pg"
import { it, type Vitest } from "@effect/vitest"
import { Context, Effect, Layer, ManagedRuntime, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { randomUUID } from "node:crypto"
import process from "node:process"
import { describe, inject } from "vitest"
import { DatabaseSource } from "../../kernel/database/DatabaseSource.ts"
import { openEmbedded } from "../../runtime/platform/pglite.ts"
import { code, dumpOf, fingerprint, migrated, migrationOwners, sourceOf } from "./migratedDumps.ts"

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

const embeddedSource = (owners: ReadonlyArray<string>) =>
  Layer.succeed(DatabaseSource, {
    open: Effect.gen(function* () {
      const from = yield* Effect.orDie(dumpOf(owners))
      return sourceOf(yield* openEmbedded({ from, code: yield* code }))
    })
  })

/** A client with one session, on the database in the URL. */
const clientOf = (url: string) => PgClient.layer({ url: Redacted.make(url), maxConnections: 1 })
const runtimes = new Map<string, ManagedRuntime.ManagedRuntime<SqlClient.SqlClient, unknown>>()

/**
 * Runs statements in a session of the maintenance database. This process keeps the session, because opening and closing
 * one costs the server as much as copying a database. A caller's test clock does not apply.
 */
const onServer = <A, E>(url: string, use: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>) =>
  Effect.promise(() => {
    let runtime = runtimes.get(url)
    if (runtime === undefined) runtimes.set(url, (runtime = ManagedRuntime.make(clientOf(url))))
    return runtime.runPromise(Effect.flatMap(SqlClient.SqlClient, use))
  })

const urlOf = (server: string, database: string): Redacted.Redacted => {
  const own = new URL(server)
  own.pathname = `/${database}`
  return Redacted.make(own.href)
}

/** Makes a template database, unless it exists. The session's lock lets only one process make it. */
const makeTemplate = (server: string, name: string, owners: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`select pg_advisory_lock(hashtext(${name}))`
    const made = yield* sql`select 1 from pg_database where datname = ${name}`
    if (made.length > 0) return name
    const draft = `draft_${randomUUID().replaceAll("-", "")}`
    yield* sql`create database ${sql(draft)}`.unprepared
    const source = { kind: "server" as const, url: urlOf(server, draft) }
    yield* migrate(Layer.succeed(DatabaseSource, { open: Effect.succeed(source) }), owners)
    yield* sql`alter database ${sql(draft)} rename to ${sql(name)}`.unprepared
    return name
  }).pipe(Effect.provide(clientOf(server)), Effect.scoped)

const templates = new Map<string, Promise<string>>()

/**
 * The template database after the migrations of `owners`, made on first use on a server that belongs to the run. On a
 * server that outlives the run we leave nothing behind, so each database there is migrated separately.
 */
const templateOf = (server: string, owners: ReadonlyArray<string>): Effect.Effect<string | undefined> => {
  if (owners.length === 0 || process.env["TOLLKEEPER_TEST_DATABASE_URL"]) return Effect.succeed(undefined)
  return Effect.promise(() => {
    const name = `template_${fingerprint(owners)}`
    const known = templates.get(name)
    if (known !== undefined) return known
    const made = Effect.runPromise(makeTemplate(server, name, owners))
    templates.set(name, made)
    // A failed attempt is made again by the next test.
    made.catch(() => templates.delete(name))
    return made
  })
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
            : // Copies files. The default strategy writes every page to the log, which costs three times as much.
              sql`create database ${sql(name)} template ${sql(template)} strategy file_copy`.unprepared
        ),
        () => onServer(server, (sql) => sql`drop database ${sql(name)} with (force)`.unprepared)
      )
      return { kind: "server" as const, url: urlOf(server, name) }
    })
  })

/** Only the database source; for tests that start whole processes' worth of layers over one database. */
export const sourceLayer = (kind: DatabaseKind): Layer.Layer<DatabaseSource> =>
  kind === "pglite" ? embeddedSource([]) : serverSource([])

/** A database that outlives the facilitators that use it. */
export const lasting = (kind: DatabaseKind) =>
  Effect.gen(function* () {
    const opened = yield* Context.get(yield* Layer.build(sourceLayer(kind)), DatabaseSource).open
    return Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) })
  })

/**
 * The same after the migrations of the kernel and of those plugins: a copy of a migrated database. A program that
 * starts on it runs the migrations again without effect.
 */
export const migratedSourceLayer = (
  kind: DatabaseKind,
  plugins: ReadonlyArray<string>
): Layer.Layer<DatabaseSource> => {
  const owners = migrationOwners(plugins)
  return kind === "pglite" ? embeddedSource(owners) : serverSource(owners)
}

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
