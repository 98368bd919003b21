// The disk that holds the embedded database, the local ledger and the state folder. The runtime reads it; without a
// reader its free space is unknown, and no payment is refused for it.
import { Context, Effect } from "effect"

/**
 * Reserve of free space for work in progress, bytes: below it no new payment is accepted. The embedded database writes
 * ahead in segments of 16 MB, and a write that finds no space can end it. The setting `database.disk_reserve_mb` can
 * only increase it.
 */
export const diskReserveBytes = 256_000_000

export interface DiskReading {
  readonly folder: string
  readonly freeBytes: number
}

/** A reading, or undefined if the system provides none. */
export const DiskSpace = Context.Reference<Effect.Effect<DiskReading | undefined>>("tollkeeper/platform/DiskSpace", {
  defaultValue: () => Effect.succeed(undefined)
})

const megabytes = (bytes: number): number => Math.floor(bytes / 1_000_000)

/**
 * The reason why a disk is too full for another payment, as a sentence; undefined if it is not. The reserve is in
 * bytes.
 */
export const diskProblem = ({ folder, freeBytes }: DiskReading, reserveBytes: number): string | undefined =>
  freeBytes >= reserveBytes
    ? undefined
    : `the disk is full: ${megabytes(freeBytes)} MB free in ${folder}, less than the reserve of ` +
      `${megabytes(reserveBytes)} MB; free some space`
