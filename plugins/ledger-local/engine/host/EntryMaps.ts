// The network's charges for its maps of a call's entries. One map holds the accessible keys, one holds the entries;
// both are sorted lists of the whole footprint. A lookup is a binary search in each. A write rebuilds the second map,
// copying and comparing all of it. Each frame keeps a copy for rollback. Sizes are those that the network's host
// declares for its types.
import type { CpuCosts } from "../state/cpuCosts.ts"
import { costOf } from "./InstructionMeter.ts"
import { EntryType, ScType } from "../xdr/types.ts"
import type { KeyString } from "../state/LedgerKeys.ts"
import { equalBytes, type LedgerKey, type ScVal } from "../xdr/Xdr.ts"
import { compareScVal } from "../xdr/ScVal.ts"

/** Bytes of an item in the maps of accessible keys, of entries, and of times to live. */
const ACCESS_BYTES = 25
const ENTRY_BYTES = 68
const TTL_ITEM_BYTES = 40
const LIST_BYTES = 24
const KEY_BYTES = 152
const LEDGER_ENTRY_BYTES = 288
const TTL_BYTES = 36
const VALUE_BYTES = 96
const PAIR_BYTES = 192
const ADDRESS_BYTES = 48

const isSame = (a: ScVal, b: ScVal): boolean => {
  if (a === b) return true
  if (a.type !== b.type) return false
  if (a.type === ScType.void || a.type === ScType.ledgerKeyContractInstance) return true
  if (a.type === ScType.ledgerKeyNonce) return a.nonceKey.nonce === (b as typeof a).nonceKey.nonce
  return compareScVal(a, b) === 0
}

const byString = ([a]: KeyEntry, [b]: KeyEntry): number => (a < b ? -1 : a > b ? 1 : 0)

export type KeyEntry = readonly [KeyString, LedgerKey]

/** The maps of one call, by the keys of its footprint. Positions are those of the sorted keys. */
export class EntryMaps {
  readonly #costs: CpuCosts
  readonly keys: ReadonlyArray<LedgerKey>
  readonly ids: ReadonlyArray<KeyString>
  readonly positions = new Map<KeyString, number>()
  /** What comparing any two keys costs, row by row. */
  readonly #pairs: Float64Array
  /** What comparing each with the next one costs. */
  readonly #adjacent: number

  constructor(costs: CpuCosts, footprint: ReadonlyArray<KeyEntry>) {
    this.#costs = costs
    const keyed = footprint.toSorted(byString)
    this.keys = keyed.map(([, key]) => key)
    this.ids = keyed.map(([id]) => id)
    for (const [position, id] of this.ids.entries()) this.positions.set(id, position)
    const count = this.keys.length
    this.#pairs = new Float64Array(count * count)
    let adjacent = 0
    for (let i = 0; i < count; i++) {
      for (let j = i; j < count; j++) {
        const cost = this.#comparedKeys(this.keys[i]!, this.keys[j]!)
        this.#pairs[i * count + j] = cost
        this.#pairs[j * count + i] = cost
        if (j === i + 1) adjacent += cost
      }
    }
    this.#adjacent = adjacent
  }

  #copy(bytes: number): number {
    return costOf(this.#costs.memCpy, bytes)
  }

  #allocate(bytes: number): number {
    return costOf(this.#costs.memAlloc, bytes)
  }

  #compared(bytes: number): number {
    return costOf(this.#costs.memCmp, bytes)
  }

  /** The cost of copying a value's content, without the value itself. */
  #substance(value: ScVal): number {
    const list = (bytes: number): number => this.#allocate(bytes) + this.#copy(bytes)
    switch (value.type) {
      case ScType.bytes:
        return list(value.bytes.length)
      case ScType.string:
        return list(value.str.bytes.length)
      case ScType.symbol:
        return list(value.sym.bytes.length)
      case ScType.vec: {
        const items = value.vec ?? []
        return items.reduce((sum, item) => sum + this.#substance(item), list(VALUE_BYTES * items.length))
      }
      case ScType.map: {
        const items = value.map ?? []
        return items.reduce(
          (sum, { key, val }) => sum + this.#substance(key) + this.#substance(val),
          list(PAIR_BYTES * items.length)
        )
      }
      default:
        return 0
    }
  }

