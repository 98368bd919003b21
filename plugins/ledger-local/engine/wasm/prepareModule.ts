// Makes a contract's wasm safe to run and counts what the network prices: every function and loop pays fuel through an
// added global, memory and tables are bounded, and a module the network would refuse (imports other than functions, a
// start function, floating point, no environment version) is refused here too. The counts become the code entry's cost
// inputs.
import { BinaryReader, leb, Malformed } from "./BinaryReader.ts"
import { instrumentBody } from "./instrumentBody.ts"

/** 40 MiB, the network's memory limit of a transaction. */
const MEMORY_PAGES_MAX = 640
const TABLE_ENTRIES_MAX = 1_000
export const FUEL_EXPORT = "tollkeeper:fuel"

export interface CostInputs {
  nInstructions: number
  nFunctions: number
  nGlobals: number
  nTableEntries: number
  nTypes: number
  nDataSegments: number
  nElemSegments: number
  nImports: number
  nExports: number
  nDataSegmentBytes: number
}

export interface PreparedModule {
  readonly bytes: Uint8Array
  readonly costInputs: CostInputs
  /** Protocol the contract was built for. */
  readonly environmentProtocol: number
  /** Number of parameters of each exported function. */
  readonly arity: ReadonlyMap<string, number>
}

interface Section {
  readonly id: number
  readonly from: number
  readonly to: number
}

const sectionsOf = (bytes: Uint8Array): Array<Section> => {
  const reader = new BinaryReader(bytes)
  const magic = reader.take(8)
  if ([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0].some((byte, i) => magic[i] !== byte)) throw new Malformed("not a wasm module")
  const sections: Array<Section> = []
  while (!reader.done) {
    const id = reader.byte()
    const size = reader.u32()
    const from = reader.at
    reader.skip(size)
    sections.push({ id, from, to: reader.at })
  }
  return sections
}

const readLimits = (reader: BinaryReader): { readonly min: number; readonly max: number | undefined } => {
  const flags = reader.byte()
  if (flags > 1) throw new Malformed("shared and 64-bit memories are not allowed")
  const min = reader.u32()
  return { min, max: flags === 1 ? reader.u32() : undefined }
}

const concat = (chunks: ReadonlyArray<Uint8Array>): Uint8Array => {
  const out = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0))
  let at = 0
  for (const chunk of chunks) {
    out.set(chunk, at)
    at += chunk.length
  }
  return out
}

const section = (id: number, ...content: ReadonlyArray<Uint8Array | ReadonlyArray<number>>): Uint8Array => {
  const body = concat(content.map((part) => (part instanceof Uint8Array ? part : Uint8Array.from(part))))
  return concat([Uint8Array.from([id, ...leb(body.length)]), body])
}

const isFloatType = (type: number): boolean => type === 0x7d || type === 0x7c || type === 0x7b

const skipConstant = (reader: BinaryReader): void => {
  for (;;) {
    const op = reader.byte()
    if (op === 0x0b) return
    if (op === 0x41 || op === 0x42) reader.skipLeb()
    else if (op === 0x23 || op === 0xd2) reader.u32()
    else if (op === 0xd0) reader.skip(1)
    else throw new Malformed("unexpected constant expression")
  }
}

const readTypes = (reader: BinaryReader): Array<number> =>
  Array.from({ length: reader.u32() }, () => {
    if (reader.byte() !== 0x60) throw new Malformed("unexpected type")
    const parameters = reader.take(reader.u32())
    const results = reader.take(reader.u32())
    if (parameters.some(isFloatType) || results.some(isFloatType)) throw new Malformed("floating point is not allowed")
    return parameters.length
  })

const environmentProtocolOf = (bytes: Uint8Array, sections: ReadonlyArray<Section>): number => {
  for (const { id, from, to } of sections) {
    if (id !== 0) continue
    const reader = new BinaryReader(bytes, from, to)
    if (reader.name() !== "contractenvmetav0") continue
    const meta = reader.take(12)
    return new DataView(meta.buffer, meta.byteOffset).getUint32(4)
  }
  throw new Malformed("contract missing environment interface version")
}

