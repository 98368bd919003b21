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
 * A reading of the disk of these folders that has the least free; undefined when none of them exists or the system does
 * not say.
 */
export const readDisk = (...folders: ReadonlyArray<string>): Effect.Effect<DiskReading | undefined> =>
  Effect.sync(() => folders.flatMap(readingOf).sort((a, b) => a.freeBytes - b.freeBytes)[0])
