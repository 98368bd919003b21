// The network's charges for values by their size: copies of lists, maps and bytes, conversions between values and the
// host's objects, comparisons, and a contract's handles of its objects. The sizes come from the type declarations of
// the network's host.
import { costOf } from "./InstructionMeter.ts"
import type { CpuCosts } from "../state/cpuCosts.ts"
import { ScType } from "../xdr/types.ts"
import { piecesOfValue, SMALL_SYMBOL_MAX } from "../xdr/valueSizes.ts"
import { codec, type ScMapEntry, type ScVal } from "../xdr/Xdr.ts"

/** Bytes of a handle, of a pair of them, of the head of a list, of an object, and of values as XDR types. */
export const HANDLE_BYTES = 8
export const PAIR_BYTES = 16
const LIST_BYTES = 24
const OBJECT_BYTES = 64
const VALUE_BYTES = 96
const VALUE_PAIR_BYTES = 192
const ADDRESS_BYTES = 48
/** Pieces of XDR that the price of `serialize_to_bytes` already includes. */
const PIECES_PRICED = 2

export const sumOf = <A>(items: ReadonlyArray<A>, of: (item: A) => number): number =>
  items.reduce((total, item) => total + of(item), 0)

/** True for a value that the host keeps as an object. */
const isObject = (value: ScVal): boolean => {
  switch (value.type) {
    case ScType.symbol:
      return value.sym.bytes.length > SMALL_SYMBOL_MAX
    case ScType.bytes:
    case ScType.string:
    case ScType.vec:
    case ScType.map:
    case ScType.address:
    case ScType.u128:
    case ScType.i128:
    case ScType.u256:
    case ScType.i256:
      return true
    default:
      return false
  }
}

export const itemsOf = (value: ScVal): ReadonlyArray<ScVal> => (value.type === ScType.vec ? (value.vec ?? []) : [])
export const entriesOf = (value: ScVal): ReadonlyArray<ScMapEntry> =>
  value.type === ScType.map ? (value.map ?? []) : []

const bytesOf = (value: ScVal): Uint8Array | undefined => {
  switch (value.type) {
    case ScType.bytes:
      return value.bytes
    case ScType.string:
      return value.str.bytes
    case ScType.symbol:
      return value.sym.bytes
    default:
      return undefined
  }
}

export const lengthOf = (value: ScVal): number => bytesOf(value)?.length ?? 0

export class ValueCosts {
  readonly #costs: CpuCosts

  constructor(costs: CpuCosts) {
    this.#costs = costs
  }

  get visit(): number {
    return this.#costs.visitObject.constant
  }

