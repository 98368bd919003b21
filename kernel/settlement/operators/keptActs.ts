// Operators' acts without a database: it is being deleted, restored or repaired, or the command or tool server uses no
// database. A file in the state folder keeps two lines per act, before and after it. The next start of a facilitator
// over the folder adds them to its audit trail. `reset` removes the folder and keeps the file next to it.
import { Clock, Effect, FileSystem, Path, Random } from "effect"
import type { PlatformError } from "effect/PlatformError"
import type { SqlError } from "effect/sql"
import { keptActsFile } from "../../platform/Host.ts"
import type { Act, AuditChange, AuditEntry, OperatorAuditLog } from "./OperatorAuditLog.ts"

type KeptAct = Omit<Act, "id" | "at"> & { readonly id: string; readonly at: string }

/** The file in a folder, and the file that a reset kept. */
const filesOf = (folder: string) =>
  Effect.map(Path.Path, (path) => [path.join(folder, keptActsFile), `${path.resolve(folder)}.${keptActsFile}`] as const)

const append = Effect.fnUntraced(function* (folder: string, act: KeptAct) {
  const files = yield* FileSystem.FileSystem
  yield* files.makeDirectory(folder, { recursive: true, mode: 0o700 })
  const [file] = yield* filesOf(folder)
  yield* files.writeFileString(file, `${JSON.stringify(act)}\n`, { flag: "a", mode: 0o600 })
})

/** Records a line, does the act, records its outcome. If the first line cannot be written, nothing is done. */
export const keepAct =
  (folder: string, entry: AuditEntry) =>
  <A, E extends { readonly message: string }, R>(
    act: Effect.Effect<A, E, R>,
    changed?: (result: A) => AuditChange
  ): Effect.Effect<A, E | PlatformError, R | FileSystem.FileSystem | Path.Path> =>
    Effect.gen(function* () {
      const at = new Date(yield* Clock.currentTimeMillis).toISOString()
      const id = `${at} ${yield* Random.nextInt}`
      const asked: KeptAct = { ...entry, id, at, before: null, after: null, outcome: "asked" }
      yield* append(folder, asked)
      const done = yield* Effect.tapError(act, ({ message }) => append(folder, { ...asked, outcome: message }))
      const { after = null, before = null } = changed?.(done) ?? {}
      yield* append(folder, { ...asked, before, after, outcome: "done" })
      return done
    })

/** The acts of a folder's file, newest first; a line that was cut off is left out. */
export const readKeptActs = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  const [own, beside] = yield* filesOf(folder)
  const texts = yield* Effect.forEach([beside, own], (file) =>
    Effect.orElseSucceed(files.readFileString(file), () => "")
  )
  const acts = new Map<string, KeptAct>()
  for (const line of texts.join("\n").split("\n")) {
    try {
      const act = JSON.parse(line) as KeptAct
      acts.set(act.id, act)
    } catch {
      continue
    }
  }
  return [...acts.values()].reverse()
})

/** Adds the file's acts to the trail of the database that serves, and removes the file. */
export const addKeptActs = Effect.fnUntraced(function* (
  log: OperatorAuditLog["Service"],
  folder: string
): Effect.fn.Return<void, SqlError.SqlError | PlatformError, FileSystem.FileSystem | Path.Path> {
  const acts = yield* readKeptActs(folder)
  for (const { after, at, before, id: _, outcome, ...entry } of acts.reverse())
    yield* log.recordDone(entry, outcome, { before: before ?? undefined, after: after ?? undefined }, new Date(at))
  const files = yield* FileSystem.FileSystem
  for (const file of yield* filesOf(folder)) yield* files.remove(file, { force: true })
})

/** Removes a folder that contains only the file, and keeps the file next to it. */
export const leaveBeside = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  if ((yield* files.readDirectory(folder)).join() !== keptActsFile) return
  const [own, beside] = yield* filesOf(folder)
  yield* files.writeFileString(beside, yield* files.readFileString(own), { flag: "a", mode: 0o600 })
  yield* files.remove(folder, { recursive: true })
})
