// `tollkeeper backup`: saves the whole embedded database to one file while it runs, and restores it into an empty
// folder. The file is a tar archive of the data folder between two statements; the database recovers from it
// as after a `kill -9`. A restore checks the archive, opens it in a temporary folder, reads every row, and only then
// renames that folder to the database's name. The embedded ledger and the development sponsor's seed are not included:
// they are a test network and test money, and an archive must not contain a key. A PostgreSQL server has its own tools.
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { Database } from "../../kernel/database/Database.ts"
import { archiveProblem, clientOf, examineRows, holdingsText } from "../embeddedCheck.ts"
import { answer, databaseOf, jsonFlag, kept, placeFlags, stateFlag, whyFlag, Within } from "./CommandTarget.ts"
import { openEmbedded, restoringFolder } from "../platform/pglite.ts"
import { lockFolder } from "../platform/folderLock.ts"
import { claimState, isClaimed, releaseState, StateRefused } from "../state.ts"

const file = Argument.String("file").pipe(Argument.withDescription("The archive, such as tollkeeper.tar"))

const write = (target: string, bytes: Uint8Array) =>
  Effect.try({
    try: () => {
      mkdirSync(dirname(target), { recursive: true })
      // Complete or absent, also after a power cut.
      try {
        writeFileSync(`${target}.new`, bytes, { mode: 0o600, flush: true })
        renameSync(`${target}.new`, target)
      } finally {
        // A part of it on a full disk would take the space of payments.
        rmSync(`${target}.new`, { force: true })
      }
    },
    catch: (cause) => new StateRefused({ message: `${target} cannot be written`, cause })
  })

const save = Command.make("save", { ...placeFlags(), json: jsonFlag, file }, ({ file, json, ...place }) =>
  Effect.gen(function* () {
    const { dump } = yield* Database
    if (dump === undefined)
      return yield* new StateRefused({
        message: "this database is a PostgreSQL server's; use `pg_dump --format=custom --file=FILE $DATABASE_URL`"
      })
    const bytes = yield* dump
    const target = resolve((yield* Within)?.folder ?? ".", file)
    yield* write(target, bytes)
    yield* answer(json, { file: target, bytes: bytes.length }, [
      `${target}: ${bytes.length} bytes; \`tollkeeper backup restore ${file} --state DIR\` ` +
        "puts it into an empty folder",
      "it contains only the database, not the embedded ledger and sponsor.seed; " +
        "copy the whole folder for those, while nothing runs over it"
    ])
  }).pipe(Effect.provide(databaseOf(place)))
).pipe(Command.withDescription("Save the embedded database to one file, also while it runs"))

/** Opens an archive in a new folder and reads all of its rows; deletes the folder on failure. */
const unpack = Effect.fnUntraced(function* (file: string, folder: string) {
  const refuse = (why: string, cause?: unknown) =>
    new StateRefused({ message: `${file} cannot be restored: ${why}; nothing was kept`, cause })
  const holdings = yield* Effect.gen(function* () {
    const problem = yield* Effect.try({
      try: () => archiveProblem(file),
      catch: (cause) => refuse(String(cause), cause)
    })
    if (problem !== undefined) return yield* refuse(problem)
    const opened = yield* openEmbedded({ folder, from: file }).pipe(
      Effect.mapError((error) => refuse("the database in it does not open", error))
    )
    const found = yield* examineRows.pipe(
      Effect.provide(clientOf(opened)),
      Effect.mapError((error) => refuse("its tables cannot be read", error))
    )
    const [bad] = found.unreadable
    if (bad !== undefined) return yield* refuse(`table ${bad.table} is damaged (${bad.why})`)
    if (found.tables === 0) return yield* refuse("it holds no tables")
    return found
  }).pipe(Effect.scoped)
  return holdings
})

/** Removed when the Scope closes, unless it was renamed. */
const asideOf = (folder: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      rmSync(folder, { recursive: true, force: true })
      return folder
    }),
    () => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )

const mustExist = (file: string) =>
  existsSync(file) ? Effect.void : new StateRefused({ message: `there is no ${file}; name an archive of \`save\`` })

const restore = Command.make(
  "restore",
  { state: stateFlag, json: jsonFlag, reason: whyFlag, file },
  Effect.fn(function* ({ file, json, reason, state }) {
    const folder = join(state, "database")
    yield* mustExist(file)
    if (existsSync(folder))
      return yield* new StateRefused({ message: `${folder} already exists; name an empty folder with --state DIR` })
    const isNew = !isClaimed(state)
    yield* claimState(state)
    const holdings = yield* Effect.gen(function* () {
      yield* lockFolder(folder)
      const aside = yield* asideOf(restoringFolder(folder))
      const found = yield* unpack(resolve(file), aside)
      yield* kept(state, { action: "restore", subject: resolve(file), reason })(
        Effect.sync(() => renameSync(aside, folder)),
        () => ({ after: holdingsText(found) })
      )
      return found
    }).pipe(
      Effect.scoped,
      Effect.tapError(() => (isNew ? releaseState(state) : Effect.void))
    )
    yield* answer(json, { folder, file: resolve(file), ...holdings }, [
      `${folder} now contains ${file}: ${holdingsText(holdings)}; start with --state ${state}, ` +
        "then compare it with the ledger by `tollkeeper audit`"
    ])
  })
).pipe(Command.withDescription("Restore an archive into an empty state folder"))

const verify = Command.make(
  "verify",
  { json: jsonFlag, file },
  Effect.fn(function* ({ file, json }) {
    yield* mustExist(file)
    const parent = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "tollkeeper-verify-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
    )
    const holdings = yield* unpack(resolve(file), join(parent, "database"))
    yield* answer(json, { file: resolve(file), ...holdings }, [`${file} can be restored: ${holdingsText(holdings)}`])
  }, Effect.scoped)
).pipe(Command.withDescription("Check an archive as restore does, without restoring it"))

export const backup = Command.make("backup").pipe(
  Command.withDescription("Back up the embedded database to one file; use pg_dump for a PostgreSQL server"),
  Command.withSubcommands([save, restore, verify])
)
