// Named snapshots of a ledger, to revert to: state, history and clock, each kept until it is dropped or the process
// ends. They share unchanged data with the present, so a snapshot costs the changes since then and a table of the
// entries.
import type { LedgerImage } from "./Ledger.ts"

/** Snapshots at a time; another one is refused until one is dropped. */
export const SNAPSHOTS_MAX = 64

export interface Snapshot {
  readonly id: string
  readonly image: LedgerImage
  readonly aheadSeconds: bigint
}

export class Snapshots {
  readonly #kept = new Map<string, Snapshot>()
  #last = 0

  /** Undefined when there are as many as there may be. */
  keep(image: LedgerImage, aheadSeconds: bigint): Snapshot | undefined {
    if (this.#kept.size >= SNAPSHOTS_MAX) return undefined
    const snapshot = { id: String(++this.#last), image, aheadSeconds }
    this.#kept.set(snapshot.id, snapshot)
    return snapshot
  }

  find(id: string): Snapshot | undefined {
    return this.#kept.get(id)
  }

  /** False for an unknown id. */
  drop(id: string): boolean {
    return this.#kept.delete(id)
  }
}