/** Throws `Malformed` for a module the network would not take. */
export const prepareModule = (bytes: Uint8Array): PreparedModule => {
  const sections = sectionsOf(bytes)
  const costInputs: CostInputs = {
    nInstructions: 0,
    nFunctions: 0,
    nGlobals: 0,
    nTableEntries: 0,
    nTypes: 0,
    nDataSegments: 0,
    nElemSegments: 0,
    nImports: 0,
    nExports: 0,
    nDataSegmentBytes: 0
  }
  const environmentProtocol = environmentProtocolOf(bytes, sections)
  let types: Array<number> = []
  const functionTypes: Array<number> = []
  const exported: Array<readonly [name: string, index: number]> = []
  const content = new Map<number, Section>()
  for (const found of sections) {
    if (found.id === 0) continue
    if (content.has(found.id)) throw new Malformed("repeated section")
    content.set(found.id, found)
  }
  const read = (id: number): BinaryReader | undefined => {
    const found = content.get(id)
    return found === undefined ? undefined : new BinaryReader(bytes, found.from, found.to)
  }

  if (content.has(8)) throw new Malformed("start functions are not allowed")
  const typeReader = read(1)
  if (typeReader !== undefined) types = readTypes(typeReader)
  costInputs.nTypes = types.length
  const imports = read(2)
  if (imports !== undefined) {
    costInputs.nImports = imports.u32()
    for (let i = 0; i < costInputs.nImports; i++) {
      imports.name()
      imports.name()
      if (imports.byte() !== 0) throw new Malformed("only functions can be imported")
      functionTypes.push(imports.u32())
    }
  }
  const functions = read(3)
  if (functions !== undefined) {
    costInputs.nFunctions = functions.u32()
    for (let i = 0; i < costInputs.nFunctions; i++) functionTypes.push(functions.u32())
  }
  const tables = read(4)
  const tableOut: Array<number> = []
  if (tables !== undefined) {
    const count = tables.u32()
    if (count > 1) throw new Malformed("more than one table")
    tableOut.push(...leb(count))
    for (let i = 0; i < count; i++) {
      const type = tables.byte()
      const { min, max } = readLimits(tables)
      costInputs.nTableEntries += min
      if (min > TABLE_ENTRIES_MAX) throw new Malformed("table too large")
      tableOut.push(type, 1, ...leb(min), ...leb(Math.min(max ?? TABLE_ENTRIES_MAX, TABLE_ENTRIES_MAX)))
    }
  }
  const memories = read(5)
  const memoryOut: Array<number> = []
  if (memories !== undefined) {
    const count = memories.u32()
    if (count > 1) throw new Malformed("more than one memory")
    memoryOut.push(...leb(count))
    for (let i = 0; i < count; i++) {
      const { min, max } = readLimits(memories)
      if (min > MEMORY_PAGES_MAX) throw new Malformed("memory too large")
      memoryOut.push(1, ...leb(min), ...leb(Math.min(max ?? MEMORY_PAGES_MAX, MEMORY_PAGES_MAX)))
    }
  }
  const globals = read(6)
  let globalBody = new Uint8Array()
  if (globals !== undefined) {
    costInputs.nGlobals = globals.u32()
    const from = globals.at
    for (let i = 0; i < costInputs.nGlobals; i++) {
      if (isFloatType(globals.byte())) throw new Malformed("floating point is not allowed")
      globals.skip(1)
      skipConstant(globals)
    }
    globalBody = bytes.slice(from, globals.at)
  }
  const exports = read(7)
  let exportBody = new Uint8Array()
  if (exports !== undefined) {
    costInputs.nExports = exports.u32()
    const from = exports.at
    for (let i = 0; i < costInputs.nExports; i++) {
      const name = exports.name()
      const kind = exports.byte()
      const index = exports.u32()
      if (name === FUEL_EXPORT) throw new Malformed("reserved export")
      if (kind === 0) exported.push([name, index])
    }
    exportBody = bytes.slice(from, exports.at)
  }
  const elements = read(9)
  if (elements !== undefined) costInputs.nElemSegments = elements.u32()
  const data = read(11)
  if (data !== undefined) {
    costInputs.nDataSegments = data.u32()
    for (let i = 0; i < costInputs.nDataSegments; i++) {
      const mode = data.u32()
      if (mode === 2) data.u32()
      if (mode !== 1) skipConstant(data)
      const size = data.u32()
      data.skip(size)
      costInputs.nDataSegmentBytes += size
    }
  }
  const fuelGlobal = costInputs.nGlobals
  const code = read(10)
  const codeOut: Array<Uint8Array> = []
  if (code !== undefined) {
    const count = code.u32()
    codeOut.push(Uint8Array.from(leb(count)))
    for (let i = 0; i < count; i++) {
      const size = code.u32()
      const from = code.at
      code.skip(size)
      const parameters = types[functionTypes[costInputs.nImports + i] ?? -1] ?? 0
      const body = instrumentBody(new BinaryReader(bytes, from, code.at), fuelGlobal, parameters)
      costInputs.nInstructions += body.instructions
      const merged = concat(body.chunks)
      codeOut.push(Uint8Array.from(leb(merged.length)), merged)
    }
  }

  const nameBytes = new TextEncoder().encode(FUEL_EXPORT)
  const out: Array<Uint8Array> = [bytes.subarray(0, 8)]
  const copy = (id: number): void => {
    const found = content.get(id)
    if (found !== undefined) out.push(section(id, bytes.subarray(found.from, found.to)))
  }
  for (const id of [1, 2, 3]) copy(id)
  if (tables !== undefined) out.push(section(4, tableOut))
  if (memories !== undefined) out.push(section(5, memoryOut))
  out.push(section(6, leb(costInputs.nGlobals + 1), globalBody, [0x7f, 1, 0x41, 0, 0x0b]))
  out.push(section(7, leb(costInputs.nExports + 1), exportBody, leb(nameBytes.length), nameBytes, [3], leb(fuelGlobal)))
  copy(9)
  copy(12)
  if (code !== undefined) out.push(section(10, ...codeOut))
  copy(11)
  const arity = new Map(exported.map(([name, index]) => [name, types[functionTypes[index] ?? -1] ?? -1] as const))
  return { bytes: concat(out), costInputs, environmentProtocol, arity }
}
