// Random contract code that passes validation: code for a stack machine, generated from types, so that nearly all of it
// runs. Loops may be endless, memory requests unlimited, and host functions get values of every kind, including small
// values and handles of contracts.
import type { Dice } from "./Dice.ts"
import { leb, signed } from "../plugins/ledger-local/engine/wasm/assemble.ts"

export const I32 = 0x7f
export const I64 = 0x7e
export type Type = typeof I32 | typeof I64

export interface Callable {
  readonly index: number
  readonly parameters: ReadonlyArray<Type>
  readonly result: Type | undefined
}

export interface Surroundings {
  readonly locals: ReadonlyArray<Type>
  readonly globals: ReadonlyArray<Type>
  readonly callables: ReadonlyArray<Callable>
  readonly hasMemory: boolean
  readonly dataSegments: number
  /** Type index of a function without parameters that returns an i64, for calls through the table. */
  readonly indirectType: number | undefined
  readonly result: Type
}

const VOID = 0x40
const i32Binary = [0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f, 0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78]
const i64Binary = i32Binary.map((op) => op + 0x12)
const i32Compare = [0x46, 0x47, 0x48, 0x49, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f]
const i64Compare = [0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a]
/** Tags of the contract's values, small ones and handles. */
const TAGS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 64, 65, 68, 69, 72, 73, 74, 75, 76, 77, 78]

export class WasmProgram {
  readonly #dice: Dice
  readonly #around: Surroundings
  /** Number of blocks that code may branch out of; none takes a value. */
  #depth = 0
  #left: number

  constructor(dice: Dice, around: Surroundings, size: number) {
    this.#dice = dice
    this.#around = around
    this.#left = size
  }

