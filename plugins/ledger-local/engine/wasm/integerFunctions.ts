// Host functions on integers (`i.*`): building and taking apart 64, 128 and 256 bit values, and 256 bit arithmetic.
// Overflow and division by zero are `Error(Object, ArithDomain)`, or nothing for the checked forms.
import { ScType } from "../xdr/types.ts"
import { HostError } from "../host/HostError.ts"
import { bytes, i128, i64, u64, VOID } from "../xdr/ScVal.ts"
import type { ScVal } from "../xdr/Xdr.ts"
import { bigOf, i256, u128, u256 } from "./Values.ts"
import type { HostFunction, HostFunctions, Vm } from "./Vm.ts"

const typed = (vm: Vm, word: bigint, type: ScVal["type"]): bigint => {
  const value = vm.value(word)
  if (value.type !== type) throw HostError.of("Value", "UnexpectedType", "integer of another type")
  return bigOf(value)
}

const lane =
  (type: ScVal["type"], shift: bigint): HostFunction =>
  (vm, x) =>
    BigInt.asIntN(64, typed(vm, x, type) >> shift)

const join = (...parts: ReadonlyArray<bigint>): bigint =>
  parts.reduce((sum, part) => (sum << 64n) + BigInt.asUintN(64, part), 0n)

const arithmetic = (): HostError => HostError.of("Object", "ArithDomain", "256-bit arithmetic overflow")

interface Width {
  readonly type: 11 | 12
  readonly min: bigint
  readonly max: bigint
  readonly make: (value: bigint) => ScVal
}

const U256: Width = { type: 11, min: 0n, max: (1n << 256n) - 1n, make: u256 }
const I256: Width = { type: 12, min: -(1n << 255n), max: (1n << 255n) - 1n, make: i256 }

type Operation = (a: bigint, b: bigint) => bigint | undefined

const binary =
  (width: Width, operation: Operation, checked = false): HostFunction =>
  (vm, x, y) => {
    const result = operation(typed(vm, x, width.type), typed(vm, y, width.type))
    if (result !== undefined && result >= width.min && result <= width.max) return width.make(result)
    if (checked) return VOID
    throw arithmetic()
  }

const withU32 =
  (width: Width, operation: Operation, checked = false): HostFunction =>
  (vm, x, n) => {
    const result = operation(typed(vm, x, width.type), BigInt(vm.u32(n)))
    if (result !== undefined && result >= width.min && result <= width.max) return width.make(result)
    if (checked) return VOID
    throw arithmetic()
  }

const add: Operation = (a, b) => a + b
const subtract: Operation = (a, b) => a - b
const multiply: Operation = (a, b) => a * b
const divide: Operation = (a, b) => (b === 0n ? undefined : a / b)
const remainder: Operation = (a, b) => {
  if (b === 0n) return undefined
  const rest = a % b
  return rest < 0n ? rest + (b < 0n ? -b : b) : rest
}
/** Stops as soon as the result cannot fit, so that a large exponent costs nothing. */
const power: Operation = (base, exponent) => {
  if (base === 0n || base === 1n) return exponent === 0n ? 1n : base
  if (base === -1n) return exponent % 2n === 0n ? 1n : -1n
  if (exponent > 256n) return undefined
  return base ** exponent
}
const shiftLeft =
  (width: Width): Operation =>
  (a, n) =>
    n >= 256n ? undefined : width.type === ScType.u256 ? BigInt.asUintN(256, a << n) : BigInt.asIntN(256, a << n)
const shiftRight: Operation = (a, n) => (n >= 256n ? undefined : a >> n)

const fromBytes =
  (width: Width): HostFunction =>
  (vm, b) => {
    const raw = vm.sized(b, 32).reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n)
    return width.make(width.type === ScType.u256 ? raw : BigInt.asIntN(256, raw))
  }

const toBytes =
  (width: Width): HostFunction =>
  (vm, x) => {
    const raw = BigInt.asUintN(256, typed(vm, x, width.type))
    return bytes(Uint8Array.from({ length: 32 }, (_, i) => Number((raw >> BigInt(8 * (31 - i))) & 255n)))
  }

export const integerFunctions: HostFunctions = {
  "i._": (_, n) => u64(BigInt.asUintN(64, n)), // obj_from_u64
  "i.0": lane(5, 0n), // obj_to_u64
  "i.1": (_, n) => i64(BigInt.asIntN(64, n)), // obj_from_i64
  "i.2": lane(6, 0n), // obj_to_i64
  "i.3": (_, hi, lo) => u128(join(hi, lo)), // obj_from_u128_pieces
  "i.4": lane(9, 0n), // obj_to_u128_lo64
  "i.5": lane(9, 64n), // obj_to_u128_hi64
  "i.6": (_, hi, lo) => i128(BigInt.asIntN(128, join(hi, lo))), // obj_from_i128_pieces
  "i.7": lane(10, 0n), // obj_to_i128_lo64
  "i.8": lane(10, 64n), // obj_to_i128_hi64
  "i.9": (_, a, b, c, d) => u256(join(a, b, c, d)), // obj_from_u256_pieces
  "i.a": fromBytes(U256),
  "i.b": toBytes(U256),
  "i.c": lane(11, 192n),
  "i.d": lane(11, 128n),
  "i.e": lane(11, 64n),
  "i.f": lane(11, 0n),
  "i.g": (_, a, b, c, d) => i256(BigInt.asIntN(256, join(a, b, c, d))), // obj_from_i256_pieces
  "i.h": fromBytes(I256),
  "i.i": toBytes(I256),
  "i.j": lane(12, 192n),
  "i.k": lane(12, 128n),
  "i.l": lane(12, 64n),
  "i.m": lane(12, 0n),
  "i.n": binary(U256, add),
  "i.o": binary(U256, subtract),
  "i.p": binary(U256, multiply),
  "i.q": binary(U256, divide),
  "i.r": binary(U256, remainder),
  "i.s": withU32(U256, power),
  "i.t": withU32(U256, shiftLeft(U256)),
  "i.u": withU32(U256, shiftRight),
  "i.v": binary(I256, add),
  "i.w": binary(I256, subtract),
  "i.x": binary(I256, multiply),
  "i.y": binary(I256, divide),
  "i.z": binary(I256, remainder),
  "i.A": withU32(I256, power),
  "i.B": withU32(I256, shiftLeft(I256)),
  "i.C": withU32(I256, shiftRight),
  "i.D": (_, n) => ({ type: 7, timepoint: BigInt.asUintN(64, n) }), // timepoint_obj_from_u64
  "i.E": lane(7, 0n),
  "i.F": (_, n) => ({ type: 8, duration: BigInt.asUintN(64, n) }), // duration_obj_from_u64
  "i.G": lane(8, 0n),
  "i.H": binary(U256, add, true),
  "i.I": binary(U256, subtract, true),
  "i.J": binary(U256, multiply, true),
  "i.K": withU32(U256, power, true),
  "i.L": binary(I256, add, true),
  "i.M": binary(I256, subtract, true),
  "i.N": binary(I256, multiply, true),
  "i.O": withU32(I256, power, true)
}
