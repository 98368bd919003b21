// The contract's view of values: 64-bit words with a tag in the low byte. Small values fit in the word, others are
// handles into a table of the running frame, so that a contract can only refer to values that it received or created. A
// word with an unknown tag or a handle out of range is refused as the host does.
import { AddressType, ScErrorType, ScType } from "../xdr/types.ts"
import { HostError } from "../host/HostError.ts"
import type { InstructionMeter } from "../host/InstructionMeter.ts"
import { SMALL_SYMBOL_MAX } from "../xdr/valueSizes.ts"
import { bool, i128, i64, sym, u32, u64, VOID } from "../xdr/ScVal.ts"
import { latin1, type ScVal } from "../xdr/Xdr.ts"

const SYMBOL_CHARACTERS = "_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const U56 = 1n << 56n
const I55 = 1n << 55n

export const Tag = {
  false: 0,
  true: 1,
  void: 2,
  error: 3,
  u32: 4,
  i32: 5,
  u64: 6,
  i64: 7,
  timepoint: 8,
  duration: 9,
  u128: 10,
  i128: 11,
  u256: 12,
  i256: 13,
  symbol: 14,
  u64Object: 64,
  i64Object: 65,
  timepointObject: 66,
  durationObject: 67,
  u128Object: 68,
  i128Object: 69,
  u256Object: 70,
  i256Object: 71,
  bytesObject: 72,
  stringObject: 73,
  symbolObject: 74,
  vecObject: 75,
  mapObject: 76,
  addressObject: 77,
  muxedAddressObject: 78,
  executableTagObject: 79
} as const

export const isObjectWord = (word: bigint): boolean => Number(BigInt.asUintN(8, word)) >= Tag.u64Object

const VOID_WORD = 2n

const word = (body: bigint, tag: number): bigint => BigInt.asIntN(64, (body << 8n) | BigInt(tag))
const major = (high: number, minor: number, tag: number): bigint =>
  BigInt.asIntN(64, (BigInt(high) << 32n) | (BigInt(minor) << 8n) | BigInt(tag))

export const u32Word = (value: number): bigint => major(value, 0, Tag.u32)
export const boolWord = (value: boolean): bigint => (value ? 1n : 0n)

const join = (parts: ReadonlyArray<bigint>): bigint =>
  parts.reduce((sum, part) => (sum << 64n) + BigInt.asUintN(64, part), 0n)

/** The bigint of any integer value of 64 bits or more. */
export const bigOf = (value: ScVal): bigint => {
  switch (value.type) {
    case ScType.u64:
      return value.u64
    case ScType.i64:
      return value.i64
    case ScType.timepoint:
      return value.timepoint
    case ScType.duration:
      return value.duration
    case ScType.u128:
      return join([value.u128.hi, value.u128.lo])
    case ScType.i128:
      return BigInt.asIntN(128, join([value.i128.hi, value.i128.lo]))
    case ScType.u256:
      return join([value.u256.hiHi, value.u256.hiLo, value.u256.loHi, value.u256.loLo])
    case ScType.i256:
      return BigInt.asIntN(256, join([value.i256.hiHi, value.i256.hiLo, value.i256.loHi, value.i256.loLo]))
    default:
      throw HostError.of("Value", "UnexpectedType", "value is not a large integer")
  }
}

const lane = (value: bigint, shift: bigint): bigint => BigInt.asUintN(64, value >> shift)

export const u128 = (value: bigint): ScVal => ({ type: 9, u128: { hi: lane(value, 64n), lo: lane(value, 0n) } })
export const u256 = (value: bigint): ScVal => ({
  type: 11,
  u256: { hiHi: lane(value, 192n), hiLo: lane(value, 128n), loHi: lane(value, 64n), loLo: lane(value, 0n) }
})
export const i256 = (value: bigint): ScVal => ({
  type: 12,
  i256: {
    hiHi: BigInt.asIntN(64, value >> 192n),
    hiLo: lane(value, 128n),
    loHi: lane(value, 64n),
    loLo: lane(value, 0n)
  }
})

/** Approximate bytes of a value without its children, which were counted at their creation. */
const shallowBytes = (value: ScVal): number => {
  switch (value.type) {
    case ScType.bytes:
      return 64 + value.bytes.length
    case ScType.string:
      return 64 + value.str.bytes.length
    case ScType.vec:
      return 64 + 8 * (value.vec?.length ?? 0)
    case ScType.map:
      return 64 + 16 * (value.map?.length ?? 0)
    default:
      return 64
  }
}

/** The values one frame has handles of. */
export class Values {
  readonly #objects: Array<ScVal> = []
  readonly #meter: InstructionMeter

  constructor(meter: InstructionMeter) {
    this.#meter = meter
  }

