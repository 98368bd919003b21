// Vectors of one generation in the memory of a process, small enough to be scanned for each query: one bit a number for a first choice
// by Hamming distance, eight bits a number to rank what was chosen. The mean of the first vectors is taken off before the
// signs are, since embeddings share a direction. 100,000 vectors of 384 numbers take 43 MB and a few milliseconds. Pure memory, no I/O.

/** Vectors ranked by eight bits a wanted hit, and at least. */
const oversample = 4
const rankedMin = 400
/** Up to here the first choice would cost more than it saves. */
const smallMax = 2_000

export interface Similar {
  readonly id: bigint
  readonly similarity: number
}

const bitsIn = (word: number): number => {
  let n = word - ((word >>> 1) & 0x55555555)
  n = (n & 0x33333333) + ((n >>> 2) & 0x33333333)
  return Math.imul((n + (n >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}

export class QuantizedVectors {
  readonly #dimension: number
  readonly #words: number
  readonly #places = new Map<bigint, number>()
  #ids: Array<bigint> = []
  #bytes: Int8Array
  #scales: Float32Array
  #bits: Int32Array
  #mean: Float32Array | undefined

  constructor(dimension: number, room = 1_024) {
    this.#dimension = dimension
    this.#words = Math.ceil(dimension / 32)
    this.#bytes = new Int8Array(room * dimension)
    this.#scales = new Float32Array(room)
    this.#bits = new Int32Array(room * this.#words)
  }

  get size(): number {
    return this.#ids.length
  }

  /** Puts vectors of length 1 in; a known id is replaced. The first call decides the mean. */
  put(vectors: ReadonlyArray<{ readonly id: bigint; readonly vector: Float32Array }>): void {
    if (this.#mean === undefined && vectors.length > 0) {
      const mean = new Float32Array(this.#dimension)
      for (const { vector } of vectors) for (let at = 0; at < mean.length; at++) mean[at]! += vector[at]! / vectors.length
      this.#mean = mean
    }
    for (const { id, vector } of vectors) this.#putOne(id, vector)
  }

  #putOne(id: bigint, vector: Float32Array): void {
    let place = this.#places.get(id)
    if (place === undefined) {
      place = this.#ids.length
      this.#ids.push(id)
      this.#places.set(id, place)
      if (place >= this.#scales.length) this.#grow()
    }
    let largest = 0
    for (const one of vector) largest = Math.max(largest, Math.abs(one))
    const scale = largest / 127
    this.#scales[place] = scale
    const base = place * this.#dimension
    for (let at = 0; at < this.#dimension; at++) this.#bytes[base + at] = Math.round(vector[at]! / scale)
    this.#sign(vector, this.#bits, place * this.#words)
  }

  #sign(vector: Float32Array, into: Int32Array, base: number): void {
    into.fill(0, base, base + this.#words)
    for (let at = 0; at < this.#dimension; at++) if (vector[at]! > this.#mean![at]!) into[base + (at >>> 5)]! |= 1 << (at & 31)
  }

  #grow(): void {
    const room = this.#scales.length * 2
    const enlarge = <A extends Int8Array | Int32Array | Float32Array>(old: A, made: A): A => {
      made.set(old as never)
      return made
    }
    this.#bytes = enlarge(this.#bytes, new Int8Array(room * this.#dimension))
    this.#scales = enlarge(this.#scales, new Float32Array(room))
    this.#bits = enlarge(this.#bits, new Int32Array(room * this.#words))
  }

  #similarity(vector: Float32Array, place: number): number {
    const base = place * this.#dimension
    let sum = 0
    for (let at = 0; at < this.#dimension; at++) sum += vector[at]! * this.#bytes[base + at]!
    return sum * this.#scales[place]!
  }

  /** The places with the smallest Hamming distances to the query's signs, by counting: no sort of everything. */
  #nearestBits(vector: Float32Array, wanted: number): ReadonlyArray<number> {
    const words = this.#words
    const signs = new Int32Array(words)
    this.#sign(vector, signs, 0)
    const distances = new Uint16Array(this.#ids.length)
    const counts = new Uint32Array(this.#dimension + 1)
    for (let place = 0, base = 0; place < distances.length; place++, base += words) {
      let distance = 0
      for (let at = 0; at < words; at++) distance += bitsIn(this.#bits[base + at]! ^ signs[at]!)
      distances[place] = distance
      counts[distance]! += 1
    }
    let bound = 0
    for (let seen = counts[0]!; seen < wanted && bound < this.#dimension;) seen += counts[++bound]!
    const chosen: Array<number> = []
    for (let place = 0; place < distances.length; place++) if (distances[place]! <= bound) chosen.push(place)
    return chosen
  }

  /** The most similar, best first. `among` restricts to these ids and then ranks all of them. */
  nearest(vector: Float32Array, limit: number, among?: ReadonlyArray<bigint>): ReadonlyArray<Similar> {
    if (this.#mean === undefined) return []
    const places = among !== undefined
      ? among.flatMap((id) => this.#places.get(id) ?? [])
      : this.size <= smallMax ? Array.from(this.#ids.keys()) : this.#nearestBits(vector, Math.max(rankedMin, oversample * limit))
    return places
      .map((place) => ({ id: this.#ids[place]!, similarity: this.#similarity(vector, place) }))
      .sort((a, b) => b.similarity - a.similarity || (a.id < b.id ? 1 : -1))
      .slice(0, limit)
  }
}
