// A lock on a folder that only one process may use. The lock file next to the folder contains its holder's pid and
// start time, so that the lock of a dead process, or of one whose pid was reused, is taken over. It is written under a
// temporary name and linked into place, so that no reader ever sees half a lock. Works on one machine, on Node and
// Deno.
import { Effect, Layer, Schema, type Scope } from "effect"
import { randomUUID } from "node:crypto"
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import process from "node:process"
import { FolderInUse, FolderLock } from "../../kernel/platform/Host.ts"

/** Another living process holds the folder. */
class FolderLocked extends Schema.TaggedError<FolderLocked>()("FolderLocked", { message: Schema.String }) {}

/**
 * Start time in clock ticks since boot on systems that have it (Linux), otherwise empty. Field 22 follows `)` of
 * `comm`.
 */
export const startOf = (pid: number): string => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? ""
  } catch {
    return ""
  }
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as { code?: string }).code === "EPERM"
  }
}

const read = (file: string): string | undefined => {
  try {
    return readFileSync(file, "utf8")
  } catch {
    return undefined
  }
}

/** True while the process with this pid lives. On systems with start times, the start time must match too. */
export const isProcess = (pid: number, start: string): boolean => {
  if (!Number.isInteger(pid) || pid <= 0 || !isAlive(pid)) return false
  return start === "" || startOf(pid) === "" || startOf(pid) === start
}

/** The pid that holds this lock, if that process still lives. */
const holderOf = (content: string): number | undefined => {
  const [digits = "", start = ""] = content.split(" ")
  return isProcess(Number(digits), start) ? Number(digits) : undefined
}

const acquire = (folder: string): string => {
  const file = `${folder}.lock`
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const mine = `${process.pid} ${startOf(process.pid)} ${randomUUID()}`
  const draft = `${file}.${randomUUID()}`
  writeFileSync(draft, mine, { mode: 0o600 })
  try {
    for (let attempt = 0; attempt < 5; attempt++) {
      try {
        linkSync(draft, file)
        return mine
      } catch (error) {
        if ((error as { code?: string }).code !== "EEXIST") throw error
      }
      const content = read(file)
      if (content === undefined) continue
      const holder = holderOf(content)
      if (holder !== undefined) {
        const remedy = "stop that one first, or choose another folder with --state DIR"
        throw new FolderLocked({ message: `${folder} is in use by process ${holder}; ${remedy}` })
      }
      // Renamed rather than deleted: of two that see a dead lock, only one renames this very file.
      const aside = `${file}.${randomUUID()}`
      try {
        renameSync(file, aside)
      } catch {
        continue
      }
      if (read(aside) !== content) {
        // A living process took the lock in between; restore it.
        try {
          linkSync(aside, file)
        } catch {
          /* another process holds it now; the next round sees it */
        }
      }
      rmSync(aside, { force: true })
    }
    throw new FolderLocked({ message: `${folder} is being taken by another process` })
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Holds the folder until the Scope closes. */
export const lockFolder = (folder: string): Effect.Effect<void, FolderLocked, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.try({
        try: () => acquire(folder),
        catch: (error) =>
          error instanceof FolderLocked ? error : new FolderLocked({ message: `${folder} cannot be locked: ${error}` })
      }),
      (mine) =>
        Effect.sync(() => {
          if (read(`${folder}.lock`) === mine) rmSync(`${folder}.lock`, { force: true })
        })
    )
  )

const inUse = ({ message }: FolderLocked) => new FolderInUse({ message })
const betweenMillis = 5

const pause = Effect.callback<void>((resume) => {
  const timer = setTimeout(() => resume(Effect.void), betweenMillis)
  return Effect.sync(() => clearTimeout(timer))
})

const lockSoon = (folder: string, waitMillis: number): Effect.Effect<void, FolderLocked, Scope.Scope> =>
  Effect.suspend(() => {
    const end = performance.now() + waitMillis
    const attempt: Effect.Effect<void, FolderLocked, Scope.Scope> = Effect.catch(lockFolder(folder), (locked) =>
      performance.now() < end ? Effect.andThen(pause, attempt) : Effect.fail(locked)
    )
    return attempt
  })

export const layer: Layer.Layer<FolderLock> = Layer.succeed(FolderLock, {
  hold: (folder) => Effect.mapError(lockFolder(folder), inUse),
  holdSoon: (folder, waitMillis) => Effect.mapError(lockSoon(folder, waitMillis), inUse)
})
