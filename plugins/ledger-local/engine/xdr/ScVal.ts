// Constructors and readers of contract values in wire form. Readers refuse a value of the wrong type with the host's
// error (`Error(Value, UnexpectedType)`), so a wrong argument fails here exactly as on the network. Integers of 64 and
// 128 bits are `bigint`s; symbols, which are short ASCII, are cached by their text.
import { ScErrorType, ScType } from "./types.ts"
import type * as xdr from "@stellar/stellar-sdk/xdr"
import { HostError } from "../host/HostError.ts"
import { isTooDeep, tooDeep } from "./deepSize.ts"
import { codec, compareBytes, latin1, type ScAddress, type ScMapEntry, type ScVal, textOf, xdrText } from "./Xdr.ts"

export const VOID: ScVal = { type: 1 }
/** The contract data key under which a contract's instance lives. */
export const INSTANCE_KEY: ScVal = { type: 20 }

const symbols = new Map<string, Extract<ScVal, { type: 15 }>>()
const SYMBOLS_MAX = 1024

/** A symbol value; the same object for the same short text. */
export const sym = (text: string): Extract<ScVal, { type: 15 }> => {
  const cachedSymbol = symbols.get(text)
  if (cachedSymbol !== undefined) return cachedSymbol
  const made = { type: 15, sym: xdrText(text) } as const
  if (symbols.size < SYMBOLS_MAX) symbols.set(text, made)
  return made
}

export const bool = (b: boolean): ScVal => ({ type: 0, b })
export const u32 = (value: number): ScVal => ({ type: 3, u32: value })
export const u64 = (value: bigint): ScVal => ({ type: 5, u64: value })
export const i64 = (value: bigint): ScVal => ({ type: 6, i64: value })
export const bytes = (value: Uint8Array): ScVal => ({ type: 13, bytes: value })
export const str = (text: string): ScVal => ({ type: 14, str: xdrText(text) })
export const vec = (items: ReadonlyArray<ScVal>): Extract<ScVal, { type: 16 }> => ({ type: 16, vec: items as ScVal[] })
export const address = (value: ScAddress): ScVal => ({ type: 18, address: value })
export const i128 = (value: bigint): ScVal => ({
  type: 10,
  i128: { hi: BigInt.asIntN(64, value >> 64n), lo: BigInt.asUintN(64, value) }
})

/** A map of symbol keys, which must be given in ascending order (as the host keeps them). */
export const structMap = (fields: Readonly<Record<string, ScVal>>): Extract<ScVal, { type: 17 }> => ({
  type: 17,
  map: Object.entries(fields).map(([key, val]): ScMapEntry => ({ key: sym(key), val }))
})

/** The network's log omits the error for a value of another type. */
const wrongType = (expected: string): HostError =>
  HostError.silent("Value", "UnexpectedType", `value is not ${expected}`)

export const readI128 = (value: ScVal): bigint => {
  if (value.type !== ScType.i128) throw wrongType("an i128")
  return (value.i128.hi << 64n) + value.i128.lo
}

export const readU32 = (value: ScVal): number => {
  if (value.type !== ScType.u32) throw wrongType("a u32")
  return value.u32
}

export const readBool = (value: ScVal): boolean => {
  if (value.type !== ScType.bool) throw wrongType("a bool")
  return value.b
}

export const readVec = (value: ScVal): ReadonlyArray<ScVal> => {
  if (value.type !== ScType.vec || value.vec === null) throw wrongType("a vector")
  return value.vec
}

export const readMap = (value: ScVal): ReadonlyArray<ScMapEntry> => {
  if (value.type !== ScType.map || value.map === null) throw wrongType("a map")
  return value.map
}

export const readBytes = (value: ScVal): Uint8Array => {
  if (value.type !== ScType.bytes) throw wrongType("bytes")
  return value.bytes
}

/** An account's or a contract's address; muxed and other addresses are refused. */
export const readAddress = (value: ScVal): ScAddress => {
  if (value.type !== ScType.address || value.address.type > 1) throw wrongType("an address")
  return value.address
}

/** The text of a symbol, or undefined when the value is something else. */
export const symbolText = (value: ScVal | undefined): string | undefined =>
  value?.type === ScType.symbol ? textOf(value.sym) : undefined

export const field = (map: ReadonlyArray<ScMapEntry>, name: string): ScVal | undefined =>
  map.find((entry) => symbolText(entry.key) === name)?.val

/** A cheap unique string of a value: its XDR, one character per byte. */
export const scvString = (value: ScVal): string => latin1(codec.ScVal.encode(value))

export type XdrString = xdr.XdrString

const compareNumbers = (a: number | bigint, b: number | bigint): number => (a < b ? -1 : a > b ? 1 : 0)

const compareLists = <T>(a: ReadonlyArray<T>, b: ReadonlyArray<T>, compare: (x: T, y: T) => number): number => {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const order = compare(a[i]!, b[i]!)
    if (order !== 0) return order
  }
  return a.length - b.length
}

const wide = (parts: { readonly [part: string]: bigint }, order: ReadonlyArray<string>): bigint =>
  order.reduce((sum, part, i) => (i === 0 ? parts[part]! : (sum << 64n) + parts[part]!), 0n)

