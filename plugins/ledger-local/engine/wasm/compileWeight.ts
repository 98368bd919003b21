// The compile cost of a function. At every branch or join, a compiler processes every local variable and every value on
// the stack. A few kilobytes of branches over fifty thousand locals take it minutes and all memory, and no deadline can
// interrupt it. The network's interpreter has no such cost; compiler output stays far below the limit.
import { BinaryReader, Malformed } from "./BinaryReader.ts"
import { NO_RESULT, Op, readInstruction } from "./opcodes.ts"
import type { FunctionType } from "./readModule.ts"

/** What all functions of a module may weigh together: a tenth of a second, about. */
export const COMPILE_WEIGHT_MAX = 4_000_000

interface Signatures {
  /** All functions, the imported ones first. */
  readonly functions: ReadonlyArray<FunctionType>
  readonly types: ReadonlyArray<FunctionType>
}

const between = (op: number, from: number, to: number): boolean => op >= from && op <= to

/** Two values in, one out: comparisons and arithmetic. */
const isBinary = (op: number): boolean =>
  between(op, 0x46, 0x4f) || between(op, 0x51, 0x5a) || between(op, 0x6a, 0x78) || between(op, 0x7c, 0x8a)

const isStore = (op: number): boolean => op === 0x36 || op === 0x37 || between(op, 0x3a, 0x3e)

/** By how much an instruction without a type immediate changes the height of the stack. */
const changeOf = (op: number): number => {
  if (isBinary(op)) return -1
  if (isStore(op)) return -2
  switch (op) {
    case Op.localGet:
    case Op.globalGet:
    case Op.i32Const:
    case Op.i64Const:
    case Op.memorySize:
      return 1
    case Op.localSet:
    case Op.globalSet:
    case Op.drop:
    case Op.brIf:
    case Op.brTable:
    case Op.if:
      return -1
    case Op.select:
      return -2
    case Op.bulk:
      // Dropping a segment takes nothing; to count too little by that does not matter.
      return -3
    default:
      return 0
  }
}

const callChange = (type: FunctionType | undefined): number =>
  type === undefined ? 0 : type.results.length - type.parameters.length

/** The number behind an instruction, without moving on. */
const operandAt = (reader: BinaryReader): number => new BinaryReader(reader.bytes, reader.at, reader.end).u32()

const isJoin = (op: number): boolean => (op >= Op.block && op <= Op.else) || between(op, Op.end, Op.brIf)

interface Block {
  readonly height: number
  readonly results: number
}

/**
 * The weight of the code between the reader's ends, by the function's number of local variables, parameters included.
 * Throws `Malformed` as soon as it exceeds `most`.
 */
export const compileWeight = (
  reader: BinaryReader,
  locals: number,
  globals: number,
  { functions, types }: Signatures,
  most: number
): number => {
  const blocks: Array<Block> = [{ height: 0, results: 0 }]
  let [weight, height] = [locals, 0]
  while (!reader.done) {
    const op = reader.byte()
    const hasOperand =
      op === Op.call || op === Op.callIndirect || op === Op.brTable || op === Op.block || op === Op.loop
    const operand = hasOperand || op === Op.if ? operandAt(reader) : 0
    readInstruction(reader, op, globals)
    const { height: base } = blocks.at(-1) ?? { height: 0 }
    height = Math.max(base, height + changeOf(op))
    if (op === Op.call) height = Math.max(base, height + callChange(functions[operand]))
    if (op === Op.callIndirect) height = Math.max(base, height - 1 + callChange(types[operand]))
    if (isJoin(op)) weight += locals + height
    if (op === Op.brTable) weight += (operand + 1) * (locals + height)
    if (weight > most) throw new Malformed("its code asks too much of the compiler")
    if (op === Op.block || op === Op.loop || op === Op.if)
      blocks.push({ height, results: operand === NO_RESULT ? 0 : 1 })
    else if (op === Op.end) {
      const ended = blocks.pop()
      height = (ended?.height ?? 0) + (ended?.results ?? 0)
    } else if (op === Op.else || op === Op.br || op === Op.brTable || op === Op.return || op === Op.unreachable)
      height = base
  }
  return weight
}