  /** A handle of an object, made for the contract. */
  get handle(): number {
    return costOf(this.#costs.memAlloc, HANDLE_BYTES)
  }

  handles(values: ReadonlyArray<ScVal>): number {
    return values.filter(isObject).length * this.handle
  }

  visits(values: ReadonlyArray<ScVal>): number {
    return values.filter(isObject).length * this.visit
  }

  copied(bytes: number): number {
    return (this.#costs.memCpy.linear128 * bytes) / 128
  }

  allocated(bytes: number): number {
    return (this.#costs.memAlloc.linear128 * bytes) / 128
  }

  /** The part of a new list that grows with its bytes. */
  list(bytes: number): number {
    return this.allocated(bytes) + this.copied(bytes)
  }

  newList(bytes: number): number {
    const { memAlloc, memCpy } = this.#costs
    return costOf(memCpy, LIST_BYTES) + costOf(memAlloc, bytes) + costOf(memCpy, bytes)
  }

  get #object(): number {
    return costOf(this.#costs.memAlloc, OBJECT_BYTES)
  }

  compared(a: ScVal, b: ScVal): number {
    if (!isObject(a) || !isObject(b)) return isObject(a) || isObject(b) ? this.visit : 0
    return 2 * this.visit + this.#content(a, b)
  }

  #content(a: ScVal, b: ScVal): number {
    const { memCmp, memCpy } = this.#costs
    const [x, y] = [bytesOf(a), bytesOf(b)]
    if (x !== undefined && y !== undefined) return costOf(memCmp, Math.min(x.length, y.length))
    const [items, others] = [itemsOf(a), itemsOf(b)]
    const shared = Math.min(items.length, others.length) * HANDLE_BYTES
    if (a.type === ScType.vec && b.type === ScType.vec)
      return (
        costOf(memCpy, shared) +
        costOf(memCmp, shared) +
        sumOf(items.slice(0, others.length), (item) => this.compared(item, others[0]!))
      )
    const [pairs, more] = [entriesOf(a), entriesOf(b)]
    if (a.type === ScType.map && b.type === ScType.map)
      return (
        2 * costOf(memCpy, PAIR_BYTES * Math.min(pairs.length, more.length)) +
        sumOf(pairs.slice(0, more.length), ({ key, val }) => this.compared(key, key) + this.compared(val, val))
      )
    return costOf(memCmp, ADDRESS_BYTES)
  }

  /** A key found among those of a map. */
  searched(count: number, key: ScVal): number {
    const steps = 33 - Math.clz32(count)
    return this.copied(PAIR_BYTES * steps) + steps * this.compared(key, key)
  }

  /** A rebuilt map, including the check of its order. */
  remade(entries: ReadonlyArray<ScMapEntry>): number {
    const bytes = PAIR_BYTES * entries.length
    return this.list(bytes) + this.copied(bytes) + sumOf(entries.slice(1), ({ key }) => this.compared(key, key))
  }

  /** A symbol that is made from bytes, unless it fits into a word. */
  symbol(length: number): number {
    return length > SMALL_SYMBOL_MAX ? this.newList(length) + this.#object : 0
  }

  text(length: number, isLong: boolean): number {
    return costOf(this.#costs.memCmp, length) + (isLong ? this.visit : 0)
  }

  /** Converts a stored or decoded value to the host's objects. */
  toHost(value: ScVal): number {
    if (!isObject(value)) return 0
    const length = bytesOf(value)?.length
    if (length !== undefined) return this.newList(length) + this.#object
    switch (value.type) {
      case ScType.vec:
        return this.newList(HANDLE_BYTES * itemsOf(value).length) + this.#object + this.#all(itemsOf(value))
      case ScType.map: {
        const entries = entriesOf(value)
        const bytes = PAIR_BYTES * entries.length
        const made = this.newList(bytes) + costOf(this.#costs.memCpy, bytes) + this.#object
        return made + sumOf(entries, ({ key, val }) => this.toHost(key) + this.toHost(val) + this.compared(key, key))
      }
      default:
        return costOf(this.#costs.memCpy, ADDRESS_BYTES) + this.#object
    }
  }

  #all(items: ReadonlyArray<ScVal>): number {
    return sumOf(items, (item) => this.toHost(item))
  }

  /** A value out of the host's own objects, to be stored, emitted or encoded. */
  fromHost(value: ScVal): number {
    if (!isObject(value)) return 0
    const length = bytesOf(value)?.length
    if (length !== undefined) return this.visit + this.newList(length)
    switch (value.type) {
      case ScType.vec: {
        const items = itemsOf(value)
        return this.visit + this.newList(VALUE_BYTES * items.length) + sumOf(items, (item) => this.fromHost(item))
      }
      case ScType.map: {
        const entries = entriesOf(value)
        const within = sumOf(entries, ({ key, val }) => this.fromHost(key) + this.fromHost(val))
        return this.visit + this.newList(VALUE_PAIR_BYTES * entries.length) + within
      }
      default:
        return this.visit + costOf(this.#costs.memCpy, ADDRESS_BYTES)
    }
  }

  /** The same for a value with one object already charged. */
  beyondOne(value: ScVal, convert: (value: ScVal) => number): number {
    const length = bytesOf(value)?.length
    if (length !== undefined) return this.list(length)
    return value.type === ScType.vec || value.type === ScType.map ? convert(value) : 0
  }

  /** A value that a call returns. The call's price includes its conversion unless it is a list or a text. */
  returned(value: ScVal): number {
    return Math.floor(this.beyondOne(value, (whole) => this.fromHost(whole)))
  }

  encoded(value: ScVal): number {
    const { constant, linear128 } = this.#costs.valSer
    const bytes = codec.ScVal.encode(value).length
    return (piecesOfValue(value) - PIECES_PRICED) * constant + (linear128 * bytes) / 128
  }

  decoded(bytes: number): number {
    return costOf(this.#costs.valDeser, bytes)
  }

  drawn(bytes: number): number {
    return costOf(this.#costs.chaCha20DrawBytes, bytes)
  }
}