  /** A body without its final `end`. */
  body(): Array<number> {
    const out: Array<number> = []
    while (this.#left > 0) out.push(...this.#statement(3))
    return [...out, ...this.#expression(this.#around.result, 2)]
  }

  #localOf(type: Type): number | undefined {
    const fitting = this.#around.locals.flatMap((each, i) => (each === type ? [i] : []))
    return fitting.length === 0 ? undefined : this.#dice.pick(fitting)
  }

  #constant(type: Type): Array<number> {
    if (type === I32) return [0x41, ...signed(BigInt.asIntN(32, this.#dice.edgy()))]
    if (this.#dice.onceIn(3)) return [0x42, ...signed(this.#dice.edgy())]
    // A value in a contract's format: a tag, and a small body or a handle.
    const high = this.#dice.onceIn(2) ? this.#dice.below(6) : this.#dice.below(70_000)
    const word = (BigInt(high) << 32n) | BigInt(this.#dice.pick(TAGS))
    return [0x42, ...signed(BigInt.asIntN(64, word))]
  }

  #expression(type: Type, depth: number): Array<number> {
    const dice = this.#dice
    if (depth <= 0 || dice.onceIn(3)) {
      const local = dice.onceIn(2) ? this.#localOf(type) : undefined
      return local === undefined ? this.#constant(type) : [0x20, ...leb(local)]
    }
    switch (dice.below(8)) {
      case 0:
        return this.#call(type, depth) ?? this.#constant(type)
      case 1:
        return this.#around.hasMemory
          ? [...this.#expression(I32, depth - 1), type === I32 ? 0x28 : 0x29, 0, ...leb(dice.below(64))]
          : this.#constant(type)
      case 2:
        return type === I32
          ? [...this.#expression(I64, depth - 1), 0xa7]
          : [...this.#expression(I32, depth - 1), dice.pick([0xac, 0xad])]
      case 3:
        return type === I32
          ? [...this.#expression(I64, depth - 1), ...this.#expression(I64, depth - 1), dice.pick(i64Compare)]
          : [...this.#expression(I32, depth - 1), 0xad]
      case 4:
        return [
          ...this.#expression(type, depth - 1),
          ...this.#expression(type, depth - 1),
          ...this.#expression(I32, depth - 1),
          0x1b
        ]
      case 5:
        return type === I32 && this.#around.hasMemory
          ? dice.onceIn(2)
            ? [0x3f, 0]
            : [...this.#expression(I32, depth - 1), 0x40, 0]
          : this.#constant(type)
      case 6:
        return type === I32
          ? [...this.#expression(I32, depth - 1), ...this.#expression(I32, depth - 1), dice.pick(i32Compare)]
          : this.#constant(type)
      default:
        return [
          ...this.#expression(type, depth - 1),
          ...this.#expression(type, depth - 1),
          dice.pick(type === I32 ? i32Binary : i64Binary)
        ]
    }
  }

  #call(type: Type, depth: number): Array<number> | undefined {
    const { callables, indirectType } = this.#around
    if (type === I64 && indirectType !== undefined && this.#dice.onceIn(6))
      return [...this.#expression(I32, depth - 1), 0x11, ...leb(indirectType), 0]
    const fitting = callables.filter(({ result }) => result === type)
    if (fitting.length === 0) return undefined
    const { index, parameters } = this.#dice.pick(fitting)
    return [...parameters.flatMap((each) => this.#expression(each, depth - 1)), 0x10, ...leb(index)]
  }

  #block(head: ReadonlyArray<number>, inside: () => Array<number>): Array<number> {
    this.#depth++
    const code = inside()
    this.#depth--
    return [...head, ...code, 0x0b]
  }

  #statements(depth: number): Array<number> {
    const out: Array<number> = []
    for (let left = 1 + this.#dice.below(3); left > 0; left--) out.push(...this.#statement(depth))
    return out
  }

  #branch(): Array<number> {
    if (this.#depth === 0) return [0x01]
    return [...this.#expression(I32, 1), 0x0d, ...leb(this.#dice.below(this.#depth))]
  }

  #bulk(): Array<number> {
    if (!this.#around.hasMemory) return [0x01]
    const three = [...this.#expression(I32, 1), ...this.#expression(I32, 1), ...this.#expression(I32, 1)]
    if (this.#around.dataSegments > 0 && this.#dice.onceIn(3)) return [...three, 0xfc, 8, 0, 0]
    return this.#dice.onceIn(2) ? [...three, 0xfc, 10, 0, 0] : [...three, 0xfc, 11, 0]
  }

  #statement(depth: number): Array<number> {
    this.#left--
    const dice = this.#dice
    const { locals, globals, hasMemory } = this.#around
    if (depth <= 0) return [0x01]
    switch (dice.below(12)) {
      case 0:
      case 1: {
        if (locals.length === 0) return [0x01]
        const at = dice.below(locals.length)
        return [...this.#expression(locals[at]!, depth), 0x21, ...leb(at)]
      }
      case 2: {
        if (globals.length === 0) return [0x01]
        const at = dice.below(globals.length)
        return [...this.#expression(globals[at]!, depth), 0x24, ...leb(at)]
      }
      case 3:
        return hasMemory
          ? [...this.#expression(I32, depth), ...this.#expression(I64, depth), 0x37, 0, ...leb(dice.below(64))]
          : [0x01]
      case 4:
        return this.#block([0x02, VOID], () => this.#statements(depth - 1))
      case 5:
        // Half of the loops repeat unconditionally.
        return this.#block([0x03, VOID], () => [
          ...this.#statements(depth - 1),
          ...(dice.onceIn(2) ? [0x0c, 0] : [...this.#expression(I32, 1), 0x0d, 0])
        ])
      case 6: {
        const otherwise = dice.onceIn(2)
        return [
          ...this.#expression(I32, depth),
          ...this.#block([0x04, VOID], () => [
            ...this.#statements(depth - 1),
            ...(otherwise ? [0x05, ...this.#statements(depth - 1)] : [])
          ])
        ]
      }
      case 7:
        return this.#branch()
      case 8:
        return this.#bulk()
      case 9:
        return [...this.#expression(this.#around.result, depth), 0x0f, ...this.#statement(depth - 1)]
      default: {
        const type = dice.onceIn(4) ? I32 : I64
        return [...(this.#call(type, depth) ?? this.#constant(type)), 0x1a]
      }
    }
  }
}
