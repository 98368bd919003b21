// Host functions on vectors (`v.*`), maps (`m.*`) and buffers (`b.*`). All of them are pure: each makes a new value.
// Positions beyond the end and missing keys are the object errors of the network; the comments give the host's own
// names.
import { ScType } from "../xdr/types.ts"
import { HostError } from "../host/HostError.ts"
import { bytes as bytesVal, checkScVal, checkSymbol, compareScVal, readVec, sym, u32, vec, VOID } from "../xdr/ScVal.ts"
import { tooDeep } from "../xdr/deepSize.ts"
import { isDepthError } from "../xdr/reusedWriter.ts"
import { codec, latin1, type ScMapEntry, type ScVal, xdrText } from "../xdr/Xdr.ts"
import * as xdr from "@stellar/stellar-sdk/xdr"
import { boolWord, u32Word } from "./Values.ts"
import type { HostFunctions, Vm } from "./Vm.ts"

const outOfBounds = (): HostError => HostError.of("Object", "IndexBounds", "index out of bounds")

const at = <T>(items: ArrayLike<T>, index: number): T => {
  if (index >= items.length) throw outOfBounds()
  return items[index]!
}

const within = (index: number, length: number): number => {
  if (index > length) throw outOfBounds()
  return index
}

const slice = (from: number, to: number, length: number): readonly [number, number] => {
  if (from > to || to > length) throw outOfBounds()
  return [from, to]
}

const mapVal = (entries: ReadonlyArray<ScMapEntry>): ScVal => ({ type: 17, map: entries as ScMapEntry[] })

/** Position of a key, or the complement of its insertion position. */
const search = (entries: ReadonlyArray<ScMapEntry>, key: ScVal): number => {
  let low = 0
  let high = entries.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const order = compareScVal(entries[middle]!.key, key)
    if (order === 0) return middle
    if (order < 0) low = middle + 1
    else high = middle
  }
  return ~low
}

const sorted = (entries: ReadonlyArray<ScMapEntry>): ScVal => {
  for (let i = 1; i < entries.length; i++) {
    if (compareScVal(entries[i - 1]!.key, entries[i]!.key) >= 0)
      throw HostError.of("Object", "InvalidInput", "map keys are not sorted")
  }
  return mapVal(entries)
}

const symbolBytes = (key: ScVal): Uint8Array => {
  if (key.type !== ScType.symbol) throw HostError.of("Value", "UnexpectedType", "a key of the map is not a symbol")
  return key.sym.bytes
}

const symbolOf = (text: string): ScVal => {
  checkSymbol(xdrText(text).bytes)
  return sym(text)
}

const stringOf = (content: Uint8Array): ScVal => ({ type: 14, str: new xdr.XdrString(content) })

const copyOut = (vm: Vm, source: Uint8Array, from: bigint, to: bigint, length: bigint): void => {
  const [start, end] = [vm.u32(from), vm.u32(from) + vm.u32(length)]
  if (end > source.length) throw outOfBounds()
  vm.write(vm.u32(to), source.subarray(start, end))
}

const splice = (content: Uint8Array, index: number, removed: number, ...inserted: ReadonlyArray<number>): ScVal =>
  bytesVal(Uint8Array.from([...content.subarray(0, index), ...inserted, ...content.subarray(index + removed)]))

const byteOf = (vm: Vm, word: bigint): number => {
  const byte = vm.u32(word)
  if (byte > 255) throw HostError.of("Value", "InvalidInput", "expected a value below 256")
  return byte
}

