// The inner loops of the vector scan, as a WebAssembly module with SIMD (`vectorLoops.as`). With them a scan of 100,000
// vectors of 384 numbers takes a millisecond instead of ten. Each instance has a separate memory.
import { Result } from "effect"
import { Base64 } from "effect/encoding"
import { loopsWasmBase64 } from "./vectorLoopsWasm.ts"

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
  compiled ??= new WebAssembly.Module(Uint8Array.from(Result.getOrThrow(Base64.decode(loopsWasmBase64))))
  const memory = new WebAssembly.Memory({ initial: 1 })
  const { exports } = new WebAssembly.Instance(compiled, { env: { memory } })
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
