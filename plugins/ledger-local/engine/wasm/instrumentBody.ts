// Puts fuel charges into a function, so that all code is paid for and every run costs as much as in the network's
// interpreter. Each straight stretch of code (from a function's, loop's or `if` branch's start to the next such place)
// is paid in one charge; running out is a trap. Instructions that move many bytes also pay by length. Only instructions
// on the list of `opcodes.ts` pass, and code that refers to the added fuel globals is refused. The engine validates the
// types in the result.
import { BinaryReader, leb, Malformed, signedLeb } from "./BinaryReader.ts"
import { MEMORY_PAGES_MAX } from "./readModule.ts"
import { Bulk, NO_RESULT, Op, readInstruction, ValueType } from "./opcodes.ts"

/** Values that one unit of fuel moves when a function is entered. */
const LOCALS_PER_FUEL = 8
const BLOCK = 1
/** Bytes that a bulk instruction moves for one unit of fuel, as a power of two, and entries of a table. */
const BYTES_SHIFT = 6
const ENTRIES_SHIFT = 3
/** Fuel for each page that `memory.grow` asks for, as a power of two: the network's charge for a page of bytes. */
const PAGE_SHIFT = 11

/** The globals added behind the module's own. */
interface Tank {
  readonly fuel: number
  /** How often the memory may still be asked to grow; that costs the engine more than the network takes for it. */
  readonly grows: number
}

/** Takes what `amount` leaves on the stack from a global; below zero is a trap, after `last`. */
const take = (global: number, amount: ReadonlyArray<number>, last: ReadonlyArray<number> = []): Array<number> => {
  const index = leb(global)
  const left = [Op.globalGet, ...index]
  const isBelow = [...left, Op.i32Const, 0, Op.i32LtS]
  const trap = [Op.if, NO_RESULT, ...last, Op.unreachable, Op.end]
  return [...left, ...amount, Op.i32Sub, Op.globalSet, ...index, ...isBelow, ...trap]
}

const MINUS_ONE = [Op.i32Const, 0x7f]
const constant = (value: number): Array<number> => [Op.i32Const, ...signedLeb(value)]

/** Charges for a length on top of the stack, which stays there. */
const takeLength = ({ fuel }: Tank, local: number, shift: number): Array<number> => {
  const length = leb(local)
  return [Op.localTee, ...length, ...take(fuel, [Op.localGet, ...length, ...constant(shift), Op.i32ShrU])]
}

/** The same for pages; more than there can be cost nothing, because nothing happens. */
const takePages = ({ fuel, grows }: Tank, local: number): Array<number> => {
  const pages = [Op.localGet, ...leb(local)]
  const price = [...pages, ...constant(PAGE_SHIFT), Op.i32Shl]
  const isTooMany = [...pages, ...constant(MEMORY_PAGES_MAX), Op.i32GtU]
  return [
    Op.localTee,
    ...leb(local),
    ...take(fuel, [...constant(0), ...price, ...isTooMany, Op.select]),
    // Too many growths empty the fuel.
    ...take(grows, constant(1), [...MINUS_ONE, Op.globalSet, ...leb(fuel)])
  ]
}

/** The charge of an instruction that depends on the number on top of the stack. */
const lengthCharge = (tank: Tank, local: number, op: number, sub: number): ReadonlyArray<number> | undefined => {
  if (op === Op.memoryGrow) return takePages(tank, local)
  if (op !== Op.bulk || sub === Bulk.dataDrop || sub === Bulk.elemDrop) return undefined
  return takeLength(tank, local, sub === Bulk.tableInit || sub === Bulk.tableCopy ? ENTRIES_SHIFT : BYTES_SHIFT)
}

/** Code that is paid for together. */
interface Stretch {
  /** Position in the output for its charge. */
  readonly chunk: number
  fuel: number
}

interface Block {
  /** What code in this block is charged to. */
  stretch: Stretch
  /** False when the block itself can never be reached; then nothing in it costs anything. */
  readonly isReachable: boolean
}

/** Follows blocks, and which code can be reached, the way the network's interpreter does when it counts fuel. */
class Charges {
  readonly all: Array<Stretch> = []
  readonly #blocks: Array<Block> = []
  #isReachable = true

  constructor(first: Stretch) {
    this.all.push(first)
    this.#blocks.push({ stretch: first, isReachable: true })
  }

  get isOpen(): boolean {
    return this.#blocks.length > 0
  }