  #comparedValues(a: ScVal, b: ScVal): number {
    if (a.type !== b.type) return 0
    const lists = (x: ReadonlyArray<ScVal>, y: ReadonlyArray<ScVal>): number => {
      let cost = 0
      for (let i = 0; i < Math.min(x.length, y.length); i++) {
        cost += this.#comparedValues(x[i]!, y[i]!)
        if (!isSame(x[i]!, y[i]!)) break
      }
      return cost
    }
    switch (a.type) {
      case ScType.void:
      case ScType.ledgerKeyContractInstance:
        return 0
      case ScType.bool:
        return this.#compared(1)
      case ScType.u32:
      case ScType.i32:
        return this.#compared(4)
      case ScType.u128:
      case ScType.i128:
        return this.#compared(16)
      case ScType.u256:
      case ScType.i256:
        return this.#compared(32)
      case ScType.ledgerKeyNonce:
        return this.#compared(33)
      case ScType.address:
        return this.#compared(ADDRESS_BYTES)
      case ScType.bytes:
        return this.#compared(Math.min(a.bytes.length, (b as typeof a).bytes.length))
      case ScType.string:
        return this.#compared(Math.min(a.str.bytes.length, (b as typeof a).str.bytes.length))
      case ScType.symbol:
        return this.#compared(Math.min(a.sym.bytes.length, (b as typeof a).sym.bytes.length))
      case ScType.vec: {
        const [x, y] = [a.vec ?? [], (b as typeof a).vec ?? []]
        return this.#copy(VALUE_BYTES * Math.min(x.length, y.length)) + lists(x, y)
      }
      default:
        return this.#compared(8)
    }
  }

  #comparedKeys(a: LedgerKey, b: LedgerKey): number {
    if (a.type === EntryType.contractData && b.type === EntryType.contractData) {
      const [x, y] = [a.contractData, b.contractData]
      const addresses = this.#compared(ADDRESS_BYTES)
      const isOne =
        x.contract.type === y.contract.type &&
        (x.contract.type !== 1 || equalBytes(x.contract.contractId, (y.contract as typeof x.contract).contractId))
      if (!isOne) return addresses
      const values = addresses + this.#comparedValues(x.key, y.key)
      return isSame(x.key, y.key) ? values + this.#compared(4) : values
    }
    if (a.type !== b.type) return 0
    return this.#compared(a.type === EntryType.trustLine ? 77 : a.type === EntryType.contractCode ? 36 : 32)
  }

  #pair(a: number, b: number): number {
    return this.#pairs[a * this.keys.length + b]!
  }

  /** The comparisons of a binary search for the key of `position` in the ordered keys of `present`, found or not. */
  #searched(present: ReadonlyArray<number>, position: number): number {
    let [left, right, cost] = [0, present.length, 0]
    while (left < right) {
      const middle = left + ((right - left) >> 1)
      const probed = present[middle]!
      cost += this.#pair(probed, position)
      if (probed === position) break
      if (probed < position) left = middle + 1
      else right = middle
    }
    return cost
  }

  /** The same among all keys. */
  #searchedAll(position: number): number {
    let [left, right, cost] = [0, this.keys.length, 0]
    while (left < right) {
      const middle = left + ((right - left) >> 1)
      cost += this.#pair(middle, position)
      if (middle === position) break
      if (middle < position) left = middle + 1
      else right = middle
    }
    return cost
  }

  #halved(bytes: number, count: number): number {
    return this.#copy(bytes * (33 - Math.clz32(count)))
  }

  #found(bytes: number, searched: number): number {
    return this.#halved(bytes, this.keys.length) + searched + this.#copy(bytes)
  }

  /** A rebuilt list of `count` items, in order. */
  #remade(bytes: number, count: number, adjacent: number): number {
    const all = bytes * count
    return this.#copy(LIST_BYTES) + this.#allocate(all) + 2 * this.#copy(all) + adjacent
  }

  /** Reading the entry at a position. */
  read(position: number): number {
    const searched = this.#searchedAll(position)
    return this.#found(ACCESS_BYTES, searched) + this.#found(ENTRY_BYTES, searched)
  }

  /** Writing it. */
  write(position: number): number {
    const [searched, count] = [this.#searchedAll(position), this.keys.length]
    const replaced = this.#copy(ENTRY_BYTES) + this.#halved(ENTRY_BYTES, count) + searched
    return this.#found(ACCESS_BYTES, searched) + replaced + this.#remade(ENTRY_BYTES, count, this.#adjacent)
  }

  /** The copy that a frame keeps. */
  get snapshot(): number {
    const bytes = ENTRY_BYTES * this.keys.length
    return this.#copy(LIST_BYTES) + this.#allocate(bytes) + this.#copy(bytes)
  }

  /** A map that grows key by key, in the order given. */
  #grown(bytes: number, positions: ReadonlyArray<number>): number {
    const present: Array<number> = []
    let [cost, adjacent] = [0, 0]
    for (const position of positions) {
      cost += this.#copy(bytes) + this.#halved(bytes, present.length) + this.#searched(present, position)
      let at = present.length
      while (at > 0 && present[at - 1]! > position) at--
      const [before, after] = [present[at - 1], present[at]]
      if (before !== undefined && after !== undefined) adjacent -= this.#pair(before, after)
      if (before !== undefined) adjacent += this.#pair(before, position)
      if (after !== undefined) adjacent += this.#pair(position, after)
      present.splice(at, 0, position)
      cost += this.#remade(bytes, present.length, adjacent)
    }
    return cost
  }

  #clonedKey(key: LedgerKey): number {
    const substance = key.type === EntryType.contractData ? this.#substance(key.contractData.key) : 0
    return this.#copy(KEY_BYTES) + substance + this.#allocate(KEY_BYTES)
  }

  #keyOfEntry(key: LedgerKey): number {
    switch (key.type) {
      case EntryType.contractData:
        return this.#copy(ADDRESS_BYTES) + this.#copy(VALUE_BYTES) + this.#substance(key.contractData.key)
      case EntryType.trustLine:
        return this.#copy(32) + this.#copy(45)
      default:
        return this.#copy(32)
    }
  }

  /**
   * Builds the maps from positions in footprint order: writable entries come first in one map and last in the other.
   * `isThere` is true for positions that have an entry.
   */
  build(
    readOnly: ReadonlyArray<number>,
    readWrite: ReadonlyArray<number>,
    isThere: (position: number) => boolean
  ): number {
    const count = this.keys.length
    let cost = this.#grown(ACCESS_BYTES, [...readWrite, ...readOnly])
    const [existing, missing]: [Array<number>, Array<number>] = [[], []]
    for (const position of [...readOnly, ...readWrite]) if (isThere(position)) existing.push(position)
    const timed = existing.filter((position) => this.keys[position]!.type >= EntryType.contractData)
    // Searching for missing entries among the existing ones.
    cost += this.#copy(ACCESS_BYTES * count)
    for (const [position, key] of this.keys.entries()) {
      const searched = this.#searchedAll(position)
      cost += this.#clonedKey(key) + this.#halved(ENTRY_BYTES, count) + searched
      if (!isThere(position)) missing.push(position)
      else {
        cost += this.#allocate(LEDGER_ENTRY_BYTES) + this.#keyOfEntry(key) + this.#allocate(KEY_BYTES)
        cost += this.#halved(ACCESS_BYTES, count) + searched
      }
    }
    cost += timed.length * this.#allocate(TTL_BYTES) + this.#grown(TTL_ITEM_BYTES, timed)
    return cost + this.#grown(ENTRY_BYTES, [...existing, ...missing]) + this.snapshot
  }

  /** Comparing both maps for changes; `isThere` is true for positions that had an entry. */
  compare(isThere: (position: number) => boolean): number {
    const timed: Array<number> = []
    for (const [position, key] of this.keys.entries())
      if (key.type >= EntryType.contractData && isThere(position)) timed.push(position)
    let cost = this.#copy(ENTRY_BYTES * this.keys.length)
    for (const [position, key] of this.keys.entries()) {
      const searched = this.#searchedAll(position)
      cost += this.#found(ENTRY_BYTES, searched) + this.#found(ACCESS_BYTES, searched)
      if (key.type < EntryType.contractData) continue
      cost += this.#halved(TTL_ITEM_BYTES, timed.length)
      if (isThere(position)) cost += this.#searched(timed, position) + this.#copy(TTL_ITEM_BYTES)
      // The hash of a key with a new time to live.
      else cost += this.#copy(LIST_BYTES) + this.#allocate(32) + this.#copy(32)
    }
    return cost
  }
}
