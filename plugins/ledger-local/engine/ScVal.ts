// Constructors and readers of contract values in wire form. Readers refuse a value of the wrong type with the host's own
// error (`Error(Value, UnexpectedType)`), so a wrong argument fails here exactly as it does on the network. Integers of
// 64 and 128 bits are `bigint`s; symbols, which are short ASCII, are cached by their text.
import type { xdr } from "@stellar/stellar-sdk/base"
import { HostError } from "./HostError.ts"
import { codec, latin1, type ScAddress, type ScMapEntry, type ScVal, textOf, xdrText } from "./Xdr.ts"

/** The discriminants of `SCValType`. */
export const ScvType = {
  bool: 0, void: 1, error: 2, u32: 3, i32: 4, u64: 5, i64: 6, timepoint: 7, duration: 8, u128: 9, i128: 10, u256: 11, i256: 12,
  bytes: 13, string: 14, symbol: 15, vec: 16, map: 17, address: 18, instance: 19, instanceKey: 20, nonceKey: 21, executableTag: 22
} as const

export const VOID: ScVal = { type: 1 }
/** The contract data key under which a contract's instance lives. */
export const INSTANCE_KEY: ScVal = { type: 20 }

const symbols = new Map<string, Extract<ScVal, { type: 15 }>>()
const SYMBOLS_MAX = 1024

/** A symbol value; the same object for the same short text. */
export const sym = (text: string): Extract<ScVal, { type: 15 }> => {
  const known = symbols.get(text)
  if (known !== undefined) return known
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
export const i128 = (value: bigint): ScVal => ({ type: 10, i128: { hi: BigInt.asIntN(64, value >> 64n), lo: BigInt.asUintN(64, value) } })

/** A map of symbol keys, which must be given in ascending order (as the host keeps them). */
export const structMap = (fields: Readonly<Record<string, ScVal>>): Extract<ScVal, { type: 17 }> => ({
  type: 17,
  map: Object.entries(fields).map(([key, val]): ScMapEntry => ({ key: sym(key), val }))
})

const wrongType = (wanted: string): HostError => HostError.of("Value", "UnexpectedType", `value is not ${wanted}`)

export const readI128 = (value: ScVal): bigint => {
  if (value.type !== 10) throw wrongType("an i128")
  return (value.i128.hi << 64n) + value.i128.lo
}

export const readU32 = (value: ScVal): number => {
  if (value.type !== 3) throw wrongType("a u32")
  return value.u32
}

export const readBool = (value: ScVal): boolean => {
  if (value.type !== 0) throw wrongType("a bool")
  return value.b
}

export const readVec = (value: ScVal): ReadonlyArray<ScVal> => {
  if (value.type !== 16 || value.vec === null) throw wrongType("a vector")
  return value.vec
}

export const readMap = (value: ScVal): ReadonlyArray<ScMapEntry> => {
  if (value.type !== 17 || value.map === null) throw wrongType("a map")
  return value.map
}

export const readBytes = (value: ScVal): Uint8Array => {
  if (value.type !== 13) throw wrongType("bytes")
  return value.bytes
}

/** An account's or a contract's address; muxed and other addresses are refused. */
export const readAddress = (value: ScVal): ScAddress => {
  if (value.type !== 18 || value.address.type > 1) throw wrongType("an address")
  return value.address
}

/** The text of a symbol, or undefined when the value is something else. */
export const symbolText = (value: ScVal | undefined): string | undefined => (value?.type === 15 ? textOf(value.sym) : undefined)

/** The field of a struct map by its symbol, or undefined. */
export const field = (map: ReadonlyArray<ScMapEntry>, name: string): ScVal | undefined =>
  map.find((entry) => symbolText(entry.key) === name)?.val

/** A cheap unique string of a value: its XDR, one character per byte. */
export const scvString = (value: ScVal): string => latin1(codec.ScVal.encode(value))

export type XdrString = xdr.XdrString
