// The instructions that a contract may use: those of the first WebAssembly without floating point, plus sign extension
// and bulk memory, as the network configures its interpreter. Everything else is refused at upload, even if the
// JavaScript engine accepts it, so an unknown instruction can never be misread as another. Each costs fuel as on the
// network: one for most, more for memory, globals or a call.
import { type BinaryReader, Malformed } from "./BinaryReader.ts"

export const Op = {
  unreachable: 0x00,
  nop: 0x01,
  block: 0x02,
  loop: 0x03,
  if: 0x04,
  else: 0x05,
  end: 0x0b,
  br: 0x0c,
  brIf: 0x0d,
  brTable: 0x0e,
  return: 0x0f,
  call: 0x10,
  callIndirect: 0x11,
  drop: 0x1a,
  select: 0x1b,
  localGet: 0x20,
  localSet: 0x21,
  localTee: 0x22,
  globalGet: 0x23,
  globalSet: 0x24,
  memorySize: 0x3f,
  memoryGrow: 0x40,
  i32Const: 0x41,
  i64Const: 0x42,
  i32LtS: 0x48,
  i32GtU: 0x4b,
  i32Sub: 0x6b,
  i32Shl: 0x74,
  i32ShrU: 0x76,
  bulk: 0xfc
} as const

/** The bulk instructions, after their prefix. */
export const Bulk = {
  memoryInit: 8,
  dataDrop: 9,
  memoryCopy: 10,
  memoryFill: 11,
  tableInit: 12,
  elemDrop: 13,
  tableCopy: 14
} as const

export const ValueType = { i32: 0x7f, i64: 0x7e } as const
export const NO_RESULT = 0x40

const BASE = 1
const ENTITY = 3
const LOAD = 2
const STORE = 1
const CALL = 67

const between = (op: number, from: number, to: number): boolean => op >= from && op <= to

const isLoad = (op: number): boolean => op === 0x28 || op === 0x29 || between(op, 0x2c, 0x35)
const isStore = (op: number): boolean => op === 0x36 || op === 0x37 || between(op, 0x3a, 0x3e)
/** Comparisons, arithmetic, conversions between integers, and sign extension. */
const isPlain = (op: number): boolean =>
  between(op, 0x45, 0x5a) ||
  between(op, 0x67, 0x8a) ||
  op === 0xa7 ||
  op === 0xac ||
  op === 0xad ||
  between(op, 0xc0, 0xc4)

/** The largest alignment there is, as a power of two; larger ones are flags of later versions. */
const ALIGNMENT_MAX = 3

const readMemoryArgument = (reader: BinaryReader): void => {
  if (reader.u32() > ALIGNMENT_MAX) throw new Malformed("malformed memory alignment")
  reader.u32()
}

const readZero = (reader: BinaryReader): void => {
  if (reader.byte() !== 0) throw new Malformed("only the first memory and table can be used")
}

const readBlockType = (reader: BinaryReader): void => {
  const type = reader.byte()
  if (type !== NO_RESULT && type !== ValueType.i32 && type !== ValueType.i64)
    throw new Malformed("a block has one integer as its result, or nothing")
}

const readBulk = (reader: BinaryReader): void => {
  const sub = reader.u32()
  switch (sub) {
    case Bulk.memoryInit:
    case Bulk.tableInit:
      reader.u32()
      return readZero(reader)
    case Bulk.dataDrop:
    case Bulk.elemDrop:
      reader.u32()
      return
    case Bulk.memoryCopy:
    case Bulk.tableCopy:
      readZero(reader)
      return readZero(reader)
    case Bulk.memoryFill:
      return readZero(reader)
    default:
      throw new Malformed(`instruction 0xfc ${sub} is not allowed`)
  }
}

/**
 * Skips the immediates of the instruction `op` in a module with `globals` globals; returns the fuel it costs. Throws
 * `Malformed` for instructions that are not on the list.
 */
export const readInstruction = (reader: BinaryReader, op: number, globals: number): number => {
  if (isPlain(op)) return BASE
  if (isLoad(op) || isStore(op)) {
    readMemoryArgument(reader)
    return isLoad(op) ? LOAD : STORE
  }
  switch (op) {
    case Op.nop:
    case Op.else:
    case Op.end:
      return 0
    case Op.unreachable:
    case Op.return:
    case Op.drop:
    case Op.select:
      return BASE
    case Op.block:
    case Op.loop:
      readBlockType(reader)
      return 0
    case Op.if:
      readBlockType(reader)
      return BASE
    case Op.br:
    case Op.brIf:
    case Op.localGet:
    case Op.localSet:
    case Op.localTee:
      reader.u32()
      return BASE
    case Op.brTable:
      for (let left = reader.u32(); left >= 0; left--) reader.u32()
      return BASE
    case Op.call:
      reader.u32()
      return CALL
    case Op.callIndirect:
      reader.u32()
      readZero(reader)
      return CALL
    case Op.globalGet:
    case Op.globalSet:
      if (reader.u32() >= globals) throw new Malformed("unknown global")
      return ENTITY
    case Op.memorySize:
    case Op.memoryGrow:
      readZero(reader)
      return ENTITY
    case Op.i32Const:
    case Op.i64Const:
      reader.skipLeb()
      return BASE
    case Op.bulk:
      readBulk(reader)
      return ENTITY
    default:
      throw new Malformed(`instruction 0x${op.toString(16)} is not allowed`)
  }
}
