// The free space of folders' disks, as this user may use it, the same on Node and Deno.
import { Effect } from "effect"
import { statfsSync } from "node:fs"
import type { DiskReading } from "../../kernel/platform/DiskSpace.ts"

const readingOf = (folder: string): ReadonlyArray<DiskReading> => {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return [{ folder, freeBytes: bavail * bsize }]
  } catch {
    return []
  }
}

/**
 * The reading of these folders' disks with the least free space; undefined if none of the folders exists or the system
 * does not report it.
 */
export const readDisk = (...folders: ReadonlyArray<string>): Effect.Effect<DiskReading | undefined> =>
  Effect.sync(() => folders.flatMap(readingOf).sort((a, b) => a.freeBytes - b.freeBytes)[0])
