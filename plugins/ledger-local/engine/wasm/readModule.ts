// Reads a contract's module section by section, as strictly as the network: sections once and in order, integers only,
// one memory and one table of bounded size, only functions as imports, constants as initial values, no start function.
// Its counts become the code entry's cost inputs. Function bodies are not read here.
import { BinaryReader, Malformed } from "./BinaryReader.ts"
import type { Import } from "./hostImports.ts"
import { Op, ValueType } from "./opcodes.ts"

export const SectionId = {
  custom: 0,
  type: 1,
  import: 2,
  function: 3,
  table: 4,
  memory: 5,
  global: 6,
  export: 7,
  start: 8,
  element: 9,
  code: 10,
  data: 11,
  dataCount: 12
} as const

/** The order of sections; the count of data segments precedes the code that names them. */
const ORDER = [1, 2, 3, 4, 5, 6, 7, 9, 12, 10, 11]

/** 40 MiB, the network's memory limit of a transaction. */
export const MEMORY_PAGES_MAX = 640
export const TABLE_ENTRIES_MAX = 1_000
export const PAGE_BYTES = 65_536
/** Parameters and results of an exported function. */
const ARGUMENTS_MAX = 32
export const FUNCTION_REFERENCE = 0x70

export interface FunctionType {
  readonly parameters: ReadonlyArray<number>
  readonly results: ReadonlyArray<number>
}

export interface Limits {
  readonly min: number
  readonly max: number | undefined
}

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

export interface ModuleParts {
  readonly bytes: Uint8Array
  readonly sections: ReadonlyMap<number, Uint8Array>
  /** Protocol the contract was built for, and the number of that protocol's release before it was final. */
  readonly environmentProtocol: number
  readonly prerelease: number
  readonly imports: ReadonlyArray<Import>
  readonly types: ReadonlyArray<FunctionType>
  /** Types of all functions, the imported ones first. */
  readonly functions: ReadonlyArray<FunctionType>
  readonly table: Limits | undefined
  readonly memory: Limits | undefined
  readonly exports: ReadonlyMap<string, FunctionType>
  readonly costInputs: CostInputs
}

const PREAMBLE = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]
const ENVIRONMENT = "contractenvmetav0"

interface Sections {
  readonly content: ReadonlyMap<number, Uint8Array>
  readonly environment: Uint8Array
}

const readSections = (bytes: Uint8Array): Sections => {
  const reader = new BinaryReader(bytes)
  const magic = reader.take(PREAMBLE.length)
  if (PREAMBLE.some((byte, i) => magic[i] !== byte)) throw new Malformed("not a wasm module")
  const content = new Map<number, Uint8Array>()
  let environment: Uint8Array | undefined
  let reached = -1
  while (!reader.done) {
    const id = reader.byte()
    const part = reader.take(reader.u32())
    if (id === SectionId.custom) {
      const custom = new BinaryReader(part)
      if (custom.name() === ENVIRONMENT) environment ??= part.subarray(custom.at)
      continue
    }
    if (id === SectionId.start) throw new Malformed("start functions are not allowed")
    const position = ORDER.indexOf(id)
    if (position < 0) throw new Malformed("unknown section")
    if (position <= reached) throw new Malformed("repeated section, or one out of order")
    reached = position
    content.set(id, part)
  }
  if (environment === undefined) throw new Malformed("contract missing environment interface version", "InvalidInput")
  return { content, environment }
}

const readEnvironment = (bytes: Uint8Array): { readonly protocol: number; readonly prerelease: number } => {
  if (bytes.length < 12) throw new Malformed("environment interface version is malformed", "InvalidInput")
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  if (view.getUint32(0) !== 0) throw new Malformed("environment interface version is malformed", "InvalidInput")
  return { protocol: view.getUint32(4), prerelease: view.getUint32(8) }
}

const readValueType = (reader: BinaryReader): number => {
  const type = reader.byte()
  if (type !== ValueType.i32 && type !== ValueType.i64) throw new Malformed("values are 32 or 64 bit integers")
  return type
}

const readTypes = (reader: BinaryReader): FunctionType => {
  if (reader.byte() !== 0x60) throw new Malformed("unexpected type")
  const parameters = list(reader, readValueType)
  const results = list(reader, readValueType)
  if (results.length > 1) throw new Malformed("a function has one result at most")
  return { parameters, results }
}

/** A list prefixed by its number of items; the remaining bytes bound that number. */
const list = <A>(reader: BinaryReader, read: (reader: BinaryReader) => A): Array<A> => {
  const items: Array<A> = []
  for (let left = reader.u32(); left > 0; left--) items.push(read(reader))
  return items
}

const readLimits = (reader: BinaryReader): Limits => {
  const flags = reader.byte()
  if (flags > 1) throw new Malformed("shared and 64-bit memories are not allowed")
  const min = reader.u32()
  return { min, max: flags === 1 ? reader.u32() : undefined }
}

