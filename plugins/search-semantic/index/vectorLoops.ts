// The three inner loops of the vector scan, as a WebAssembly module with SIMD that is assembled here: JavaScript cannot
// run sixteen table lookups or eight products in parallel. With them a scan of 100,000 vectors of 384 numbers takes a
// millisecond instead of ten. The module is unaware of vectors and does not check its inputs; each instance has a
// separate memory.
//
// `scan` sums table entries chosen by half bytes. Memory: tables of 16 bytes, one for each position of a half byte;
// from `groupsAt` groups of sixteen codes: rows of 16 bytes, byte v of row r being the half bytes 2r (low) and 2r + 1
// (high) of code v; then sixteen factors and sixteen results as float32. Result = factor · (sum · delta + base).
//
// `choose` finds, among the results of `scan`, those of at least a bound. It writes two 32-bit numbers for each group
// with such results, the group's place and a bit for each of its codes, and returns the address after its output.
//
// `dot` multiplies vectors of bytes with one of 16-bit numbers. Memory: that one from 0, the addresses of the vectors
// from `addressesAt`, the products as 32-bit numbers from `productsAt`, vectors from `vectorsAt`, each filled up with
// zeros to a multiple of 16.

export const groupsAt = 16_384
export const groupSize = 16
/** Positions of half bytes that the tables have room for: four signs each. */
export const positionsMax = groupsAt / 16
/** Bytes of one group of sixteen codes with this many rows. */
export const groupBytes = (rows: number): number => 16 * rows + 2 * 4 * groupSize

export const addressesAt = 8_192
export const productsAt = 24_576
export const vectorsAt = 40_960
/** Addresses that one call of `dot` may be given. */
export const addressesMax = (productsAt - addressesAt) / 4

const unsigned = (value: number): ReadonlyArray<number> =>
  value < 128 ? [value] : [(value & 127) | 128, ...unsigned(value >>> 7)]
const signed = (value: number): ReadonlyArray<number> =>
  value < 64 ? [value] : [(value & 127) | 128, ...signed(value >> 7)]

const constant = (value: number) => [0x41, ...signed(value)]
const get = (local: number) => [0x20, local]
const set = (local: number) => [0x21, local]
const add = [0x6a]
const step = (local: number, by: number) => [...get(local), ...constant(by), ...add, ...set(local)]
const loadInteger = [0x28, 0x02, 0x00]
const storeInteger = [0x36, 0x02, 0x00]
const storeSecondInteger = [0x36, 0x02, 0x04]
const isNot = [0x47]
const or = [0x72]
const shiftLeft = [0x74]
/** Runs the body the local's number of times, at least once. */
const times = (local: number, body: ReadonlyArray<number>) => [
  0x03,
  0x40,
  ...body,
  ...get(local),
  ...constant(1),
  0x6b,
  0x22,
  local,
  0x0d,
  0x00,
  0x0b
]

const vector = (opcode: number) => [0xfd, ...unsigned(opcode)]
const load = (offset: number) => [...vector(0x00), 0x04, ...unsigned(offset)]
const store = (offset: number) => [...vector(0x0b), 0x04, ...unsigned(offset)]
const sixteen = (byte: number) => [...vector(0x0c), ...Array.from({ length: 16 }, () => byte)]
const lane = (at: number) => [...vector(0x1b), at]
const swizzle = vector(0x0e)
const splatFloat = vector(0x13)
const isAtLeastFloats = vector(0x46)
const and = vector(0x4e)
const addBytes = vector(0x6e)
const [signedShortsOfLowBytes, signedShortsOfHighBytes, shortsOfLowBytes, shortsOfHighBytes] = [
  vector(0x87),
  vector(0x88),
  vector(0x89),
  vector(0x8a)
]
const shiftShortsRight = vector(0x8d)
const addShorts = vector(0x8e)
const [integersOfLowShorts, integersOfHighShorts] = [vector(0xa9), vector(0xaa)]
const bitsOfIntegers = vector(0xa4)
const addIntegers = vector(0xae)
const dotShorts = vector(0xba)
const addFloats = vector(0xe4)
const multiplyFloats = vector(0xe6)
const floatsOfIntegers = vector(0xfb)

const [i32, f32, v128] = [0x7f, 0x7d, 0x7b] as const

// The locals of `scan`: its four parameters, then its counters and sums.
const [groups, rows, delta, base, at, table, left, row, low, high] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] as const
const lowHalves = sixteen(0x0f)
/** Adds the table entries of one row of sixteen codes. */
const addRow = [
  ...get(at),
  ...load(0),
  ...set(row),
  ...get(table),
  ...load(0),
  ...get(row),
  ...lowHalves,
  ...and,
  ...swizzle,
  ...get(table),
  ...load(16),
  ...get(row),
  ...constant(4),
  ...shiftShortsRight,
  ...lowHalves,
  ...and,
  ...swizzle,
  ...addBytes,
  ...set(row),
  ...get(low),
  ...get(row),
  ...shortsOfLowBytes,
  ...addShorts,
  ...set(low),
  ...get(high),
  ...get(row),
  ...shortsOfHighBytes,
  ...addShorts,
  ...set(high),
  ...step(at, 16),
  ...step(table, 32)
]
/** The sums of a group as results, four at a time. */
const storeResults = [0, 1, 2, 3].flatMap((quarter) => [
  ...get(at),
  ...get(at),
  ...load(16 * quarter),
  ...get(quarter < 2 ? low : high),
  ...(quarter % 2 === 0 ? integersOfLowShorts : integersOfHighShorts),
  ...floatsOfIntegers,
  ...get(delta),
  ...splatFloat,
  ...multiplyFloats,
  ...get(base),
  ...splatFloat,
  ...addFloats,
  ...multiplyFloats,
  ...store(64 + 16 * quarter)
])

