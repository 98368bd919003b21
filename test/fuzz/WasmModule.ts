// Random contract modules, valid or deliberately broken: sections are made from their parts, and a mutation changes a
// part, an instruction, a whole section or single bytes, so that most results are nearly valid.
import type { Dice } from "./Dice.ts"
import { leb, section, signed, sized, text } from "../plugins/ledger-local/engine/wasm/assemble.ts"
import { type Callable, I32, I64, type Type, WasmProgram } from "./WasmProgram.ts"

type Bytes = ReadonlyArray<number>

interface Signature {
  readonly parameters: ReadonlyArray<Type>
  readonly results: ReadonlyArray<Type>
}

interface HostName {
  readonly module: string
  readonly name: string
  readonly parameters: number
}

const PREAMBLE = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]

/** Host functions with their numbers of parameters: storage, calls, values, memory, cryptography, random numbers. */
const hostNames: ReadonlyArray<HostName> = (
  "x._4 x.02 x.12 x.20 x.30 x.40 x.51 x.60 x.70 x.80 i._1 i.01 i.32 i.62 i.81 i.94 i.a1 i.n2 i.p2 i.q2 i.s2 i.t2 " +
  "i.A2 i.H2 m._0 m.03 m.12 m.22 m.31 m.52 m.71 m.93 m.a4 v._0 v.03 v.12 v.31 v.42 v.62 v.a3 v.b2 v.c3 v.d2 v.f2 " +
  "v.g2 v.h3 l._3 l.02 l.12 l.22 l.33 l.41 l.51 l.61 l.74 l.82 l.93 l.a2 d._3 d.03 b._1 b.01 b.14 b.24 b.32 b.40 " +
  "b.53 b.62 b.92 b.d3 b.e2 b.f3 b.i2 b.j2 b.m3 b.n1 b.o1 c._1 c.03 c.11 c.23 c.33 c.41 c.52 c.62 c.72 c.81 c.92 " +
  "c.c2 c.e1 c.g2 c.h2 c.k2 c.l1 c.m2 c.o2 c.p8 c.q8 c.r2 c.v2 c.x1 a._2 a.01 a.11 a.21 a.31 a.41 a.61 a.90 p._1 " +
  "p.01 p.12 p.21"
)
  .split(" ")
  .map((each) => ({ module: each[0]!, name: each[2]!, parameters: Number(each[3]) }))

const typeBytes = ({ parameters, results }: Signature): Bytes => [0x60, ...sized(parameters), ...sized(results)]

const constantOf = (type: Type, value: bigint): Bytes => [
  type === I32 ? 0x41 : 0x42,
  ...signed(type === I32 ? BigInt.asIntN(32, value) : value),
  0x0b
]

const environment = (protocol: number): Bytes => [
  0,
  ...sized([...text("contractenvmetav0"), 0, 0, 0, 0, 0, 0, 0, protocol, 0, 0, 0, 0])
]

const localsBytes = (locals: ReadonlyArray<Type>): Bytes => [
  ...leb(locals.length),
  ...locals.flatMap((type) => [1, type])
]

