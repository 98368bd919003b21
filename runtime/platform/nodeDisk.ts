// The free space of a folder's disk, as this user may use it, the same on Node and Deno.
import { Effect } from "effect"
import { statfsSync } from "node:fs"
import type { DiskReading } from "../../kernel/platform/DiskSpace.ts"

/** A reading of the folder's disk; undefined when the folder does not exist or the system does not say. */
export const readDisk = (folder: string): Effect.Effect<DiskReading | undefined> =>
  Effect.sync(() => {
    try {
      const { bavail, bsize } = statfsSync(folder)
      return { folder, freeBytes: bavail * bsize }
    } catch {
      return undefined
    }
  })
