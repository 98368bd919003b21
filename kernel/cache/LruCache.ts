// A bounded cache of computed values, least recently used evicted first. Each has a name, under which the process
// counts its hits and misses (`tollkeeper_cache_requests_total`) and its entries (`tollkeeper_cache_entries`); caches
// of one name are counted together. A value that its owner's rule declares invalid counts as a miss.
import { BoundedMap } from "./BoundedMap.ts"

export interface CacheOptions {
  /** In kebab-case, as the metric's label. */
  readonly name: string
  /** Maximum number of entries. */
  readonly capacity: number
}

interface Counters {
  hits: number
  misses: number
  /** Weak: a cache ends with its owner. */
  instances: ReadonlyArray<WeakRef<LruCache<any, any>>>
}

const byName = new Map<string, Counters>()

const living = ({ instances }: Counters) => instances.filter((one) => one.deref() !== undefined)

const countersOf = (name: string): Counters => {
  const existing = byName.get(name)
  if (existing !== undefined) return existing
  const counters = { hits: 0, misses: 0, instances: [] }
  byName.set(name, counters)
  return counters
}

export class LruCache<K, V extends {} | null> extends BoundedMap<K, V> {
  readonly name: string
  readonly #counters: Counters

  constructor({ capacity, name }: CacheOptions) {
    super(capacity)
    this.name = name
    this.#counters = countersOf(name)
    this.#counters.instances = [...living(this.#counters), new WeakRef(this)]
  }

  override get(key: K, isValid?: (value: V) => boolean): V | undefined {
    const value = super.get(key)
    if (value === undefined || isValid?.(value) === false) {
      this.#counters.misses += 1
      return undefined
    }
    this.#counters.hits += 1
    return value
  }
}

interface CacheReading {
  readonly name: string
  /** Since the process began. */
  readonly hits: number
  readonly misses: number
  readonly entries: number
}

/** Hits and entries of every cache of the process so far. */
export const readCaches = (): ReadonlyArray<CacheReading> =>
  [...byName].map(([name, counters]) => ({
    name,
    hits: counters.hits,
    misses: counters.misses,
    entries: living(counters).reduce((sum, one) => sum + (one.deref()?.size ?? 0), 0)
  }))
