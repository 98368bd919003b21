// The disk that the embedded database, the local ledger and the state folder are on. The runtime reads it; without a
// reader its free space is unknown, and nothing is refused for it.
import { Context, Effect } from "effect"

/**
 * The least free space that is kept for what is under way, bytes: below the reserve no new payment is accepted. The
 * embedded database writes ahead in segments of 16 MB, and a write that finds no space can end it. The setting
 * `database.disk_reserve_mb` makes it more, never less.
 */
export const diskReserveBytes = 256_000_000

export interface DiskReading {
  readonly folder: string
  readonly freeBytes: number
}

/** A reading, or undefined where the system gives none. */
export const DiskSpace = Context.Reference<Effect.Effect<DiskReading | undefined>>("tollkeeper/platform/DiskSpace", {
  defaultValue: () => Effect.succeed(undefined)
})

const megabytes = (bytes: number): number => Math.floor(bytes / 1_000_000)

/** Why a disk is too full for another payment, as a sentence; undefined when it is not. The reserve is in bytes. */
export const diskProblem = ({ folder, freeBytes }: DiskReading, reserveBytes: number): string | undefined =>
  freeBytes >= reserveBytes
    ? undefined
    : `the disk is full: ${megabytes(freeBytes)} MB free in ${folder}, less than the reserve of ` +
      `${megabytes(reserveBytes)} MB; free some space`
