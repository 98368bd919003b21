// Index of temporary entries by expiry, so that closing a ledger evicts expired ones without scanning the state. Every
// payment leaves a nonce behind; without this index a ledger under load would grow for as long as it runs. Persistent
// entries are never evicted here: an expired one is archived in place, until it is restored.
import { EntryType } from "../engine/xdr/types.ts"
import { Durability, keyOfEntry, keyString, type KeyString, ttlKeyString } from "../engine/state/LedgerKeys.ts"
import type { EngineCrypto } from "../engine/host/Random.ts"
import type { Change, Store } from "../engine/state/Store.ts"
import type { LedgerEntry } from "../engine/xdr/Xdr.ts"

interface Temporary {
  readonly data: KeyString
  /** The last ledger it lives in; undefined until its TTL entry was seen. */
  liveUntil: number | undefined
}

const isTemporary = (entry: LedgerEntry | undefined): boolean =>
  entry?.data.type === EntryType.contractData && entry.data.contractData.durability === Durability.temporary

export class Expiry {
  /** By the key of the TTL entry. */
  readonly #temporary = new Map<KeyString, Temporary>()
  readonly #ending = new Map<number, Set<KeyString>>()
  readonly #crypto: EngineCrypto
  /** The latest ledger; entries that expired before it are listed under it. */
  #latest: number

  /** Indexes the entries of `store`, the state after ledger `latest`. */
  constructor(crypto: EngineCrypto, store: Store, latest: number) {
    this.#crypto = crypto
    this.#latest = latest
    const changes: Array<Change> = []
    for (const after of store.entries()) {
      if (after.data.type === EntryType.ttl || isTemporary(after))
        changes.push({ key: keyString(keyOfEntry(after)), before: undefined, after })
    }
    this.follow(changes, latest)
  }

  get size(): number {
    return this.#temporary.size
  }

  /** Applies the changes of the published ledger `latest`. */
  follow(changes: ReadonlyArray<Change>, latest: number): void {
    this.#latest = latest
    for (const { key, before, after } of changes) {
      if (!isTemporary(after ?? before)) continue
      const ttl = ttlKeyString(this.#crypto, key)
      if (after === undefined) this.#forget(ttl)
      else if (!this.#temporary.has(ttl)) this.#temporary.set(ttl, { data: key, liveUntil: undefined })
    }
    for (const { key, after } of changes) {
      const known = after?.data.type === EntryType.ttl ? this.#temporary.get(key) : undefined
      if (after?.data.type === EntryType.ttl && known !== undefined)
        this.#end(key, known, after.data.ttl.liveUntilLedgerSeq)
    }
  }

  #end(ttl: KeyString, temporary: Temporary, liveUntil: number): void {
    this.#unlist(ttl, temporary)
    temporary.liveUntil = Math.max(liveUntil, this.#latest)
    const others = this.#ending.get(temporary.liveUntil)
    if (others === undefined) this.#ending.set(temporary.liveUntil, new Set([ttl]))
    else others.add(ttl)
  }

  #unlist(ttl: KeyString, { liveUntil }: Temporary): void {
    if (liveUntil === undefined) return
    const others = this.#ending.get(liveUntil)
    others?.delete(ttl)
    if (others?.size === 0) this.#ending.delete(liveUntil)
  }

  #forget(ttl: KeyString): void {
    const temporary = this.#temporary.get(ttl)
    if (temporary === undefined) return
    this.#unlist(ttl, temporary)
    this.#temporary.delete(ttl)
  }

  /**
   * Deletes from `store`, the overlay of ledger `ledgerSeq`, the entries that are expired in that ledger, and returns
   * the keys of the entries and of their TTL entries. Entries that the ledger itself restored stay.
   */
  evict(store: Store, ledgerSeq: number): ReadonlyArray<KeyString> {
    const evicted: Array<KeyString> = []
    for (let ended = this.#latest; ended < ledgerSeq; ended++) {
      for (const ttl of this.#ending.get(ended) ?? []) {
        const entry = store.get(ttl)
        if (entry?.data.type !== EntryType.ttl || entry.data.ttl.liveUntilLedgerSeq >= ledgerSeq) continue
        const { data } = this.#temporary.get(ttl)!
        store.delete(data)
        store.delete(ttl)
        evicted.push(data, ttl)
      }
    }
    return evicted
  }
}
