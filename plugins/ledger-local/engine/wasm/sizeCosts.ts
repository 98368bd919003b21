// The network's charges for a host function call by the size of its data. The fixed cost of a call is in
// `instructionPrices.ts`.
import { entriesOf, HANDLE_BYTES, itemsOf, lengthOf, PAIR_BYTES, sumOf, ValueCosts } from "../host/ValueCosts.ts"
import { ScType } from "../xdr/types.ts"
import { SMALL_SYMBOL_MAX } from "../xdr/valueSizes.ts"
import type { ScVal } from "../xdr/Xdr.ts"
import { isObjectWord } from "./Values.ts"
import type { Vm } from "./Vm.ts"

interface Call {
  readonly vm: Vm
  readonly sizes: ValueCosts
  readonly args: ReadonlyArray<bigint>
  readonly result: ScVal
}

const argument = ({ vm, args }: Call, index: number): ScVal => vm.values.value(args[index]!)
const number = ({ vm, args }: Call, index: number): number => vm.u32(args[index]!)

const remadeList = ({ sizes, result }: Call): number => sizes.list(HANDLE_BYTES * itemsOf(result).length)
const remadeBytes = ({ sizes, result }: Call): number => sizes.list(lengthOf(result))
const remadeMap = (call: Call): number =>
  call.sizes.remade(entriesOf(call.result)) +
  call.sizes.searched(entriesOf(argument(call, 0)).length, argument(call, 1))
const search = (call: Call): number => call.sizes.searched(entriesOf(argument(call, 0)).length, argument(call, 1))

const projected = (call: Call): number => {
  const count = entriesOf(argument(call, 0)).length
  return call.sizes.copied(PAIR_BYTES * count) + call.sizes.list(HANDLE_BYTES * count)
}

const scanned = (call: Call): number => {
  const [items, sought] = [itemsOf(argument(call, 0)), argument(call, 1)]
  return call.sizes.copied(HANDLE_BYTES * items.length) + sumOf(items, (item) => call.sizes.compared(item, sought))
}

const copiedOut =
  (index: number) =>
  (call: Call): number =>
    call.sizes.copied(number(call, index))

const readIn = (call: Call): number => call.sizes.list(number(call, 1))

/** A map from keys and values in the contract's memory; the sparse kind checks the order of the keys twice. */
const mapFromMemory =
  (reads: number) =>
  (call: Call): number => {
    const { sizes, vm } = call
    const keys = vm.readTexts(number(call, 0), number(call, 2))
    const values = vm.readValues(number(call, 1), number(call, 2))
    const ordered = sumOf(keys.slice(1), ({ length }) =>
      length > SMALL_SYMBOL_MAX ? sizes.text(length, true) + sizes.visit : 0
    )
    const linear = sizes.allocated(32 * keys.length) + sizes.copied(80 * keys.length)
    return linear + sizes.visits(values) + sumOf(keys, ({ length }) => sizes.symbol(length)) + reads * ordered
  }

const mapToMemory = (call: Call): number => {
  const { sizes, vm } = call
  const count = number(call, 3)
  const keys = vm.readTexts(number(call, 1), count)
  const compared = sumOf(keys, ({ length }) => sizes.text(length, length > SMALL_SYMBOL_MAX))
  const ordered = sumOf(keys.slice(1), ({ length }) => sizes.text(length, false))
  const written = vm.readValues(number(call, 2), count)
  return sizes.allocated(8 * count) + sizes.copied(48 * count) + compared + ordered + sizes.handles(written)
}

const symbolIndex = (call: Call): number => {
  const { sizes, vm } = call
  const found = call.result.type === ScType.u32 ? call.result.u32 + 1 : number(call, 2)
  const isLong = lengthOf(argument(call, 0)) > SMALL_SYMBOL_MAX
  const keys = vm.readTexts(number(call, 1), number(call, 2)).slice(0, found)
  const scannedBytes = sizes.copied(HANDLE_BYTES * number(call, 2))
  return scannedBytes + (isLong ? sizes.visit : 0) + sumOf(keys, ({ length }) => sizes.text(length, isLong))
}

