// Vectors of one generation in the memory of a process, small enough to be scanned for each query: one bit per number
// for a first choice (`SignCodes.ts`), eight bits per number to rank the chosen ones. 100,000 vectors of 384 numbers
// take 45 MB and a search of them two milliseconds or so; few vectors are all ranked. Pure memory, no I/O.
import { SignCodes } from "./SignCodes.ts"
import { addressesAt, addressesMax, makeVectorLoops, productsAt, vectorsAt } from "./vectorLoops.ts"

/** Vectors ranked by eight bits a required hit, and at least. */
const oversample = 4
const rankedMin = 1_600
/** Up to here the first choice would cost more than it saves. */
const smallMax = 2_000
/** The largest number of a query, of 16 bits: small enough for the sums of 4,096 products. */
const queryMax = 2_047
/** Shrinkage: at this many vectors half of their common component is removed. */
const commonFrom = 50
/** When the mean is computed: at the first of these sizes, and again when later vectors outnumber the earlier ones. */
const centredAt = [smallMax + 1, 16_384]

/** Minimum sample and sample cap for the background distribution. */
const backgroundFrom = 20
const backgroundMax = 1_000

/** How similar any of the vectors is to one: mean and standard deviation. */
export interface Background {
  readonly mean: number
  readonly deviation: number
  /** Expected deviations of the most similar vector from the mean, by chance. */
  readonly chance: number
}

export interface Similar {
  readonly id: bigint
  readonly similarity: number
}

/** The smallest of the n greatest, of more than n values. */
const leastOf = (numbers: Float64Array, many: number): number => {
  const left = numbers.slice()
  const position = left.length - many
  // Hoare's selection: partitions around the position, without sorting.
  for (let from = 0, to = left.length - 1; from < to;) {
    const pivot = left[(from + to) >> 1]!
    let [low, high] = [from, to]
    while (low <= high) {
      while (left[low]! < pivot) low += 1
      while (left[high]! > pivot) high -= 1
      if (low > high) break
      const one = left[low]!
      left[low] = left[high]!
      left[high] = one
      low += 1
      high -= 1
    }
    if (position <= high) to = high
    else if (position >= low) from = low
    else break
  }
  return left[position]!
}

/** Copies made in this process. */
let copies = 0

export class QuantizedVectors {
  readonly #copy = (copies += 1)
  #puts = 0
  readonly #dimension: number
  readonly #ranked: number
  /** Bytes of one vector, filled up with zeros. */
  readonly #stride: number
  readonly #loops = makeVectorLoops()
  /** Ids as numbers, which no table outgrows: a hundred thousand numbers do not need an object each. */
  readonly #positions = new Map<number, number>()
  readonly #ids: Array<number> = []
  #scales = new Float32Array(1_024)
  /** Sum of all stored vectors. */
  readonly #sum: Float64Array
  #codes: SignCodes | undefined
  #centrings = 0

  /** `ranked`: vectors ranked by eight bits, at least. */
  constructor(dimension: number, ranked = rankedMin) {
    this.#dimension = dimension
    this.#ranked = ranked
    this.#stride = 16 * Math.ceil(dimension / 16)
    this.#sum = new Float64Array(dimension)
  }

  get size(): number {
    return this.#ids.length
  }

  /** Another one after each `put`, and of each copy. */
  get edition(): string {
    return `${this.#copy}.${this.#puts}`
  }

