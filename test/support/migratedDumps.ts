// Dumps of the embedded database after our migrations, and state folders filled from them. An embedded database that
// starts from a dump neither creates a cluster nor migrates: twenty of the thirty processor seconds that a program's
// first start takes. Free of the test runner, for programs that start others too.
import { NodeServices } from "@effect/platform-node"
import { Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { createHash, randomUUID } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { basename, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Settings } from "../../kernel/config/Settings.ts"
import { Database } from "../../kernel/database/Database.ts"
import { DatabaseSource } from "../../kernel/database/DatabaseSource.ts"
import * as Migrations from "../../kernel/database/Migrations.ts"
import * as NodeCrypto from "../../runtime/platform/nodeCrypto.ts"
import { openEmbedded } from "../../runtime/platform/pglite.ts"
import { loadProfile } from "../../runtime/profile.ts"
import { slimDump, unpackArchive } from "./slimDump.ts"

const migrationsPath = fileURLToPath(new URL("../../migrations/", import.meta.url))

export const migrationsFolder = Layer.succeed(Migrations.MigrationsFolder, { path: migrationsPath })

const platform = Layer.mergeAll(NodeServices.layer, NodeCrypto.layer, migrationsFolder)

/** The database of `source`, after the migrations of `owners`. */
export const migrated = (source: Layer.Layer<DatabaseSource>, owners: ReadonlyArray<string>) =>
  Layer.effectDiscard(Effect.forEach(owners, Migrations.run)).pipe(
    Layer.provideMerge(Database.layer),
    Layer.provideMerge(platform),
    Layer.provide(source),
    Layer.provide(Settings.layerTest({}, () => Option.none())),
    Layer.orDie
  )

/** The kernel and those of the plugins that have migrations, in the order in which a dump's name has them. */
export const migrationOwners = (plugins: ReadonlyArray<string>): ReadonlyArray<string> => [
  "kernel",
  ...plugins.filter((id) => id !== "kernel" && existsSync(join(migrationsPath, id))).sort()
]

/** Identifies the content of these owners' migrations, so that a dump is reused only for the same ones. */
export const fingerprint = (owners: ReadonlyArray<string>): string => {
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
export const code = Effect.promise(
  () =>
    (compiled ??= WebAssembly.compile(
      readFileSync(join(dirname(createRequire(import.meta.url).resolve("@electric-sql/pglite")), "pglite.wasm"))
    ))
)

type Embedded = Effect.Success<ReturnType<typeof openEmbedded>>

export const sourceOf = ({ connect, dump }: Embedded) => ({
  kind: "embedded" as const,
  connect,
  dump,
  connectionsMax: 8
})

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
export const dumpOf = (owners: ReadonlyArray<string>): Effect.Effect<string, unknown> =>
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

/** Fills a new state folder with the embedded database that a first start of these plugins would create. */
export const fillState = (stateFolder: string, plugins: ReadonlyArray<string>): Effect.Effect<void, unknown> =>
  Effect.map(dumpOf(migrationOwners(plugins)), (file) =>
    unpackArchive(readFileSync(file), join(stateFolder, "database"))
  )

/** The same for the local profile. */
export const fillLocalState = (stateFolder: string): Promise<void> =>
  loadProfile("local", [], {}).pipe(
    Effect.flatMap(({ plugins }) => fillState(stateFolder, plugins)),
    Effect.provide(NodeServices.layer),
    Effect.runPromise
  )