  #object(tag: number, value: ScVal): bigint {
    this.#meter.takeMemory(shallowBytes(value))
    this.#objects.push(value)
    return major(this.#objects.length - 1, 0, tag)
  }

  #number(value: ScVal, small: number, large: number, signed: boolean): bigint {
    const n = bigOf(value)
    const fits = signed ? n >= -I55 && n < I55 : n < U56
    return fits ? word(BigInt.asUintN(56, n), small) : this.#object(large, value)
  }

  #symbol(value: Extract<ScVal, { type: 15 }>): bigint {
    const { bytes } = value.sym
    if (bytes.length > SMALL_SYMBOL_MAX) return this.#object(Tag.symbolObject, value)
    let body = 0n
    for (const character of latin1(bytes)) body = (body << 6n) | BigInt(SYMBOL_CHARACTERS.indexOf(character) + 1)
    return word(body, Tag.symbol)
  }

  /** The word of a value, making a handle when it does not fit. */
  word(value: ScVal): bigint {
    switch (value.type) {
      case ScType.bool:
        return boolWord(value.b)
      case ScType.void:
        return VOID_WORD
      case ScType.error:
        return major(
          value.error.type === ScErrorType.contract ? value.error.contractCode : value.error.code,
          value.error.type,
          Tag.error
        )
      case ScType.u32:
        return u32Word(value.u32)
      case ScType.i32:
        return major(value.i32 >>> 0, 0, Tag.i32)
      case ScType.u64:
        return this.#number(value, Tag.u64, Tag.u64Object, false)
      case ScType.i64:
        return this.#number(value, Tag.i64, Tag.i64Object, true)
      case ScType.timepoint:
        return this.#number(value, Tag.timepoint, Tag.timepointObject, false)
      case ScType.duration:
        return this.#number(value, Tag.duration, Tag.durationObject, false)
      case ScType.u128:
        return this.#number(value, Tag.u128, Tag.u128Object, false)
      case ScType.i128:
        return this.#number(value, Tag.i128, Tag.i128Object, true)
      case ScType.u256:
        return this.#number(value, Tag.u256, Tag.u256Object, false)
      case ScType.i256:
        return this.#number(value, Tag.i256, Tag.i256Object, true)
      case ScType.bytes:
        return this.#object(Tag.bytesObject, value)
      case ScType.string:
        return this.#object(Tag.stringObject, value)
      case ScType.executableTag:
        return this.#object(Tag.executableTagObject, value)
      case ScType.symbol:
        return this.#symbol(value)
      case ScType.vec:
        return this.#object(Tag.vecObject, value)
      case ScType.map:
        return this.#object(Tag.mapObject, value)
      case ScType.address:
        return this.#object(
          value.address.type === AddressType.muxedAccount ? Tag.muxedAddressObject : Tag.addressObject,
          value
        )
      default:
        throw HostError.of("Value", "InvalidInput", "value is reserved for ledger keys")
    }
  }

  /** The value of a word. */
  value(raw: bigint): ScVal {
    const bits = BigInt.asUintN(64, raw)
    const tag = Number(bits & 0xffn)
    const body = bits >> 8n
    const high = Number(bits >> 32n)
    switch (tag) {
      case Tag.false:
        return bool(false)
      case Tag.true:
        return bool(true)
      case Tag.void:
        return VOID
      case Tag.error: {
        const type = Number((bits >> 8n) & 0xff_ffffn)
        if (type > 9 || (type !== 0 && high > 9)) throw HostError.of("Value", "InvalidInput", "unknown error value")
        return {
          type: 2,
          error: (type === 0 ? { type: 0, contractCode: high } : { type, code: high }) as Extract<
            ScVal,
            { type: 2 }
          >["error"]
        }
      }
      case Tag.u32:
        return u32(high)
      case Tag.i32:
        return { type: 4, i32: high | 0 }
      case Tag.u64:
        return u64(body)
      case Tag.i64:
        return i64(BigInt.asIntN(56, body))
      case Tag.timepoint:
        return { type: 7, timepoint: body }
      case Tag.duration:
        return { type: 8, duration: body }
      case Tag.u128:
        return u128(body)
      case Tag.i128:
        return i128(BigInt.asIntN(56, body))
      case Tag.u256:
        return u256(body)
      case Tag.i256:
        return i256(BigInt.asIntN(56, body))
      case Tag.symbol:
        return sym(smallSymbol(body))
      default: {
        const object = tag >= Tag.u64Object && tag <= Tag.executableTagObject ? this.#objects[high] : undefined
        if (object === undefined) throw HostError.of("Value", "InvalidInput", "unknown object reference")
        return object
      }
    }
  }
}

const smallSymbol = (body: bigint): string => {
  let text = ""
  for (let rest = body; rest > 0n; rest >>= 6n) text = (SYMBOL_CHARACTERS[Number(rest & 63n) - 1] ?? "") + text
  return text
}
