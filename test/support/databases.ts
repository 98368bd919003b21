// Databases for tests: the embedded one in memory and a real PostgreSQL, each fresh. TOLLKEEPER_TEST_DATABASES (default
// `pglite`) says which of the two a run covers. The embedded one starts from a dumped folder, since making one takes
// seconds.
import { PgClient } from "@effect/sql-pg"
import { NodeServices } from "@effect/platform-node"
import { Effect, Layer, Option, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { randomUUID } from "node:crypto"
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { describe, inject } from "vitest"
import { Settings } from "../../kernel/config/Settings.ts"
import { Database } from "../../kernel/database/Database.ts"
import { DatabaseSource } from "../../kernel/database/DatabaseSource.ts"
import * as Migrations from "../../kernel/database/Migrations.ts"
import * as NodeCrypto from "../../runtime/platform/nodeCrypto.ts"
import { openEmbedded } from "../../runtime/platform/pglite.ts"

export type DatabaseKind = "pglite" | "postgres"

/** The databases this run covers. */
export const databaseKinds: ReadonlyArray<DatabaseKind> = (process.env["TOLLKEEPER_TEST_DATABASES"] ?? "pglite")
  .split(",")
  .filter((kind): kind is DatabaseKind => kind === "pglite" || kind === "postgres")

const dumpFile = join(tmpdir(), `tollkeeper-pglite-0.5.14-${process.getuid?.() ?? "user"}.tar`)

/** The dump of an empty embedded database, made by whoever needs it first on this machine. */
const emptyDump = Effect.gen(function* () {
  if (existsSync(dumpFile)) return dumpFile
  const bytes = yield* Effect.scoped(Effect.flatMap(openEmbedded({}), (database) => database.dump))
  const draft = `${dumpFile}.${randomUUID()}`
  writeFileSync(draft, bytes)
  renameSync(draft, dumpFile)
  return dumpFile
})

let compiled: Promise<WebAssembly.Module> | undefined

/** The embedded database's code, compiled once: a test's process opens many. */
const code = Effect.promise(
  () =>
    (compiled ??= WebAssembly.compile(
      readFileSync(join(dirname(createRequire(import.meta.url).resolve("@electric-sql/pglite")), "pglite.wasm"))
    ))
)

const embeddedSource = Layer.succeed(DatabaseSource, {
  open: Effect.gen(function* () {
    const { connect, dump } = yield* openEmbedded({ from: yield* emptyDump, code: yield* code })
    return { kind: "embedded" as const, connect, dump, connectionsMax: 8 }
  })
})

/** A fresh database on the run's server, dropped when the Scope closes. */
const serverSource = Layer.succeed(DatabaseSource, {
  open: Effect.gen(function* () {
    const url = inject("postgresUrl")
    const name = `test_${randomUUID().replaceAll("-", "")}`
    const admin = <A, E>(use: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>) =>
      Effect.orDie(
        Effect.scoped(
          Effect.flatMap(SqlClient.SqlClient, use).pipe(
            Effect.provide(PgClient.layer({ url: Redacted.make(url), maxConnections: 1 }))
          )
        )
      )
    yield* Effect.acquireRelease(
      admin((sql) => sql`create database ${sql(name)}`.unprepared),
      () => admin((sql) => sql`drop database ${sql(name)} with (force)`.unprepared)
    )
    const own = new URL(url)
    own.pathname = `/${name}`
    return { kind: "server" as const, url: Redacted.make(own.href) }
  })
})

/** A place for the database alone; for tests that start whole processes' worth of layers over one database. */
export const sourceLayer = (kind: DatabaseKind): Layer.Layer<DatabaseSource> =>
  kind === "pglite" ? embeddedSource : serverSource

export const migrationsFolder = Layer.succeed(Migrations.MigrationsFolder, {
  path: fileURLToPath(new URL("../../migrations/", import.meta.url))
})

const platform = Layer.mergeAll(NodeServices.layer, NodeCrypto.layer, migrationsFolder)

/** A fresh database with the migrations of `owners` run, and what running migrations needs. */
export const databaseLayer = (kind: DatabaseKind, owners: ReadonlyArray<string> = ["kernel"]) =>
  Layer.effectDiscard(Effect.forEach(owners, Migrations.run)).pipe(
    Layer.provideMerge(Database.layer),
    Layer.provideMerge(platform),
    Layer.provide(sourceLayer(kind)),
    Layer.provide(Settings.layerTest({}, () => Option.none())),
    Layer.orDie
  )

/** Runs the same facts against each database of this run. */
export const describeDatabases = (
  name: string,
  facts: (layer: ReturnType<typeof databaseLayer>, kind: DatabaseKind) => void,
  owners: ReadonlyArray<string> = ["kernel"]
): void => {
  for (const kind of databaseKinds) describe(`${name} on ${kind}`, () => facts(databaseLayer(kind, owners), kind))
}
