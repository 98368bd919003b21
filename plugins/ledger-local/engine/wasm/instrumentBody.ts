// Puts a fuel charge at the start of a function and of each of its loops, so that no code runs on without paying: the
// charge is the number of instructions up to the next charge, and running out is a trap. Instructions that work on many
// bytes at once pay for each of them. Floating point is refused, as the network refuses it, and so is naming the global
// that holds the fuel, which is no part of the module as it was uploaded. Everything else about the code is left to the
// engine's own validation.
import { BinaryReader, leb, Malformed, signedLeb } from "./BinaryReader.ts"

const Op = {
  unreachable: 0x00,
  block: 0x02,
  loop: 0x03,
  if: 0x04,
  end: 0x0b,
  globalGet: 0x23,
  globalSet: 0x24,
  i32Const: 0x41,
  i32LtS: 0x48,
  i32Sub: 0x6b,
  voidBlock: 0x40,
  i32: 0x7f,
  localTee: 0x22,
  localGet: 0x20,
  i32ShrU: 0x76,
  memoryGrow: 0x40,
  bulk: 0xfc
} as const

/** A memory that grows costs the engine more than an instruction, also when it grows by nothing. */
const GROW_INSTRUCTIONS = 500
/** Bytes or entries that a bulk instruction moves for one instruction's fuel, as a power of two. */
const BULK_SHIFT = 3
/**
 * `data.drop` and `elem.drop` move nothing, and `table.size` only asks; all other bulk instructions have a length on
 * top of the stack.
 */
const isLengthy = (sub: number): boolean => sub !== 9 && sub !== 13 && sub !== 16

const isFloat = (op: number): boolean =>
  op === 0x2a ||
  op === 0x2b ||
  op === 0x38 ||
  op === 0x39 ||
  op === 0x43 ||
  op === 0x44 ||
  (op >= 0x5b && op <= 0x66) ||
  (op >= 0x8b && op <= 0xa6) ||
  (op >= 0xa8 && op <= 0xab) ||
  (op >= 0xae && op <= 0xbf)

/** Passes over the immediates of the instruction `op`. */
const skipImmediates = (reader: BinaryReader, op: number, globals: number): void => {
  if (isFloat(op)) throw new Malformed("floating point is not allowed")
  if (op >= 0x28 && op <= 0x3e) {
    reader.u32()
    reader.u32()
    return
  }
  switch (op) {
    case Op.block:
    case Op.loop:
    case Op.if:
    case 0x41:
    case 0x42:
      return reader.skipLeb()
    case 0x0c:
    case 0x0d:
    case 0x10:
    case 0x20:
    case 0x21:
    case 0x22:
    case 0x25:
    case 0x26:
    case 0xd2:
      reader.u32()
      return
    case Op.globalGet:
    case Op.globalSet:
      if (reader.u32() >= globals) throw new Malformed("unknown global")
      return
    case 0x0e: {
      const count = reader.u32()
      for (let i = 0; i <= count; i++) reader.u32()
      return
    }
    case 0x11:
      reader.u32()
      reader.u32()
      return
    case 0x1c:
      reader.skip(reader.u32())
      return
    case 0x3f:
    case 0x40:
    case 0xd0:
      return reader.skip(1)
    case 0xfc: {
      const sub = reader.u32()
      if (sub < 8) throw new Malformed("floating point is not allowed")
      if (sub === 8 || sub === 10 || sub === 12 || sub === 14) reader.u32()
      if (sub <= 17) reader.u32()
      else throw new Malformed("unknown instruction")
      return
    }
    case 0xfd:
    case 0xfe:
      throw new Malformed("vector and atomic instructions are not allowed")
  }
}

interface Segment {
  /** Position in the output where its charge goes. */
  readonly chunk: number
  instructions: number
}

/** Takes from the fuel what `amount` leaves on the stack. */
const chargeOf = (fuelGlobal: number, amount: ReadonlyArray<number>): Array<number> => {
  const fuel = leb(fuelGlobal)
  return [
    Op.globalGet,
    ...fuel,
    ...amount,
    Op.i32Sub,
    Op.globalSet,
    ...fuel,
    Op.globalGet,
    ...fuel,
    Op.i32Const,
    0,
    Op.i32LtS,
    Op.if,
    Op.voidBlock,
    Op.unreachable,
    Op.end
  ]
}

const charge = (fuelGlobal: number, instructions: number): Array<number> =>
  chargeOf(fuelGlobal, [Op.i32Const, ...signedLeb(instructions)])

/** Charges for the length on top of the stack, which stays there. */
const chargeLength = (fuelGlobal: number, local: number): Array<number> => [
  Op.localTee,
  ...leb(local),
  ...chargeOf(fuelGlobal, [Op.localGet, ...leb(local), Op.i32Const, BULK_SHIFT, Op.i32ShrU])
]

export interface InstrumentedBody {
  readonly chunks: ReadonlyArray<Uint8Array>
  readonly instructions: number
}

/**
 * The body (locals and expression) between the reader's ends of a function with so many `parameters`, with charges
 * against the global `fuelGlobal`, the first after the module's own.
 */
export const instrumentBody = (reader: BinaryReader, fuelGlobal: number, parameters: number): InstrumentedBody => {
  const groups = reader.u32()
  const groupsFrom = reader.at
  let locals = 0
  for (let i = 0; i < groups; i++) {
    locals += reader.u32()
    const type = reader.byte()
    if (type === 0x7d || type === 0x7c || type === 0x7b) throw new Malformed("floating point is not allowed")
  }
  const lengthLocal = parameters + locals
  const declared = reader.bytes.subarray(groupsFrom, reader.at)
  const chunks: Array<Uint8Array> = [new Uint8Array(), declared, new Uint8Array(), new Uint8Array()]
  let needsLength = false
  const segments: Array<Segment> = [{ chunk: 3, instructions: 0 }]
  const closed: Array<Segment> = []
  const blocks: Array<boolean> = []
  let from = reader.at
  let total = 0
  while (!reader.done) {
    const at = reader.at
    const op = reader.byte()
    const isBulk = op === Op.bulk && isLengthy(reader.bytes[reader.at] ?? 0)
    skipImmediates(reader, op, fuelGlobal)
    total++
    segments.at(-1)!.instructions += op === Op.memoryGrow ? GROW_INSTRUCTIONS : 1
    if (isBulk) {
      needsLength = true
      chunks.push(reader.bytes.subarray(from, at), Uint8Array.from(chargeLength(fuelGlobal, lengthLocal)))
      from = at
    }
    if (op === Op.loop) {
      chunks.push(reader.bytes.subarray(from, reader.at), new Uint8Array())
      from = reader.at
      segments.push({ chunk: chunks.length - 1, instructions: 0 })
      blocks.push(true)
    } else if (op === Op.block || op === Op.if) blocks.push(false)
    else if (op === Op.end && blocks.length > 0) {
      if (blocks.pop() === true) closed.push(segments.pop()!)
    }
  }
  chunks.push(reader.bytes.subarray(from, reader.at))
  chunks[0] = Uint8Array.from(leb(groups + (needsLength ? 1 : 0)))
  if (needsLength) chunks[2] = Uint8Array.from([1, Op.i32])
  for (const { chunk, instructions } of [...segments, ...closed])
    chunks[chunk] = Uint8Array.from(charge(fuelGlobal, Math.max(1, instructions)))
  return { chunks, instructions: total }
}
