// A lock on a folder that only one process may use. The system holds it on a file next to the folder (`heldFile.ts`),
// so it also counts in another container over the same volume, where the holder's pid identifies no process. A second
// file has the holder's pid and start time: for people, and for processes of earlier versions, which only read that
// file. Works on Node and Deno.
import { Effect, Layer, Schema, type Scope } from "effect"
import { randomUUID } from "node:crypto"
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import process from "node:process"
import { FolderInUse, FolderLock } from "../../kernel/platform/Host.ts"
import { heldFileOf, isHeld, tryHold } from "./heldFile.ts"

/** Another living process holds the folder. */
class FolderLocked extends Schema.TaggedError<FolderLocked>()("FolderLocked", { message: Schema.String }) {}

/**
 * Start time in clock ticks since boot on systems that have it (Linux), otherwise empty. Field 22 follows `)` of
 * `comm`.
 */
const startOf = (pid: number): string => {
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
const isProcess = (pid: number, start: string): boolean => {
  if (!Number.isInteger(pid) || pid <= 0 || !isAlive(pid)) return false
  return start === "" || startOf(pid) === "" || startOf(pid) === start
}

/** The pid that holds this lock, if that process still lives. */
const holderOf = (content: string): number | undefined => {
  const [digits = "", start = ""] = content.split(" ")
  return isProcess(Number(digits), start) ? Number(digits) : undefined
}

/** Complete or absent: a process of an earlier version takes over the folder of a lock without a pid. */
const writeHolder = (file: string): void => {
  const draft = `${file}.${randomUUID()}`
  try {
    writeFileSync(draft, `${process.pid} ${startOf(process.pid)}`, { mode: 0o600 })
    renameSync(draft, file)
  } finally {
    rmSync(draft, { force: true })
  }
}

const locked = (folder: string, holder: string) =>
  new FolderLocked({
    message: `${folder} is in use by ${holder}; stop that one first, or choose another folder with --state DIR`
  })

/** The living process of this machine that a lock's file names. */
const holderIn = (file: string): number | undefined => holderOf(read(file) ?? "")

/** For a person. A pid of another container or machine identifies no process here. */
const describeHolder = (pid: number | undefined): string =>
  pid === undefined ? "a process of another container or machine" : `process ${pid}`

/** Returns the release. */
const acquire = (folder: string): (() => void) => {
  const file = `${folder}.lock`
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const release = tryHold(heldFileOf(folder))
  if (release === undefined) throw locked(folder, describeHolder(holderIn(file)))
  // A process of an earlier version has only written its pid.
  const before = holderIn(file)
  try {
    if (before !== undefined && before !== process.pid) throw locked(folder, describeHolder(before))
    writeHolder(file)
  } catch (error) {
    release()
    throw error
  }
  return () => {
    rmSync(file, { force: true })
    release()
  }
}

/** Describes the process that holds the folder; undefined without one. */
export const holderOfFolder = (folder: string): string | undefined => {
  const pid = holderIn(`${folder}.lock`)
  return pid !== undefined || isHeld(heldFileOf(folder)) ? describeHolder(pid) : undefined
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
      (release) => Effect.sync(release)
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