const readTable = (reader: BinaryReader): Limits => {
  if (reader.byte() !== FUNCTION_REFERENCE) throw new Malformed("a table holds functions")
  const limits = readLimits(reader)
  if (limits.min > TABLE_ENTRIES_MAX) throw new Malformed("table too large")
  return limits
}

const readMemory = (reader: BinaryReader): Limits => {
  const limits = readLimits(reader)
  if (limits.min > MEMORY_PAGES_MAX) throw new Malformed("memory too large")
  return limits
}

const only = <A>(items: ReadonlyArray<A>, what: string): A | undefined => {
  if (items.length > 1) throw new Malformed(`more than one ${what}`)
  return items[0]
}

/** Passes over an initial value, which is one constant. */
const skipConstant = (reader: BinaryReader): void => {
  const op = reader.byte()
  if (op !== Op.i32Const && op !== Op.i64Const)
    throw new Malformed("unsupported complex Wasm constant expression", "InvalidInput")
  reader.skipLeb()
  if (reader.byte() !== Op.end) throw new Malformed("unsupported complex Wasm constant expression", "InvalidInput")
}

const skipGlobal = (reader: BinaryReader): void => {
  readValueType(reader)
  if (reader.byte() > 1) throw new Malformed("malformed global")
  skipConstant(reader)
}

/** A segment of functions for the table; how many. */
const readElements = (reader: BinaryReader): number => {
  const mode = reader.u32()
  if (mode > 3) throw new Malformed("references to functions are not values")
  if (mode === 2 && reader.u32() !== 0) throw new Malformed("only the first table can be used")
  if (mode === 0 || mode === 2) skipConstant(reader)
  if (mode !== 0 && reader.byte() !== 0) throw new Malformed("a table holds functions")
  return list(reader, (each) => each.u32()).length
}

/** A segment of bytes for the memory; how many. */
const readData = (reader: BinaryReader): number => {
  const mode = reader.u32()
  if (mode > 2) throw new Malformed("malformed data segment")
  if (mode === 2 && reader.u32() !== 0) throw new Malformed("only the first memory can be used")
  if (mode !== 1) skipConstant(reader)
  return reader.take(reader.u32()).length
}

const sum = (counts: ReadonlyArray<number>): number => counts.reduce((total, count) => total + count, 0)

/** Throws `Malformed` for a module the network would not take. */
export const readModule = (bytes: Uint8Array): ModuleParts => {
  const { content, environment } = readSections(bytes)
  const { protocol: environmentProtocol, prerelease } = readEnvironment(environment)
  const read = <A>(id: number, item: (reader: BinaryReader) => A): Array<A> => {
    const part = content.get(id)
    if (part === undefined) return []
    const reader = new BinaryReader(part)
    const items = list(reader, item)
    if (!reader.done) throw new Malformed("a section holds more than it says")
    return items
  }
  const types = read(SectionId.type, readTypes)
  const readType = (reader: BinaryReader): FunctionType => {
    const type = types[reader.u32()]
    if (type === undefined) throw new Malformed("unknown type")
    return type
  }
  const imports = read(SectionId.import, (reader): Import => {
    const [module, name] = [reader.name(), reader.name()]
    if (reader.byte() !== 0) throw new Malformed("only functions can be imported")
    return { module, name, ...readType(reader) }
  })
  const own = read(SectionId.function, readType)
  const functions = [...imports, ...own]
  const table = only(read(SectionId.table, readTable), "table")
  const memory = only(read(SectionId.memory, readMemory), "memory")
  const globals = read(SectionId.global, skipGlobal)
  const exports = new Map<string, FunctionType>()
  const exported = read(SectionId.export, (reader) => {
    const [name, kind, index] = [reader.name(), reader.byte(), reader.u32()]
    const type = kind === 0 ? functions[index] : undefined
    if (type === undefined) return
    if (type.parameters.length > ARGUMENTS_MAX) throw new Malformed("Too many arguments Wasm export", "InvalidInput")
    exports.set(name, type)
  })
  const elements = read(SectionId.element, readElements)
  const data = read(SectionId.data, readData)
  const costInputs: CostInputs = {
    nInstructions: 0,
    nFunctions: own.length,
    nGlobals: globals.length,
    nTableEntries: table?.min ?? 0,
    nTypes: types.length,
    nDataSegments: data.length,
    nElemSegments: elements.length,
    nImports: imports.length,
    nExports: exported.length,
    nDataSegmentBytes: sum(data)
  }
  if (costInputs.nDataSegmentBytes > (memory?.min ?? 0) * PAGE_BYTES)
    throw new Malformed("data segment(s) content exceeds memory size", "InvalidInput")
  if (sum(elements) > costInputs.nTableEntries)
    throw new Malformed("elem segments(s) content exceeds table size", "InvalidInput")
  const parts = { bytes, sections: content, environmentProtocol, prerelease, imports, types, functions }
  return { ...parts, table, memory, exports, costInputs }
}