const HALVES = ["hi", "lo"]
const QUARTERS = ["hiHi", "hiLo", "loHi", "loLo"]

/** The host's total order of values, which sorts maps: by type, then by content. Negative, 0 or positive. */
export const compareScVal = (a: ScVal, b: ScVal): number => {
  if (a.type !== b.type) return a.type - b.type
  switch (a.type) {
    case ScType.bool:
      return compareNumbers(Number(a.b), Number((b as typeof a).b))
    case ScType.error: {
      const [x, y] = [a.error, (b as typeof a).error]
      if (x.type !== y.type) return x.type - y.type
      return (
        (x.type === ScErrorType.contract ? x.contractCode : x.code) -
        (y.type === ScErrorType.contract ? y.contractCode : y.code)
      )
    }
    case ScType.u32:
      return compareNumbers(a.u32, (b as typeof a).u32)
    case ScType.i32:
      return compareNumbers(a.i32, (b as typeof a).i32)
    case ScType.u64:
      return compareNumbers(a.u64, (b as typeof a).u64)
    case ScType.i64:
      return compareNumbers(a.i64, (b as typeof a).i64)
    case ScType.timepoint:
      return compareNumbers(a.timepoint, (b as typeof a).timepoint)
    case ScType.duration:
      return compareNumbers(a.duration, (b as typeof a).duration)
    case ScType.u128:
      return compareNumbers(wide({ ...a.u128 }, HALVES), wide({ ...(b as typeof a).u128 }, HALVES))
    case ScType.i128:
      return compareNumbers(wide({ ...a.i128 }, HALVES), wide({ ...(b as typeof a).i128 }, HALVES))
    case ScType.u256:
      return compareNumbers(wide({ ...a.u256 }, QUARTERS), wide({ ...(b as typeof a).u256 }, QUARTERS))
    case ScType.i256:
      return compareNumbers(wide({ ...a.i256 }, QUARTERS), wide({ ...(b as typeof a).i256 }, QUARTERS))
    case ScType.bytes:
      return compareBytes(a.bytes, (b as typeof a).bytes)
    case ScType.string:
      return compareBytes(a.str.bytes, (b as typeof a).str.bytes)
    case ScType.executableTag:
      return compareBytes(a.executableTag.bytes, (b as typeof a).executableTag.bytes)
    case ScType.symbol:
      return compareBytes(a.sym.bytes, (b as typeof a).sym.bytes)
    case ScType.vec:
      return compareLists(a.vec ?? [], (b as typeof a).vec ?? [], compareScVal)
    case ScType.map:
      return compareLists(
        a.map ?? [],
        (b as typeof a).map ?? [],
        (x, y) => compareScVal(x.key, y.key) || compareScVal(x.val, y.val)
      )
    default: {
      const [x, y] = [scvString(a), scvString(b)]
      return x < y ? -1 : x > y ? 1 : 0
    }
  }
}

const isSymbolByte = (byte: number): boolean =>
  (byte >= 97 && byte <= 122) || (byte >= 65 && byte <= 90) || (byte >= 48 && byte <= 57) || byte === 95

/** The first protocol with tags of executables. */
const TAGS_SINCE = 28

/**
 * Refuses input that the host cannot take as a value: too deep nesting, bad symbols, unsorted maps, absent vectors,
 * values reserved for ledger keys.
 */
export const checkScVal = (value: ScVal, protocol: number): void => {
  if (isTooDeep(value)) throw tooDeep()
  checkParts(value, protocol)
}

const checkParts = (value: ScVal, protocol: number): void => {
  switch (value.type) {
    case ScType.symbol:
      checkSymbol(value.sym.bytes)
      return
    case ScType.vec:
      if (value.vec === null) throw wrongType("a vector")
      for (const item of value.vec) checkParts(item, protocol)
      return
    case ScType.map: {
      if (value.map === null) throw wrongType("a map")
      let previous: ScVal | undefined
      for (const entry of value.map) {
        checkParts(entry.key, protocol)
        checkParts(entry.val, protocol)
        if (previous !== undefined && compareScVal(previous, entry.key) >= 0) {
          throw HostError.of("Object", "InvalidInput", "map keys are not sorted")
        }
        previous = entry.key
      }
      return
    }
    case ScType.address:
      if (value.address.type > 2) throw HostError.of("Value", "UnexpectedType", "unexpected address type")
      return
    case ScType.executableTag:
      if (protocol < TAGS_SINCE) throw HostError.of("Value", "UnexpectedType", "failed to convert ScVal to host value")
      return
    case ScType.contractInstance:
    case ScType.ledgerKeyContractInstance:
    case ScType.ledgerKeyNonce:
      throw HostError.of("Value", "UnexpectedType", "failed to convert ScVal to host value")
  }
}

/** Refuses a symbol that is too long or has other characters than letters, digits and underscores. */
export const checkSymbol = (text: Uint8Array): void => {
  const bad = text.find((byte) => !isSymbolByte(byte))
  if (bad !== undefined) throw HostError.of("Value", "InvalidInput", "byte is not allowed in Symbol", [u32(bad)])
  if (text.length > 32) throw HostError.of("Value", "InvalidInput", "symbol too long")
}
