// One bit per number of each vector, and an estimate of their dot products with a query from only those bits: the
// vector's signs around a mean (embeddings share a direction), against the full query. A vector x' = x − mean is
// approximated by its signs times |x'|² / Σ|x'|, which makes the estimate right on average. Positions are numbered
// from 0 without gaps. Pure memory, no I/O.
import { groupBytes, groupsAt, groupSize, makeVectorLoops, positionsMax } from "./vectorLoops.ts"

/** Bins of estimates, which lie between −2 and 2 except for rare ones at the ends. */
const bins = 4_096
const binOf = (estimate: number): number => Math.max(0, Math.min(bins - 1, (bins / 2 + estimate * (bins / 4)) | 0))
/** Groups that a bound may be read from. */
const sampledMin = 256

export class SignCodes {
  readonly #dimension: number
  readonly #rows: number
  readonly #stride: number
  readonly #resultsAt: number
  readonly #mean: Float32Array
  readonly #loops = makeVectorLoops()
  #size = 0

  constructor(mean: Float32Array) {
    this.#mean = mean
    this.#dimension = mean.length
    this.#rows = Math.ceil(mean.length / 8)
    if (2 * this.#rows > positionsMax) throw new Error(`vectors of ${mean.length} numbers are too long to scan`)
    this.#stride = groupBytes(this.#rows)
    this.#resultsAt = groupsAt + 16 * this.#rows + 4 * groupSize
  }

  /** Puts a vector at a position: one there is, or the next. */
  put(position: number, vector: ArrayLike<number>): void {
    this.#size = Math.max(this.#size, position + 1)
    const base = groupsAt + Math.floor(position / groupSize) * this.#stride
    this.#loops.reserve(base + this.#stride)
    const bytes = new Uint8Array(this.#loops.memory.buffer)
    const lane = position % groupSize
    let square = 0
    let sum = 0
    for (let row = 0; row < this.#rows; row++) {
      let byte = 0
      for (let bit = 0; bit < 8; bit++) {
        const at = 8 * row + bit
        if (at >= this.#dimension) break
        const part = vector[at]! - this.#mean[at]!
        square += part * part
        sum += Math.abs(part)
        if (part > 0) byte |= 1 << bit
      }
      bytes[base + 16 * row + lane] = byte
    }
    new Float32Array(this.#loops.memory.buffer, base + 16 * this.#rows, groupSize)[lane] = sum === 0 ? 0 : square / sum
  }

  /** The positions of the best estimates: about as many as required, in the order of positions. */
  best(query: ArrayLike<number>, required: number): ReadonlyArray<number> {
    if (this.#size === 0) return []
    const groups = Math.ceil(this.#size / groupSize)
    const chosenAt = groupsAt + groups * this.#stride
    this.#loops.reserve(chosenAt + 8 * groups)
    const { base, delta } = this.#tabulate(query)
    this.#loops.scan(groups, this.#rows, delta, base)
    const bound = this.#boundOf(groups, required)
    const end = this.#loops.choose(groups, this.#resultsAt, this.#stride, bound, chosenAt)
    const found = new Int32Array(this.#loops.memory.buffer, chosenAt, (end - chosenAt) / 4)
    const chosen: Array<number> = []
    for (let at = 0; at < found.length; at += 2) {
      for (let bits = found[at + 1]!; bits !== 0; bits &= bits - 1) {
        const position = groupSize * found[at]! + 31 - Math.clz32(bits & -bits)
        // The last group has room for more.
        if (position < this.#size) chosen.push(position)
      }
    }
    return chosen
  }

  /** The estimate that about as many as required reach. */
  #boundOf(groups: number, required: number): number {
    const floats = new Float32Array(this.#loops.memory.buffer)
    const first = this.#resultsAt / 4
    const step = this.#stride / 4
    // Every eighth group is enough to find the bound: the required number need not be exact.
    const every = groups < 8 * sampledMin ? 1 : 8
    const counts = new Uint32Array(bins)
    let sampled = 0
    for (let group = 0; group < groups; group += every) {
      const from = first + group * step
      const to = from + Math.min(groupSize, this.#size - group * groupSize)
      sampled += to - from
      for (let at = from; at < to; at++) counts[binOf(floats[at]!)]! += 1
    }
    const enough = Math.ceil((required * sampled) / this.#size)
    let bin = bins - 1
    for (let seen = counts[bin]!; seen < enough && bin > 0;) seen += counts[--bin]!
    return bin === 0 ? -Infinity : (bin - bins / 2) / (bins / 4)
  }

  /**
   * The contributions of each four signs, in every combination, to the dot product: as bytes, with the scale and offset
   * to convert them back to numbers.
   */
  #tabulate(query: ArrayLike<number>): { readonly delta: number; readonly base: number } {
    const positions = 2 * this.#rows
    // Two entries are added as bytes, and all of them as 16 bits.
    const entryMax = Math.min(127, Math.floor(65_535 / positions))
    let base = 0
    let widest = 0
    const halves = new Float64Array(positions)
    for (let position = 0; position < positions; position++) {
      let half = 0
      for (let bit = 0; bit < 4; bit++) half += Math.abs(query[4 * position + bit] ?? 0)
      halves[position] = half
      base -= half
      widest = Math.max(widest, 2 * half)
    }
    const delta = widest === 0 ? 1 : widest / entryMax
    const bytes = new Uint8Array(this.#loops.memory.buffer, 0, 16 * positions)
    for (let position = 0; position < positions; position++) {
      for (let signs = 0; signs < 16; signs++) {
        let sum = halves[position]!
        for (let bit = 0; bit < 4; bit++)
          sum += ((signs >> bit) & 1) * 2 * (query[4 * position + bit] ?? 0) - (query[4 * position + bit] ?? 0)
        bytes[16 * position + signs] = Math.min(entryMax, Math.round(sum / delta))
      }
    }
    return { delta, base }
  }
}
