// The ledger's entries as a stack of overlays. A child sees its parent and keeps its own changes; committing writes
// them down, dropping the child rolls them back, so a failed host function, operation or transaction leaves no trace.
// Entries are immutable values: change one by setting a changed copy. The root has no parent and can be exported and
// imported. A fork has a partial root: it holds the fetched entries of another network's state, present or absent, and
// reading any other key throws `NotFetched`.
import { keyOfEntry, type KeyString, keyString } from "./LedgerKeys.ts"
import { codec, type LedgerEntry, type LedgerKey } from "../xdr/Xdr.ts"

/**
 * Thrown when a fork reads state that has not been fetched yet. It decides nothing: the caller that began the work
 * fetches the entries and starts over. Code in between must not take it for an absent entry, a contract failure or a
 * defect.
 */
export class NotFetched extends Error {
  readonly keys: ReadonlyArray<KeyString>

  constructor(keys: ReadonlyArray<KeyString>) {
    super("an entry of the forked network has not been fetched yet")
    this.keys = keys
  }
}

/**
 * One changed key: its entry in the parent and its entry here. Neither side present means it came and went inside the
 * overlay.
 */
export interface Change {
  readonly key: KeyString
  readonly before: LedgerEntry | undefined
  readonly after: LedgerEntry | undefined
}

export class Store {
  readonly parent: Store | undefined
  /** True if a missing entry may still exist and must be fetched first. */
  readonly isPartial: boolean
  #own = new Map<KeyString, LedgerEntry | undefined>()
  /** Maps each entry below this overlay when it is read. */
  #lookup: ((entry: LedgerEntry) => LedgerEntry) | undefined

  private constructor(parent: Store | undefined, isPartial = parent?.isPartial ?? false) {
    this.parent = parent
    this.isPartial = isPartial
  }

  static empty(): Store {
    return new Store(undefined)
  }

  /** A partial root: nothing of its network's state is fetched yet. */
  static partial(): Store {
    return new Store(undefined, true)
  }

  /** A root store of exported entries. Throws on bytes that are not ledger entries. */
  static import(entries: Iterable<Uint8Array>): Store {
    const store = Store.empty()
    for (const bytes of entries) store.put(codec.LedgerEntry.decode(bytes))
    return store
  }

  /** Each live entry as XDR, in insertion order; on a child, the merged view. */
  *export(): Generator<Uint8Array> {
    for (const entry of this.entries()) yield codec.LedgerEntry.encode(entry)
  }

  get(key: KeyString): LedgerEntry | undefined {
    let store: Store | undefined = this
    let reading: Store | undefined
    while (store !== undefined) {
      const own: LedgerEntry | undefined = store.#own.get(key)
      if (own !== undefined || store.#own.has(key)) return reading === undefined ? own : reading.#seen(key, own)
      if (store.#lookup !== undefined) reading = store
      store = store.parent
    }
    if (this.isPartial) throw new NotFetched([key])
    return undefined
  }

  /** True when it is known whether there is an entry under the key. */
  knows(key: KeyString): boolean {
    let store: Store | undefined = this
    while (store?.isPartial === true) {
      if (store.#own.has(key)) return true
      store = store.parent
    }
    return !this.isPartial
  }

  /** Of a partial state, throws one `NotFetched` for all unknown keys, so that they are fetched in one batch. */
  require(keys: Iterable<KeyString>): void {
    if (!this.isPartial) return
    const unknown = [...keys].filter((key) => !this.knows(key))
    if (unknown.length > 0) throw new NotFetched(unknown)
  }

  /** Records for a partial root whether an entry exists; an existing record stays. */
  learn(key: KeyString, entry: LedgerEntry | undefined): void {
    if (!this.#own.has(key)) this.#own.set(key, entry)
  }

  has(key: KeyString): boolean {
    return this.get(key) !== undefined
  }

  set(key: KeyString, entry: LedgerEntry): void {
    this.#own.set(key, entry)
  }

  /** Sets an entry under its own key. */
  put(entry: LedgerEntry): void {
    this.#own.set(keyString(keyOfEntry(entry)), entry)
  }

  /** Removes an entry. Does nothing if the entry is absent. */
  delete(key: KeyString): void {
    if (this.parent === undefined) this.#own.delete(key)
    else this.#own.set(key, undefined)
  }

  getEntry(key: LedgerKey): LedgerEntry | undefined {
    return this.get(keyString(key))
  }

  /** A copy of this store, on the same parent: writes to one are not visible in the other. */
  copy(): Store {
    const copy = new Store(this.parent, this.isPartial)
    copy.#own = new Map(this.#own)
    return copy
  }

  /** An overlay on this store. Nothing reaches the parent before `commit`. */
  child(): Store {
    return new Store(this)
  }

  /** An overlay that reads this store's entries through `lookup`, which must be deterministic; not to be committed. */
  observedAt(lookup: (entry: LedgerEntry) => LedgerEntry): Store {
    const overlay = new Store(this)
    overlay.#lookup = lookup
    return overlay
  }

  #seen(key: KeyString, entry: LedgerEntry | undefined): LedgerEntry | undefined {
    const seen = entry === undefined ? undefined : this.#lookup!(entry)
    if (seen !== entry && seen !== undefined) this.#own.set(key, seen)
    return seen
  }

  /** Writes this overlay's changes into its parent and empties it. A root has nowhere to commit to. */
  commit(): void {
    const parent = this.parent
    if (parent === undefined) throw new Error("a root store cannot be committed")
    for (const [key, entry] of this.#own) {
      if (entry === undefined) parent.delete(key)
      else parent.set(key, entry)
    }
    this.#own.clear()
  }

  /** True when this overlay itself wrote the key. */
  touched(key: KeyString): boolean {
    return this.#own.has(key)
  }

  get size(): number {
    return this.#own.size
  }

  /** Entries that this store itself holds or, over a parent, has changed; undefined is deleted. */
  own(): Iterable<readonly [KeyString, LedgerEntry | undefined]> {
    return this.#own
  }

  /** This overlay's changes in the order of first writing. */
  *changes(): Generator<Change> {
    for (const [key, after] of this.#own) yield { key, before: this.parent?.get(key), after }
  }

  /** The live entries whose keys begin with `prefix`; reads every key of the store. */
  *entriesUnder(prefix: KeyString): Generator<LedgerEntry> {
    const seen = new Set<KeyString>()
    let store: Store | undefined = this
    while (store !== undefined) {
      for (const [key, entry] of store.#own) {
        if (!key.startsWith(prefix) || seen.has(key)) continue
        seen.add(key)
        if (entry !== undefined) yield entry
      }
      store = store.parent
    }
  }

  /** Every live entry of the merged view, oldest layer first. */
  *entries(): Generator<LedgerEntry> {
    const merged = new Map<KeyString, LedgerEntry | undefined>()
    const layers: Array<Store> = []
    let store: Store | undefined = this
    while (store !== undefined) {
      layers.push(store)
      store = store.parent
    }
    for (const layer of layers.reverse()) for (const [key, entry] of layer.#own) merged.set(key, entry)
    for (const entry of merged.values()) if (entry !== undefined) yield entry
  }
}
