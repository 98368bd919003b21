// `tollkeeper backup`: the whole embedded database in one file, saved while it runs, and restored into an empty folder.
// The file is a tar archive of the data folder as it is between two statements; the database recovers from it as it
// does from `kill -9`. The embedded ledger and the development sponsor's seed are left out: they are a test network and
// test money, and an archive must hold no key. A PostgreSQL server has its own tools.
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { Database } from "../../kernel/database/Database.ts"
import { openEmbedded } from "../platform/pglite.ts"
import { lockFolder } from "../platform/folderLock.ts"
import { claimState, StateRefused } from "../state.ts"
import { answer, databaseOf, jsonFlag, placeFlags, stateFlag, Within } from "./CommandTarget.ts"

const file = Argument.String("file").pipe(Argument.withDescription("The archive, such as tollkeeper.tar"))

const write = (target: string, bytes: Uint8Array) =>
  Effect.try({
    try: () => {
      mkdirSync(dirname(target), { recursive: true })
      // Atomic: complete or absent.
      writeFileSync(`${target}.new`, bytes, { mode: 0o600 })
      renameSync(`${target}.new`, target)
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
      "it is the database alone: the embedded ledger and sponsor.seed are not in it; " +
        "copy the whole folder for those, while nothing runs over it"
    ])
  }).pipe(Effect.provide(databaseOf(place)))
).pipe(Command.withDescription("Save the embedded database to one file, also while it runs"))

const restore = Command.make(
  "restore",
  { state: stateFlag, json: jsonFlag, file },
  Effect.fn(function* ({ file, json, state }) {
    const folder = join(state, "database")
    if (!existsSync(file))
      return yield* new StateRefused({ message: `there is no ${file}; name an archive of \`save\`` })
    if (existsSync(folder))
      return yield* new StateRefused({ message: `${folder} is there already; name an empty place with --state DIR` })
    yield* claimState(state)
    yield* lockFolder(folder)
    yield* openEmbedded({ folder, from: resolve(file) })
    yield* answer(json, { folder, file: resolve(file) }, [
      `${folder} holds what ${file} held; start with --state ${state}`
    ])
  }, Effect.scoped)
).pipe(Command.withDescription("Restore an archive into an empty state folder"))

export const backup = Command.make("backup").pipe(
  Command.withDescription("The embedded database in one file; a PostgreSQL server has pg_dump"),
  Command.withSubcommands([save, restore])
)