/** A module as its sections, in order. */
const sectionsOf = (dice: Dice): Array<Bytes> => {
  const hosts = Array.from({ length: dice.below(8) }, () => dice.pick(hostNames))
  const types: Array<Signature> = [{ parameters: [], results: [I64] }]
  const typeOf = (signature: Signature): number => types.push(signature) - 1
  const hostTypes = hosts.map(({ parameters }) =>
    typeOf({ parameters: Array<Type>(parameters).fill(I64), results: [I64] })
  )
  const others = Array.from({ length: dice.below(4) }, (): Signature => ({
    parameters: Array.from({ length: dice.below(4) }, () => dice.pick([I32, I64] as const)),
    results: [dice.pick([I32, I64] as const)]
  }))
  const own: ReadonlyArray<Signature> = [{ parameters: [], results: [I64] }, ...others]
  const ownTypes = own.map((signature, i) => (i === 0 ? 0 : typeOf(signature)))
  const callables: ReadonlyArray<Callable> = [
    ...hosts.map(({ parameters }, index) => ({ index, parameters: Array<Type>(parameters).fill(I64), result: I64 })),
    ...own.map(({ parameters, results }, i) => ({ index: hosts.length + i, parameters, result: results[0] }))
  ] as ReadonlyArray<Callable>
  const hasMemory = !dice.onceIn(6)
  const globals = Array.from({ length: dice.below(3) }, () => dice.pick([I32, I64] as const))
  const hasTable = dice.onceIn(2)
  const dataSegments = hasMemory ? dice.below(3) : 0
  const bodies = own.map(({ parameters, results }) => {
    const extra = Array.from({ length: dice.below(5) }, () => dice.pick([I32, I64] as const))
    const program = new WasmProgram(
      dice,
      {
        locals: [...parameters, ...extra],
        globals,
        callables,
        hasMemory,
        dataSegments,
        indirectType: hasTable ? 0 : undefined,
        result: results[0]!
      },
      2 + dice.below(12)
    )
    return sized([...localsBytes(extra), ...program.body(), 0x0b])
  })
  const data = Array.from({ length: dataSegments }, (_, i) =>
    i === 0 ? [1, ...sized([1, 2, 3, 4, 5])] : [0, ...constantOf(I32, BigInt(dice.below(60_000))), ...sized([9, 8, 7])]
  )
  const pages = dice.pick([1, 1, 1, 2, 16, 640])
  return [
    section(1, ...types.map(typeBytes)),
    ...(hosts.length === 0
      ? []
      : [
          section(2, ...hosts.map(({ module, name }, i) => [...text(module), ...text(name), 0, ...leb(hostTypes[i]!)]))
        ]),
    section(3, ...ownTypes.map((type) => leb(type))),
    ...(hasTable ? [section(4, [0x70, 0, 4])] : []),
    ...(hasMemory ? [section(5, [0, ...leb(pages)])] : []),
    ...(globals.length === 0
      ? []
      : [section(6, ...globals.map((type) => [type, 1, ...constantOf(type, dice.edgy())]))]),
    section(7, [...text("run"), 0, ...leb(hosts.length)], ...(hasMemory ? [[...text("memory"), 2, 0]] : [])),
    ...(hasTable ? [section(9, [0, ...constantOf(I32, 0n), ...sized([hosts.length])])] : []),
    ...(data.length === 0 ? [] : [[12, 1, data.length]]),
    section(10, ...bodies),
    ...(data.length === 0 ? [] : [section(11, ...data)]),
    environment(dice.onceIn(40) ? dice.below(40) : 26)
  ]
}

/** Changes a module so that it is only nearly valid. */
const mutations: ReadonlyArray<(dice: Dice, sections: Array<Bytes>) => ReadonlyArray<Bytes>> = [
  // Any instruction, defined or not, with any operands, in the middle of the code.
  (dice, sections) => sections.map((each) => (each[0] === 10 ? withInsertion(dice, each) : each)),
  (dice, sections) => sections.map((each) => (each[0] === 10 ? withInsertion(dice, withChange(dice, each)) : each)),
  // Single bytes of one section.
  (dice, sections) => {
    const at = dice.below(sections.length)
    return sections.map((each, i) => (i === at ? withChange(dice, each) : each))
  },
  (dice, sections) => sections.map((each) => (each[0] === 1 || each[0] === 2 ? withChange(dice, each) : each)),
  // A section left out, twice, or in another place.
  (dice, sections) => sections.toSpliced(dice.below(sections.length), 1),
  (dice, sections) => sections.toSpliced(dice.below(sections.length), 0, dice.pick(sections)),
  (dice, sections) => {
    const [moved] = sections.splice(dice.below(sections.length), 1)
    return sections.toSpliced(dice.below(sections.length + 1), 0, moved!)
  },
  // An unexpected section.
  (dice, sections) =>
    sections.toSpliced(dice.below(sections.length), 0, [dice.below(16), ...sized([dice.below(256), 0])]),
  // Cut off.
  (dice, sections) => sections.slice(0, 1 + dice.below(sections.length))
]

const HEAD = 6

const withChange = (dice: Dice, bytes: Bytes): Bytes => {
  const out = [...bytes]
  for (let left = 1 + dice.below(3); left > 0; left--) out[dice.below(out.length)] = dice.below(256)
  return out
}

/** Code with some additional bytes, with its own lengths unchanged or adjusted. */
const withInsertion = (dice: Dice, bytes: Bytes): Bytes => {
  if (bytes.length <= HEAD) return bytes
  const at = HEAD + dice.below(bytes.length - HEAD)
  const added = [
    dice.below(256),
    ...Array.from({ length: dice.below(4) }, () => dice.pick([0, 1, 3, 0x40, 0x7e, 0x0b]))
  ]
  // Overwriting keeps every length right.
  return [...bytes.slice(0, at), ...added, ...bytes.slice(at + added.length)].slice(0, bytes.length)
}

/** One in three modules is valid, the others are broken in up to three ways. */
export const wasmModule = (dice: Dice): Uint8Array => {
  let sections: ReadonlyArray<Bytes> = sectionsOf(dice)
  if (!dice.onceIn(3)) {
    for (let left = 1 + dice.below(3); left > 0 && sections.length > 0; left--)
      sections = dice.pick(mutations)(dice, [...sections])
  }
  return Uint8Array.from([...PREAMBLE, ...sections.flat()])
}
