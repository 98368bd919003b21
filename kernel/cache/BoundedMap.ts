// A map of a maximum size that evicts the least recently used entry (LRU), so that no client can fill the memory. For
// what is counted by key; computed values are in an `LruCache`, which counts its hits too.

export class BoundedMap<K, V extends {} | null> {
  readonly #entries = new Map<K, V>()
  readonly #capacity: number

  /** `capacity`: maximum number of entries. */
  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get size(): number {
    return this.#entries.size
  }

  /** The value of a key, which is from now on the most recently used; undefined when there is none. */
  get(key: K): V | undefined {
    const value = this.#entries.get(key)
    if (value === undefined) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, value)
    return value
  }

  /** Sets a value as the most recently used; beyond the capacity the least recently used entry is evicted. */
  set(key: K, value: V): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
    if (this.#entries.size > this.#capacity) this.#entries.delete(this.#entries.keys().next().value!)
  }

  /** The same, without using the entry; an `LruCache` does not count it. */
  peek(key: K): V | undefined {
    return this.#entries.get(key)
  }

  delete(key: K): boolean {
    return this.#entries.delete(key)
  }

  clear(): void {
    this.#entries.clear()
  }

  /** The least recently used entry first. */
  entries(): MapIterator<[K, V]> {
    return this.#entries.entries()
  }
}
