// `tollkeeper repair`: makes a damaged embedded database readable again, and keeps a copy of its folder. It resets a
// log that does not open, empties unreadable pages, and rebuilds the indexes. Each step reports its possible losses.
// The ledger has every payment: `tollkeeper audit` shows the missing ones, and a payment that is sent again is adopted.
import { Clock, Effect } from "effect"
import { Command } from "effect/cli"
import { SqlClient } from "effect/sql"
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { clientOf, examineRows, type Holdings, holdingsText } from "../embeddedCheck.ts"
import { answer, jsonFlag, kept, stateFlag, whyFlag } from "./CommandTarget.ts"
import { lockFolder } from "../platform/folderLock.ts"
import { openEmbedded } from "../platform/pglite.ts"
import { damageOf, resetLog, type Template } from "../resetLog.ts"
import { StateRefused } from "../state.ts"

/** A new database's control file and log. */
const readTemplate = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "tollkeeper-repair-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )
  yield* Effect.scoped(openEmbedded({ folder }))
  const [log = ""] = readdirSync(join(folder, "pg_wal")).filter((name) => /^[0-9A-F]{24}$/.test(name))
  const template: Template = {
    control: new Uint8Array(readFileSync(join(folder, "global", "pg_control"))),
    log: new Uint8Array(readFileSync(join(folder, "pg_wal", log)))
  }
  return template
}).pipe(Effect.scoped)

/** Empties unreadable pages, table by table, and rebuilds all indexes. Returns the steps as sentences. */
const mendTables = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { unreadable } = yield* examineRows
  const done: Array<string> = []
  for (const { table, why } of unreadable) {
    yield* sql`set zero_damaged_pages = on`
    yield* sql.unsafe(`vacuum full ${table}`)
    yield* sql`set zero_damaged_pages = off`
    done.push(`table ${table}: pages that could not be read (${why}) were emptied; the rows on them are lost`)
  }
  const tables = yield* sql<{ name: string }>`select quote_ident(relname) as name from pg_class
    where relkind = 'r' and relnamespace = 'public'::regnamespace order by relname`
  for (const { name } of tables)
    yield* sql
      .unsafe(`reindex table ${name}`)
      .pipe(
        Effect.catch((error) =>
          Effect.sync(() => void done.push(`table ${name}: an index cannot be built (${String(error.cause)})`))
        )
      )
  done.push("all indexes were rebuilt")
  yield* sql`checkpoint`
  return { done, holdings: yield* examineRows }
})

const mended = (folder: string) =>
  Effect.gen(function* () {
    const opened = yield* openEmbedded({ folder })
    return yield* mendTables.pipe(Effect.provide(clientOf(opened)))
  }).pipe(Effect.scoped)

/** Copies the folder, and repairs it; fails when it cannot be opened even with a new log. */
export const repairFolder = Effect.fnUntraced(function* (folder: string) {
  const copy = `${folder}.before-repair-${yield* Clock.currentTimeMillis}`
  yield* Effect.try({
    try: () => cpSync(folder, copy, { recursive: true }),
    catch: (cause) => new StateRefused({ message: `${folder} cannot be copied to ${copy}; nothing was changed`, cause })
  })
  const damage = damageOf(folder)
  const found = yield* Effect.result(mended(folder))
  if (found._tag === "Success") return { copy, damage, ...found.success }
  const template = yield* readTemplate
  const { isControlReplaced } = yield* Effect.sync(() => resetLog(folder, template))
  const again = yield* mended(folder).pipe(
    Effect.mapError(
      (cause) =>
        new StateRefused({
          message: `${folder} does not open with a new log either; restore a backup (${copy} is as it was)`,
          cause
        })
    )
  )
  const lost =
    "the log was reset: changes since the last checkpoint that had not reached the tables are lost" +
    (isControlReplaced ? ", and the control file was recreated" : "")
  return { copy, damage, ...again, done: [lost, ...again.done] }
})

const lines = (
  folder: string,
  repaired: { copy: string; damage: string | undefined; done: ReadonlyArray<string>; holdings: Holdings }
) => [
  `${folder}: ${repaired.damage ?? "its files show no damage from outside"}; the original is kept in ${repaired.copy}`,
  ...repaired.done,
  `it holds ${holdingsText(repaired.holdings)}`,
  "start it, then compare it with the ledger by `tollkeeper audit`; " +
    "a payment that is on the ledger but missing here is adopted when it is sent again"
]

export const repair = Command.make(
  "repair",
  { state: stateFlag, json: jsonFlag, reason: whyFlag },
  Effect.fn(function* ({ json, reason, state }) {
    const folder = join(state, "database")
    if (!existsSync(folder)) return yield* new StateRefused({ message: `there is no ${folder}; nothing to repair` })
    yield* lockFolder(folder)
    const repaired = yield* kept(state, { action: "repair", subject: folder, reason })(
      repairFolder(folder),
      ({ copy, done }) => ({ before: copy, after: done.join("; ") })
    )
    yield* answer(json, { folder, ...repaired }, lines(folder, repaired))
  }, Effect.scoped)
).pipe(Command.withDescription("Make a damaged embedded database readable again; keeps a copy and says what is lost"))