  /** Puts vectors of length 1 in; a known id is replaced. */
  put(vectors: ReadonlyArray<{ readonly id: bigint; readonly vector: Float32Array }>): void {
    if (vectors.length > 0) this.#puts += 1
    for (const { id, vector } of vectors) this.#putOne(Number(id), vector)
    if (this.size < (centredAt[this.#centrings] ?? Infinity)) return
    this.#centrings = centredAt.filter((size) => this.size >= size).length
    this.#centre()
  }

  #putOne(id: number, vector: Float32Array): void {
    let position = this.#positions.get(id)
    if (position === undefined) {
      position = this.#ids.length
      this.#ids.push(id)
      this.#positions.set(id, position)
      this.#loops.reserve(vectorsAt + this.#ids.length * this.#stride)
      if (position >= this.#scales.length) {
        const scales = new Float32Array(2 * position)
        scales.set(this.#scales)
        this.#scales = scales
      }
    } else this.#addToSum(position, -1)
    let largest = 0
    for (const one of vector) largest = Math.max(largest, Math.abs(one))
    const scale = largest / 127
    this.#scales[position] = scale
    const bytes = this.#bytesOf(position)
    for (let at = 0; at < this.#dimension; at++) bytes[at] = Math.round(vector[at]! / scale)
    this.#addToSum(position, 1)
    this.#codes?.put(position, vector)
  }

  #addToSum(position: number, sign: 1 | -1): void {
    const bytes = this.#bytesOf(position)
    const scale = sign * this.#scales[position]!
    for (let at = 0; at < this.#dimension; at++) this.#sum[at]! += scale * bytes[at]!
  }

  /**
   * A vector of length 1 without the component that all vectors have in common, removed the more the more vectors there
   * are: the rest separates them.
   */
  distinguishing(vector: Float32Array): Float32Array {
    const length = Math.hypot(...this.#sum)
    if (length === 0) return vector
    const shared = vector.reduce((sum, one, at) => sum + (one * this.#sum[at]!) / length, 0)
    const share = (shared * this.size) / (this.size + commonFrom) / length
    const own = vector.map((one, at) => one - share * this.#sum[at]!)
    const rest = Math.hypot(...own)
    return rest < 1e-6 ? vector : own.map((one) => one / rest)
  }

  /** Rebuilds all codes around the mean of the current vectors. */
  #centre(): void {
    const mean = new Float32Array(this.#dimension)
    const one = new Float32Array(this.#dimension)
    for (let position = 0; position < this.size; position++) {
      this.#read(position, one)
      for (let at = 0; at < mean.length; at++) mean[at]! += one[at]! / this.size
    }
    this.#codes = new SignCodes(mean)
    for (let position = 0; position < this.size; position++) this.#codes.put(position, this.#read(position, one))
  }

  #bytesOf(position: number): Int8Array {
    return new Int8Array(this.#loops.memory.buffer, vectorsAt + position * this.#stride, this.#dimension)
  }

  #read(position: number, into: Float32Array): Float32Array {
    const bytes = this.#bytesOf(position)
    for (let at = 0; at < this.#dimension; at++) into[at] = bytes[at]! * this.#scales[position]!
    return into
  }

  #similarities(vector: Float32Array, positions: ReadonlyArray<number>): Float64Array {
    const { buffer } = this.#loops.memory
    let largest = 0
    for (const one of vector) largest = Math.max(largest, Math.abs(one))
    const unit = largest === 0 ? 1 : largest / queryMax
    const query = new Int16Array(buffer, 0, this.#stride)
    for (let at = 0; at < this.#dimension; at++) query[at] = Math.round(vector[at]! / unit)
    const addresses = new Uint32Array(buffer, addressesAt, addressesMax)
    const products = new Int32Array(buffer, productsAt, addressesMax)
    const similarities = new Float64Array(positions.length)
    for (let from = 0; from < positions.length; from += addressesMax) {
      const count = Math.min(addressesMax, positions.length - from)
      for (let at = 0; at < count; at++) addresses[at] = vectorsAt + positions[from + at]! * this.#stride
      this.#loops.dot(count, this.#stride / 16)
      for (let at = 0; at < count; at++)
        similarities[from + at] = products[at]! * this.#scales[positions[from + at]!]! * unit
    }
    return similarities
  }

  /** A vector's similarity to the others, from a thousand of them at most; undefined if there are few. */
  background(vector: Float32Array): Background | undefined {
    if (this.size < backgroundFrom) return undefined
    const step = Math.ceil(this.size / backgroundMax)
    const positions = Array.from({ length: Math.ceil(this.size / step) }, (_, at) => at * step)
    const similarities = this.#similarities(vector, positions)
    const count = similarities.length
    const mean = similarities.reduce((sum, one) => sum + one, 0) / count
    const deviation = Math.sqrt(similarities.reduce((sum, one) => sum + (one - mean) ** 2, 0) / count)
    // The expected maximum of n normal numbers, as n grows.
    return deviation < 1e-6 ? undefined : { mean, deviation, chance: Math.sqrt(2 * Math.log(count)) }
  }

  /** The most similar, best first. `among` restricts to these ids and then ranks all of them. */
  nearest(vector: Float32Array, limit: number, among?: ReadonlyArray<bigint>): ReadonlyArray<Similar> {
    const positions =
      among !== undefined
        ? among.flatMap((id) => this.#positions.get(Number(id)) ?? [])
        : (this.#codes?.best(vector, Math.max(this.#ranked, oversample * limit)) ?? Array.from(this.#ids.keys()))
    const similarities = this.#similarities(vector, positions)
    const least = limit >= positions.length ? -Infinity : leastOf(similarities, limit)
    const hits: Array<Similar> = []
    for (let at = 0; at < positions.length; at++) {
      if (similarities[at]! >= least)
        hits.push({ id: BigInt(this.#ids[positions[at]!]!), similarity: similarities[at]! })
    }
    return hits.sort((a, b) => b.similarity - a.similarity || (a.id < b.id ? -1 : 1)).slice(0, limit)
  }
}