const bytesResized = (call: Call): number => {
  const { sizes } = call
  const [before, after] = [lengthOf(argument(call, 0)), lengthOf(call.result)]
  const grown = after > before ? sizes.newList(after - before) - sizes.newList(0) + sizes.handle : 0
  return sizes.list(before) + grown + sizes.copied(number(call, 3))
}

/** The kind of storage that is part of the contract's instance. */
const INSTANCE = 2n

const table: Readonly<Record<string, (call: Call) => number>> = {
  "v.0": remadeList,
  "v.2": remadeList,
  "v.4": remadeList,
  "v.5": remadeList,
  "v.6": remadeList,
  "v.7": remadeList,
  "v.a": remadeList,
  "v.b": remadeList,
  "v.c": remadeList,
  "v.d": scanned,
  "v.e": scanned,
  "v.g": ({ sizes, result }) =>
    sizes.list(HANDLE_BYTES * itemsOf(result).length) +
    sizes.copied(3 * HANDLE_BYTES * itemsOf(result).length) +
    sizes.visits(itemsOf(result)),
  "v.h": (call) => {
    const items = itemsOf(argument(call, 0))
    return call.sizes.copied(2 * HANDLE_BYTES * items.length) + call.sizes.handles(items)
  },
  "m.0": remadeMap,
  "m.1": search,
  "m.2": remadeMap,
  "m.4": search,
  "m.7": projected,
  "m.8": projected,
  "m.9": mapFromMemory(1),
  "m.a": mapToMemory,
  "m.b": mapFromMemory(2),
  "m.c": mapToMemory,
  "b._": (call) => call.sizes.fromHost(argument(call, 0)) + call.sizes.encoded(argument(call, 0)) + remadeBytes(call),
  "b.0": (call) => call.sizes.decoded(lengthOf(argument(call, 0))) + call.sizes.toHost(call.result),
  "b.1": copiedOut(3),
  "b.2": bytesResized,
  "b.3": readIn,
  "b.5": remadeBytes,
  "b.7": remadeBytes,
  "b.9": remadeBytes,
  "b.a": remadeBytes,
  "b.d": remadeBytes,
  "b.e": remadeBytes,
  "b.f": remadeBytes,
  "b.g": copiedOut(3),
  "b.h": copiedOut(3),
  "b.i": readIn,
  "b.j": readIn,
  "b.m": symbolIndex,
  "b.n": remadeBytes,
  "b.o": remadeBytes,
  "l._": (call) => {
    const convert = (value: ScVal): number => call.sizes.fromHost(value)
    // The keys of entries are charged when they are read.
    const key = call.args[2] === INSTANCE ? call.sizes.beyondOne(argument(call, 0), convert) : 0
    return key + call.sizes.beyondOne(argument(call, 1), convert)
  },
  "l.1": (call) => call.sizes.beyondOne(call.result, (value) => call.sizes.toHost(value)),
  "p.0": ({ sizes, result }) => sizes.drawn(lengthOf(result)) + sizes.list(lengthOf(result)),
  "p.2": ({ sizes, result }) =>
    sizes.list(HANDLE_BYTES * itemsOf(result).length) + itemsOf(result).length * sizes.drawn(HANDLE_BYTES),
  "x.0": (call) => call.sizes.compared(argument(call, 0), argument(call, 1)),
  "x.1": (call) =>
    sumOf([...itemsOf(argument(call, 0)), argument(call, 1)], (value) => call.sizes.list(lengthOf(value)))
}

/** Charges for the sizes of a call that succeeded, and for the handle of its result. */
export const chargeSizes = (vm: Vm, id: string, args: ReadonlyArray<bigint>, result: ScVal, word: bigint): void => {
  const { meter } = vm.host
  const sizes = new ValueCosts(meter.costs)
  const bySize = table[id]
  if (bySize !== undefined) meter.spend(Math.floor(bySize({ vm, sizes, args, result })))
  if (isObjectWord(word)) meter.spend(sizes.handle)
}
