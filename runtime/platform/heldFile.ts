// An exclusive lock on a file, which the system releases when its process ends, however it ends. SQLite takes it,
// because neither runtime has such a lock. The file is empty, and is not deleted: a deleted one could be locked twice.
import { existsSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"

/** The file that is locked for `path`. */
export const heldFileOf = (path: string): string => `${path}.held`

/** Locks a file, and returns the release; undefined while another process or another holder has it. */
export const tryHold = (file: string): (() => void) | undefined => {
  const opened = new DatabaseSync(file, { timeout: 0 })
  try {
    opened.exec("pragma journal_mode = memory; begin exclusive")
  } catch (error) {
    opened.close()
    if (/locked|busy/i.test(String(error))) return undefined
    throw error
  }
  return () => opened.close()
}

/** Whether a process holds a file. */
export const isHeld = (file: string): boolean => {
  if (!existsSync(file)) return false
  const release = tryHold(file)
  release?.()
  return release === undefined
}
