// Puts a fuel charge at the start of a function and of each of its loops, so that no code runs on without paying: the charge
// is the number of instructions up to the next charge, and running out is a trap. Floating point is refused, as the network
// refuses it. Everything else about the code is left to the engine's own validation.
import { BinaryReader, leb, Malformed, signedLeb } from "./BinaryReader.ts"

const Op = {
  unreachable: 0x00, block: 0x02, loop: 0x03, if: 0x04, end: 0x0b, globalGet: 0x23, globalSet: 0x24, i32Const: 0x41, i32LtS: 0x48, i32Sub: 0x6b,
  voidBlock: 0x40
} as const

const isFloat = (op: number): boolean =>
  op === 0x2a || op === 0x2b || op === 0x38 || op === 0x39 || op === 0x43 || op === 0x44 || (op >= 0x5b && op <= 0x66) ||
  (op >= 0x8b && op <= 0xa6) || (op >= 0xa8 && op <= 0xab) || (op >= 0xae && op <= 0xbf)

/** Passes over the immediates of the instruction `op`. */
const skipImmediates = (reader: BinaryReader, op: number): void => {
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
    case 0x23:
    case 0x24:
    case 0x25:
    case 0x26:
    case 0xd2:
      reader.u32()
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

const charge = (fuelGlobal: number, instructions: number): Array<number> => {
  const fuel = leb(fuelGlobal)
  return [
    Op.globalGet, ...fuel, Op.i32Const, ...signedLeb(instructions), Op.i32Sub, Op.globalSet, ...fuel,
    Op.globalGet, ...fuel, Op.i32Const, 0, Op.i32LtS, Op.if, Op.voidBlock, Op.unreachable, Op.end
  ]
}

export interface InstrumentedBody {
  readonly chunks: ReadonlyArray<Uint8Array>
  readonly instructions: number
}

/** The function body (locals and expression) between the reader's ends, with charges against the global `fuelGlobal`. */
export const instrumentBody = (reader: BinaryReader, fuelGlobal: number): InstrumentedBody => {
  const start = reader.at
  const groups = reader.u32()
  for (let i = 0; i < groups; i++) {
    reader.u32()
    const type = reader.byte()
    if (type === 0x7d || type === 0x7c || type === 0x7b) throw new Malformed("floating point is not allowed")
  }
  const chunks: Array<Uint8Array> = [reader.bytes.subarray(start, reader.at), new Uint8Array()]
  const segments: Array<Segment> = [{ chunk: 1, instructions: 0 }]
  const closed: Array<Segment> = []
  const blocks: Array<boolean> = []
  let from = reader.at
  let total = 0
  while (!reader.done) {
    const op = reader.byte()
    skipImmediates(reader, op)
    total++
    segments.at(-1)!.instructions++
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
  for (const { chunk, instructions } of [...segments, ...closed]) chunks[chunk] = Uint8Array.from(charge(fuelGlobal, Math.max(1, instructions)))
  return { chunks, instructions: total }
}