export const collectionFunctions: HostFunctions = {
  "v._": () => vec([]), // vec_new
  "v.0": (vm, v, i, x) => {
    const items = vm.vec(v)
    at(items, vm.u32(i))
    return vec(items.with(vm.u32(i), vm.value(x)))
  }, // vec_put
  "v.1": (vm, v, i) => at(vm.vec(v), vm.u32(i)), // vec_get
  "v.2": (vm, v, i) => {
    const items = vm.vec(v)
    at(items, vm.u32(i))
    return vec(items.toSpliced(vm.u32(i), 1))
  }, // vec_del
  "v.3": (vm, v) => u32Word(vm.vec(v).length), // vec_len
  "v.4": (vm, v, x) => vec([vm.value(x), ...vm.vec(v)]), // vec_push_front
  "v.5": (vm, v) => {
    const items = vm.vec(v)
    at(items, 0)
    return vec(items.slice(1))
  }, // vec_pop_front
  "v.6": (vm, v, x) => vec([...vm.vec(v), vm.value(x)]), // vec_push_back
  "v.7": (vm, v) => {
    const items = vm.vec(v)
    at(items, 0)
    return vec(items.slice(0, -1))
  }, // vec_pop_back
  "v.8": (vm, v) => at(vm.vec(v), 0), // vec_front
  "v.9": (vm, v) => {
    const items = vm.vec(v)
    at(items, 0)
    return items.at(-1)!
  }, // vec_back
  "v.a": (vm, v, i, x) => {
    const items = vm.vec(v)
    return vec(items.toSpliced(within(vm.u32(i), items.length), 0, vm.value(x)))
  }, // vec_insert
  "v.b": (vm, a, b) => vec(vm.vec(a).concat(vm.vec(b))), // vec_append
  "v.c": (vm, v, from, to) => {
    const items = vm.vec(v)
    return vec(items.slice(...slice(vm.u32(from), vm.u32(to), items.length)))
  }, // vec_slice
  "v.d": (vm, v, x) => {
    // vec_first_index_of
    const sought = vm.whole(x)
    const index = vm.wholes(v).findIndex((item) => compareScVal(item, sought) === 0)
    return index < 0 ? VOID : u32(index)
  },
  "v.e": (vm, v, x) => {
    // vec_last_index_of
    const sought = vm.whole(x)
    const index = vm.wholes(v).findLastIndex((item) => compareScVal(item, sought) === 0)
    return index < 0 ? VOID : u32(index)
  },
  "v.f": (vm, v, x) => {
    // vec_binary_search: index in the low half, found above it
    const items = vm.wholes(v).map((key) => ({ key, val: VOID }))
    const index = search(items, vm.whole(x))
    return { type: 5, u64: index >= 0 ? (1n << 32n) | BigInt(index) : BigInt(~index) }
  },
  "v.g": (vm, from, count) => vec(vm.readValues(vm.u32(from), vm.u32(count))), // vec_new_from_linear_memory
  "v.h": (vm, v, to, count) => {
    // vec_unpack_to_linear_memory
    const items = readVec(vm.value(v))
    if (items.length !== vm.u32(count)) throw HostError.of("Object", "UnexpectedSize", "vector of another length")
    vm.writeValues(vm.u32(to), items)
  },

  "m._": () => mapVal([]), // map_new
  "m.0": (vm, m, k, x) => {
    // map_put
    const [entries, key, val] = [vm.keyed(m), vm.whole(k), vm.value(x)]
    const index = search(entries, key)
    return mapVal(index >= 0 ? entries.with(index, { key, val }) : entries.toSpliced(~index, 0, { key, val }))
  },
  "m.1": (vm, m, k) => {
    // map_get
    const entries = vm.keyed(m)
    const entry = entries[search(entries, vm.whole(k))]
    if (entry === undefined) throw HostError.of("Object", "MissingValue", "map key not found")
    return entry.val
  },
  "m.2": (vm, m, k) => {
    // map_del
    const entries = vm.keyed(m)
    const index = search(entries, vm.whole(k))
    if (index < 0) throw HostError.of("Object", "MissingValue", "map key not found")
    return mapVal(entries.toSpliced(index, 1))
  },
  "m.3": (vm, m) => u32Word(vm.map(m).length), // map_len
  "m.4": (vm, m, k) => boolWord(search(vm.keyed(m), vm.whole(k)) >= 0), // map_has
  "m.5": (vm, m, i) => at(vm.map(m), vm.u32(i)).key, // map_key_by_pos
  "m.6": (vm, m, i) => at(vm.map(m), vm.u32(i)).val, // map_val_by_pos
  "m.7": (vm, m) => vec(vm.map(m).map(({ key }) => key)), // map_keys
  "m.8": (vm, m) => vec(vm.map(m).map(({ val }) => val)), // map_values
  "m.9": (vm, keys, values, count) => {
    // map_new_from_linear_memory
    const vals = vm.readValues(vm.u32(values), vm.u32(count))
    return sorted(vm.readTexts(vm.u32(keys), vm.u32(count)).map((key, i) => ({ key: symbolOf(key), val: vals[i]! })))
  },
  "m.a": (vm, m, keys, to, count) => {
    // map_unpack_to_linear_memory
    const entries = vm.map(m)
    const names = vm.readTexts(vm.u32(keys), vm.u32(count))
    if (entries.length !== names.length) throw HostError.of("Object", "UnexpectedSize", "map of another size")
    entries.forEach(({ key }, i) => {
      if (key.type !== ScType.symbol || latin1(key.sym.bytes) !== names[i])
        throw HostError.of("Value", "InvalidInput", "map of other keys")
    })
    vm.writeValues(
      vm.u32(to),
      entries.map(({ val }) => val)
    )
  },
  "m.b": (vm, keys, values, count) => {
    // sparse_map_new_from_linear_memory: entries with a void value are left out, when all keys are in order
    const vals = vm.readValues(vm.u32(values), vm.u32(count))
    const texts = vm.readTexts(vm.u32(keys), vm.u32(count))
    const entries = texts.map((key, i) => ({ key: symbolOf(key), val: vals[i]! }))
    sorted(entries)
    return mapVal(entries.filter(({ val }) => val.type !== ScType.void))
  },
  "m.c": (vm, m, keys, to, count) => {
    // sparse_map_unpack_to_linear_memory: void for a key that the map does not have
    const valueByName = new Map(vm.map(m).map(({ key, val }) => [latin1(symbolBytes(key)), val]))
    const names = vm.readTexts(vm.u32(keys), vm.u32(count))
    if (names.some((name, i) => i > 0 && names[i - 1]! >= name))
      throw HostError.of("Object", "InvalidInput", "keys are not in ascending order when unpacking map")
    vm.writeValues(
      vm.u32(to),
      names.map((name) => valueByName.get(name) ?? VOID)
    )
  },

  "b._": (vm, x) => {
    // serialize_to_bytes
    const encoded = codec.ScVal.encode(vm.whole(x))
    vm.payWork(encoded.length)
    return bytesVal(encoded)
  },
  "b.0": (vm, b) => {
    // deserialize_from_bytes
    const content = vm.bytes(b)
    vm.payWork(content.length)
    let value: ScVal
    try {
      value = codec.ScVal.decode(content)
    } catch (error) {
      throw isDepthError(error) ? tooDeep() : HostError.of("Value", "InvalidInput", "bytes are not a value")
    }
    checkScVal(value, vm.host.input.settings.protocolVersion)
    return value
  },
  "b.1": (vm, b, from, to, length) => copyOut(vm, vm.bytes(b), from, to, length), // bytes_copy_to_linear_memory
  "b.2": (vm, b, to, from, length) => {
    // bytes_copy_from_linear_memory
    const [content, start] = [vm.bytes(b), vm.u32(to)]
    if (start > content.length) throw outOfBounds()
    const piece = vm.read(vm.u32(from), vm.u32(length))
    const result = new Uint8Array(Math.max(content.length, start + piece.length))
    result.set(content)
    result.set(piece, start)
    return bytesVal(result)
  },
  "b.3": (vm, from, length) => bytesVal(vm.read(vm.u32(from), vm.u32(length))), // bytes_new_from_linear_memory
  "b.4": () => bytesVal(new Uint8Array()), // bytes_new
  "b.5": (vm, b, i, x) => {
    const content = vm.bytes(b)
    at(content, vm.u32(i))
    return splice(content, vm.u32(i), 1, byteOf(vm, x))
  }, // bytes_put
  "b.6": (vm, b, i) => u32Word(at(vm.bytes(b), vm.u32(i))), // bytes_get
  "b.7": (vm, b, i) => {
    const content = vm.bytes(b)
    at(content, vm.u32(i))
    return splice(content, vm.u32(i), 1)
  }, // bytes_del
  "b.8": (vm, b) => u32Word(vm.bytes(b).length), // bytes_len
  "b.9": (vm, b, x) => {
    const content = vm.bytes(b)
    return splice(content, content.length, 0, byteOf(vm, x))
  }, // bytes_push
  "b.a": (vm, b) => {
    const content = vm.bytes(b)
    at(content, 0)
    return splice(content, content.length - 1, 1)
  }, // bytes_pop
  "b.b": (vm, b) => u32Word(at(vm.bytes(b), 0)), // bytes_front
  "b.c": (vm, b) => {
    const content = vm.bytes(b)
    at(content, 0)
    return u32Word(content.at(-1)!)
  }, // bytes_back
  "b.d": (vm, b, i, x) => {
    const content = vm.bytes(b)
    return splice(content, within(vm.u32(i), content.length), 0, byteOf(vm, x))
  }, // bytes_insert
  "b.e": (vm, a, b) => {
    // bytes_append
    const [first, second] = [vm.bytes(a), vm.bytes(b)]
    const result = new Uint8Array(first.length + second.length)
    result.set(first)
    result.set(second, first.length)
    return bytesVal(result)
  },
  "b.f": (vm, b, from, to) => {
    // bytes_slice
    const content = vm.bytes(b)
    return bytesVal(content.slice(...slice(vm.u32(from), vm.u32(to), content.length)))
  },
  "b.g": (vm, s, from, to, length) => copyOut(vm, vm.text(s, 14), from, to, length), // string_copy_to_linear_memory
  "b.h": (vm, s, from, to, length) => copyOut(vm, vm.text(s, 15), from, to, length), // symbol_copy_to_linear_memory
  "b.i": (vm, from, length) => stringOf(vm.read(vm.u32(from), vm.u32(length))), // string_new_from_linear_memory
  "b.j": (vm, from, length) => symbolOf(vm.readText(vm.u32(from), vm.u32(length))), // symbol_new_from_linear_memory
  "b.k": (vm, s) => u32Word(vm.text(s, 14).length), // string_len
  "b.l": (vm, s) => u32Word(vm.text(s, 15).length), // symbol_len
  "b.m": (vm, s, from, count) => {
    // symbol_index_in_linear_memory
    const index = vm.readTexts(vm.u32(from), vm.u32(count)).indexOf(latin1(vm.text(s, 15)))
    if (index < 0) throw HostError.of("Value", "InvalidInput", "symbol not found in linear memory slices")
    return u32Word(index)
  },
  "b.n": (vm, s) => bytesVal(vm.text(s, 14)), // string_to_bytes
  "b.o": (vm, b) => stringOf(vm.bytes(b)) // bytes_to_string
}
