// Makes a contract's module safe to run: the code pays fuel from an added global, memory and table are bounded, and
// code that the network would refuse at upload is refused here, even if the JavaScript engine accepts it. The same pass
// counts the bodies; the counts become the code entry's cost inputs.
import { joinBytes } from "../../../../kernel/stellar/joinBytes.ts"
import { BinaryReader, leb, Malformed, signedLeb } from "./BinaryReader.ts"
import { COMPILE_WEIGHT_MAX, compileWeight } from "./compileWeight.ts"
import { checkImports, type Import } from "./hostImports.ts"
import { instrumentBody } from "./instrumentBody.ts"
import { Op, ValueType } from "./opcodes.ts"
import {
  type CostInputs,
  FUNCTION_REFERENCE,
  type FunctionType,
  type Limits,
  MEMORY_PAGES_MAX,
  PAGE_BYTES,
  type ModuleParts,
  readModule,
  SectionId,
  TABLE_ENTRIES_MAX
} from "./readModule.ts"

export const FUEL_EXPORT = "tollkeeper:fuel"
/** How often an instance may ask for more memory. The network's limit lets it succeed 640 times. */
const GROWS_MAX = 10_000
const MUTABLE = 1
const GLOBAL = 3

export interface PreparedModule {
  readonly bytes: Uint8Array
  readonly costInputs: CostInputs
  /** Protocol the contract was built for, and the number of that protocol's release before it was final. */
  readonly environmentProtocol: number
  readonly prerelease: number
  readonly imports: ReadonlyArray<Import>
  /** Linear memory that an instance begins with. */
  readonly memoryBytes: number
  readonly exports: ReadonlyMap<string, FunctionType>
}

const section = (id: number, ...content: ReadonlyArray<Uint8Array | ReadonlyArray<number>>): Uint8Array => {
  const body = joinBytes(content.map((part) => (part instanceof Uint8Array ? part : Uint8Array.from(part))))
  return joinBytes([Uint8Array.from([id, ...leb(body.length)]), body])
}

/** The one table or memory, with a maximum. */
const bounded = (id: number, type: ReadonlyArray<number>, limits: Limits | undefined, most: number): Uint8Array => {
  if (limits === undefined) return new Uint8Array()
  const { min, max } = limits
  if (max !== undefined && max < min) throw new Malformed("a maximum is below its minimum")
  return section(id, [1, ...type, 1, ...leb(min), ...leb(Math.min(max ?? most, most))])
}

/** A section's items with more behind them. */
const extended = (id: number, part: Uint8Array | undefined, more: ReadonlyArray<ReadonlyArray<number>>): Uint8Array => {
  const reader = new BinaryReader(part ?? Uint8Array.of(0))
  const count = reader.u32()
  return section(id, leb(count + more.length), reader.bytes.subarray(reader.at), more.flat())
}

const instrumentedCode = (parts: ModuleParts, tank: { readonly fuel: number; readonly grows: number }): Uint8Array => {
  const code = parts.sections.get(SectionId.code)
  const { costInputs, functions } = parts
  if (code === undefined) {
    if (costInputs.nFunctions > 0) throw new Malformed("functions without code")
    return new Uint8Array()
  }
  const reader = new BinaryReader(code)
  const count = reader.u32()
  if (count !== costInputs.nFunctions) throw new Malformed("the number of functions is not that of their bodies")
  const out: Array<Uint8Array> = [Uint8Array.from(leb(count))]
  let weight = 0
  for (let i = 0; i < count; i++) {
    const size = reader.u32()
    const from = reader.at
    reader.skip(size)
    const parameters = functions[costInputs.nImports + i]!.parameters.length
    const body = instrumentBody(new BinaryReader(code, from, reader.at), tank, parameters)
    const expression = new BinaryReader(code, body.from, reader.at)
    weight += compileWeight(expression, body.locals, tank.fuel, parts, COMPILE_WEIGHT_MAX - weight)
    costInputs.nInstructions += body.instructions
    const merged = joinBytes(body.chunks)
    out.push(Uint8Array.from(leb(merged.length)), merged)
  }
  if (!reader.done) throw new Malformed("a section holds more than it says")
  return section(SectionId.code, joinBytes(out))
}

/** Throws `Malformed` for a module the network would not take. */
export const prepareModule = (bytes: Uint8Array): PreparedModule => {
  const parts = readModule(bytes)
  checkImports(parts.imports)
  const { sections, costInputs } = parts
  const tank = { fuel: costInputs.nGlobals, grows: costInputs.nGlobals + 1 }
  const code = instrumentedCode(parts, tank)
  const copy = (id: number): Uint8Array => {
    const part = sections.get(id)
    return part === undefined ? new Uint8Array() : section(id, part)
  }
  const name = new TextEncoder().encode(FUEL_EXPORT)
  const exported = [...leb(name.length), ...name, GLOBAL, ...leb(tank.fuel)]
  const added = [0, GROWS_MAX].map((value) => [ValueType.i32, MUTABLE, Op.i32Const, ...signedLeb(value), Op.end])
  return {
    bytes: joinBytes([
      bytes.subarray(0, 8),
      copy(SectionId.type),
      copy(SectionId.import),
      copy(SectionId.function),
      bounded(SectionId.table, [FUNCTION_REFERENCE], parts.table, TABLE_ENTRIES_MAX),
      bounded(SectionId.memory, [], parts.memory, MEMORY_PAGES_MAX),
      extended(SectionId.global, sections.get(SectionId.global), added),
      extended(SectionId.export, sections.get(SectionId.export), [exported]),
      copy(SectionId.element),
      copy(SectionId.dataCount),
      code,
      copy(SectionId.data)
    ]),
    costInputs,
    environmentProtocol: parts.environmentProtocol,
    prerelease: parts.prerelease,
    imports: parts.imports,
    memoryBytes: (parts.memory?.min ?? 0) * PAGE_BYTES,
    exports: parts.exports
  }
}
