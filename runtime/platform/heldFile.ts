// An exclusive lock on a file, which the system releases when its process ends, however it ends. SQLite takes it,
// because neither runtime has such a lock. The holder deletes the file when it releases it, so a lock counts only if
// the locked file still has its name. Nothing else in this process may open the file: closing it would end the lock.
import { existsSync, rmSync, statSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"

/** Attempts while other holders delete the file. */
const triesMax = 5

/** The file that is locked for `path`. */
export const heldFileOf = (path: string): string => `${path}.held`

/** Device and inode of the file with this name; undefined without one. */
const identityOf = (file: string): string | undefined => {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false })
  return found === undefined ? undefined : `${found.dev} ${found.ino}`
}

/** Locks the file with this name; returns the lock, and whether the locked file still has the name. */
const lock = (file: string) => {
  const before = identityOf(file)
  const opened = new DatabaseSync(file, { timeout: 0 })
  const found = identityOf(file)
  try {
    opened.exec("pragma journal_mode = memory; begin exclusive")
  } catch (error) {
    opened.close()
    if (/locked|busy/i.test(String(error))) return undefined
    throw error
  }
  return { opened, isNamed: found === identityOf(file) && (before === undefined || before === found) }
}

/** Locks a file, and returns the release; undefined while another process or another holder has it. */
export const tryHold = (file: string): (() => void) | undefined => {
  for (let tries = 0; tries < triesMax; tries++) {
    const locked = lock(file)
    if (locked === undefined) return undefined
    const { isNamed, opened } = locked
    if (isNamed)
      return () => {
        try {
          rmSync(file, { force: true })
        } catch {
          // Some systems delete no open file; it is locked again under this name.
        }
        opened.close()
      }
    opened.close()
  }
  return undefined
}

/** Whether a process holds a file; deletes the file of a holder that ended. */
export const isHeld = (file: string): boolean => {
  if (!existsSync(file)) return false
  const release = tryHold(file)
  release?.()
  return release === undefined
}