const scan = {
  type: [0x60, 4, i32, i32, f32, f32, 0],
  locals: [2, 3, i32, 3, v128],
  body: [
    ...constant(groupsAt),
    ...set(at),
    ...times(groups, [
      ...sixteen(0),
      ...set(low),
      ...sixteen(0),
      ...set(high),
      ...constant(0),
      ...set(table),
      ...get(rows),
      ...set(left),
      ...times(left, addRow),
      ...storeResults,
      ...step(at, 128)
    ])
  ]
}

const choose = (() => {
  const [count, at, stride, bound, out, group, bits] = [0, 1, 2, 3, 4, 5, 6] as const
  const bitsOfGroup = [0, 1, 2, 3].flatMap((quarter) => [
    ...get(at),
    ...load(16 * quarter),
    ...get(bound),
    ...splatFloat,
    ...isAtLeastFloats,
    ...bitsOfIntegers,
    ...(quarter === 0 ? [] : [...constant(4 * quarter), ...shiftLeft, ...or])
  ])
  return {
    type: [0x60, 5, i32, i32, i32, f32, i32, 1, i32],
    locals: [1, 2, i32],
    body: [
      ...times(count, [
        ...bitsOfGroup,
        ...set(bits),
        ...get(out),
        ...get(group),
        ...storeInteger,
        ...get(out),
        ...get(bits),
        ...storeSecondInteger,
        // The next group overwrites an entry without any bit.
        ...get(out),
        ...get(bits),
        ...constant(0),
        ...isNot,
        ...constant(3),
        ...shiftLeft,
        ...add,
        ...set(out),
        ...step(group, 1),
        ...get(at),
        ...get(stride),
        ...add,
        ...set(at)
      ]),
      ...get(out)
    ]
  }
})()

const dot = (() => {
  const [count, blocks, place, at, query, left, sum] = [0, 1, 2, 3, 4, 5, 6] as const
  const half = (extend: ReadonlyArray<number>, offset: number) => [
    ...get(at),
    ...load(0),
    ...extend,
    ...get(query),
    ...load(offset),
    ...dotShorts,
    ...get(sum),
    ...addIntegers,
    ...set(sum)
  ]
  return {
    type: [0x60, 2, i32, i32, 0],
    locals: [2, 4, i32, 1, v128],
    body: [
      ...constant(addressesAt),
      ...set(place),
      ...times(count, [
        ...get(place),
        ...loadInteger,
        ...set(at),
        ...constant(0),
        ...set(query),
        ...sixteen(0),
        ...set(sum),
        ...get(blocks),
        ...set(left),
        ...times(left, [
          ...half(signedShortsOfLowBytes, 0),
          ...half(signedShortsOfHighBytes, 16),
          ...step(at, 16),
          ...step(query, 32)
        ]),
        ...get(place),
        ...constant(productsAt - addressesAt),
        ...add,
        ...[0, 1, 2, 3].flatMap((at) => [...get(sum), ...lane(at), ...(at === 0 ? [] : add)]),
        ...storeInteger,
        ...step(place, 4)
      ])
    ]
  }
})()

const section = (id: number, content: ReadonlyArray<number>) => [id, ...unsigned(content.length), ...content]
const named = (name: string) => [name.length, ...new TextEncoder().encode(name)]
const code = ({ body, locals }: typeof scan) => [...unsigned(locals.length + body.length + 1), ...locals, ...body, 0x0b]

const moduleBytes = Uint8Array.from([
  0x00,
  0x61,
  0x73,
  0x6d,
  0x01,
  0x00,
  0x00,
  0x00,
  ...section(1, [3, ...scan.type, ...dot.type, ...choose.type]),
  ...section(2, [1, ...named("m"), ...named("m"), 0x02, 0x00, 0x01]),
  ...section(3, [3, 0, 1, 2]),
  ...section(7, [3, ...named("scan"), 0x00, 0, ...named("dot"), 0x00, 1, ...named("choose"), 0x00, 2]),
  ...section(10, [3, ...code(scan), ...code(dot), ...code(choose)])
])

interface VectorLoops {
  readonly memory: WebAssembly.Memory
  /** Groups and rows a group, at least one each, and the numbers of the formula. */
  readonly scan: (groups: number, rows: number, delta: number, base: number) => void
  /**
   * Groups, at least one, the address of the first one's results and bytes from one group to the next; the bound; and
   * where to write, with room for eight bytes a group. Returns the address after the last write.
   */
  readonly choose: (groups: number, results: number, stride: number, bound: number, out: number) => number
  /** Addresses (1 to `addressesMax`), and sixteens a vector. */
  readonly dot: (count: number, blocks: number) => void
  /** Grows the memory to this many bytes. Earlier views of the memory are invalid then. */
  readonly reserve: (bytes: number) => void
}

const pageBytes = 65_536

let compiled: WebAssembly.Module | undefined

export const makeVectorLoops = (): VectorLoops => {
  compiled ??= new WebAssembly.Module(moduleBytes)
  const memory = new WebAssembly.Memory({ initial: 1 })
  const { exports } = new WebAssembly.Instance(compiled, { m: { m: memory } })
  return {
    memory,
    scan: exports["scan"] as VectorLoops["scan"],
    dot: exports["dot"] as VectorLoops["dot"],
    choose: exports["choose"] as VectorLoops["choose"],
    reserve: (bytes) => {
      const has = memory.buffer.byteLength
      // An eighth more than there was, so that growing stays rare.
      if (bytes > has) memory.grow(Math.ceil(Math.max(bytes - has, has / 8) / pageBytes))
    }
  }
}
