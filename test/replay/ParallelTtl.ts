// Times to live in the parallel phase. In the network no transaction of a stage sees that another one extended an entry
// that both only read; such extensions are merged at the end of the stage, the longest winning. A transaction that may
// write the entry sees them immediately. This class holds the extensions back while a stream is replayed.
import { hasTtl, keyString, type KeyString, ttlKeyString } from "../../plugins/ledger-local/engine/state/LedgerKeys.ts"
import type { EngineCrypto } from "../../plugins/ledger-local/engine/host/Random.ts"
import type { Store } from "../../plugins/ledger-local/engine/state/Store.ts"
import type { LedgerEntry, LedgerFootprint, LedgerKey } from "../../plugins/ledger-local/engine/xdr/Xdr.ts"
import type { EntryChange } from "./LedgerState.ts"

const liveUntil = (entry: LedgerEntry | undefined): number =>
  entry?.data.type === 9 ? entry.data.ttl.liveUntilLedgerSeq : 0

export class ParallelTtl {
  readonly #held = new Map<KeyString, LedgerEntry>()
  readonly #store: Store
  readonly #crypto: EngineCrypto
  #stage: number | undefined

  constructor(store: Store, crypto: EngineCrypto) {
    this.#store = store
    this.#crypto = crypto
  }

  #ids(keys: ReadonlyArray<LedgerKey>): Array<KeyString> {
    return keys.filter(hasTtl).map((key) => ttlKeyString(this.#crypto, keyString(key)))
  }

  #release(id: KeyString): void {
    const held = this.#held.get(id)
    if (held === undefined) return
    if (liveUntil(held) > liveUntil(this.#store.get(id))) this.#store.set(id, held)
    this.#held.delete(id)
  }

  /** Called before a transaction of `stage` runs. */
  enter(stage: number | undefined, footprint: LedgerFootprint | undefined): void {
    if (stage !== this.#stage) this.flush()
    this.#stage = stage
    for (const id of this.#ids(footprint?.readWrite ?? [])) this.#release(id)
  }

  /** The changes of a transaction that every transaction may see; the others are held. */
  visible(changes: ReadonlyArray<EntryChange>, footprint: LedgerFootprint | undefined): Array<EntryChange> {
    if (this.#stage === undefined || footprint === undefined) return [...changes]
    const readOnly = new Set(this.#ids(footprint.readOnly))
    return changes.filter((change) => {
      if (change.type !== 1 || change.updated.data.type !== 9) return true
      const id = keyString({ type: 9, ttl: { keyHash: change.updated.data.ttl.keyHash } })
      if (!readOnly.has(id)) return true
      if (liveUntil(change.updated) > liveUntil(this.#held.get(id))) this.#held.set(id, change.updated)
      return false
    })
  }

  /** Called at the end of a stage and of the ledger. */
  flush(): void {
    for (const id of [...this.#held.keys()]) this.#release(id)
    this.#stage = undefined
  }
}