  get #top(): Block {
    const block = this.#blocks.at(-1)
    if (block === undefined) throw new Malformed("code behind the end of a function")
    return block
  }

  #pay(fuel: number): void {
    if (this.#isReachable) this.#top.stretch.fuel += fuel
  }

  #open(stretch: Stretch): void {
    const isReachable = this.#isReachable
    this.#blocks.push({ stretch, isReachable })
  }

  #stretch(chunk: number): Stretch {
    const stretch = { chunk, fuel: BLOCK }
    this.all.push(stretch)
    return stretch
  }

  /** `chunk` is the position for a charge of the following code; `depth` the block that a `br_if` leaves. */
  follow(op: number, fuel: number, chunk: number, depth: number): void {
    switch (op) {
      case Op.block:
        return this.#open(this.#top.stretch)
      case Op.loop:
        return this.#open(this.#stretch(chunk))
      case Op.if:
        this.#pay(fuel)
        return this.#open(this.#stretch(chunk))
      case Op.else:
        return this.#else(chunk)
      case Op.end:
        return this.#end()
      case Op.brIf:
        // Leaving the function by a condition is free.
        return this.#pay(depth === this.#blocks.length - 1 ? 0 : fuel)
      default:
        this.#pay(fuel)
        if (op === Op.br || op === Op.brTable || op === Op.return || op === Op.unreachable) this.#isReachable = false
    }
  }

  #else(chunk: number): void {
    const { isReachable } = this.#top
    this.#blocks.pop()
    if (isReachable && this.#isReachable) this.#top.stretch.fuel += 1
    this.#blocks.push({ stretch: this.#stretch(chunk), isReachable })
    this.#isReachable = isReachable
  }

  #end(): void {
    if (this.#blocks.length === 1) this.#pay(1)
    else this.#isReachable = this.#top.isReachable
    this.#blocks.pop()
  }
}

const startsStretch = (op: number): boolean => op === Op.loop || op === Op.if || op === Op.else

interface Locals {
  readonly groups: number
  readonly locals: number
  readonly bytes: Uint8Array
}

const readLocals = (reader: BinaryReader): Locals => {
  const groups = reader.u32()
  const from = reader.at
  let locals = 0
  for (let i = 0; i < groups; i++) {
    locals += reader.u32()
    const type = reader.byte()
    if (type !== ValueType.i32 && type !== ValueType.i64) throw new Malformed("local variables are integers")
  }
  return { groups, locals, bytes: reader.bytes.subarray(from, reader.at) }
}

/** The number behind an instruction, without moving on. */
const peek = (reader: BinaryReader): number => new BinaryReader(reader.bytes, reader.at, reader.end).u32()

interface InstrumentedBody {
  readonly chunks: ReadonlyArray<Uint8Array>
  readonly instructions: number
  /** Local variables, parameters among them. */
  readonly locals: number
  /** Start of the code after the declarations of the locals. */
  readonly from: number
}

/**
 * The body (locals and expression) between the reader's ends of a function with `parameters` parameters, with its
 * charges against the globals of the `tank`, which follow the module's own.
 */
export const instrumentBody = (reader: BinaryReader, tank: Tank, parameters: number): InstrumentedBody => {
  const { groups, locals, bytes: declared } = readLocals(reader)
  const lengthLocal = parameters + locals
  // The number of groups, the groups, one more when a length must be kept, the function's own charge, the code.
  const chunks: Array<Uint8Array> = [new Uint8Array(), declared, new Uint8Array(), new Uint8Array()]
  const charges = new Charges({ chunk: 3, fuel: BLOCK + Math.floor(lengthLocal / LOCALS_PER_FUEL) })
  let needsLength = false
  const start = reader.at
  let from = start
  let instructions = 0
  const cut = (to: number, added: ReadonlyArray<number>): void => {
    chunks.push(reader.bytes.subarray(from, to), Uint8Array.from(added))
    from = to
  }
  while (!reader.done) {
    const at = reader.at
    const op = reader.byte()
    const operand = op === Op.brIf || op === Op.bulk ? peek(reader) : 0
    const fuel = readInstruction(reader, op, tank.fuel)
    instructions++
    const charge = lengthCharge(tank, lengthLocal, op, operand)
    if (charge !== undefined) {
      needsLength = true
      cut(at, charge)
    }
    if (startsStretch(op)) cut(reader.at, [])
    charges.follow(op, fuel, chunks.length - 1, operand)
  }
  if (charges.isOpen) throw new Malformed("a function has no end")
  chunks.push(reader.bytes.subarray(from, reader.at))
  chunks[0] = Uint8Array.from(leb(groups + (needsLength ? 1 : 0)))
  if (needsLength) chunks[2] = Uint8Array.from([1, ValueType.i32])
  for (const { chunk, fuel } of charges.all) chunks[chunk] = Uint8Array.from(take(tank.fuel, constant(fuel)))
  return { chunks, instructions, locals: lengthLocal, from: start }
}
