// The quantized scan finds the same vectors as an exact scan.
import { describe, expect, it } from "vitest"
import { QuantizedVectors } from "../../../../plugins/search-semantic/index/QuantizedVectors.ts"

/** A small seeded generator, so that a failure is reproducible. */
const randomFrom = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
}

// Preselection by signs is correct on average, but not always: the decisive runs are the same every time.
const seed = Number(process.env["TOLLKEEPER_TEST_SEED"] ?? 7)
console.log(`seed ${seed}`)
const random = randomFrom(seed)
const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())

const unit = (numbers: ReadonlyArray<number>): Float32Array => {
  const length = Math.hypot(...numbers)
  return Float32Array.from(numbers, (one) => one / length)
}

/** Vectors in clusters around topics with a common direction, as embeddings are. */
const embeddings = (count: number, dimension: number, topics: number): ReadonlyArray<Float32Array> => {
  const shared = Array.from({ length: dimension }, normal)
  const centres = Array.from({ length: topics }, () => Array.from({ length: dimension }, normal))
  return Array.from({ length: count }, (_, at) =>
    unit(centres[at % topics]!.map((one, i) => shared[i]! + one + 0.9 * normal()))
  )
}

const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, one, at) => sum + one * b[at]!, 0)

describe("quantized vectors", () => {
  it("quantized search returns 95 of the exact nearest 100", () => {
    const all = embeddings(8_000, 128, 200)
    const stored = new QuantizedVectors(128)
    stored.put(all.map((vector, at) => ({ id: BigInt(at), vector })))
    let found = 0
    for (let query = 0; query < 20; query++) {
      const vector = unit(Array.from(all[query * 37]!, (one) => one + 0.03 * normal()))
      const exact = all
        .map((one, at) => ({ at, similarity: dot(one, vector) }))
        .sort((a, b) => b.similarity - a.similarity)
        .slice(0, 20)
      const near = stored.nearest(vector, 20)
      const ids = new Set(near.map(({ id }) => Number(id)))
      found += exact.filter(({ at }) => ids.has(at)).length
      for (const { id, similarity } of near)
        expect(Math.abs(similarity - dot(all[Number(id)]!, vector))).toBeLessThan(0.01)
    }
    expect(found / 400, `seed ${seed}`).toBeGreaterThanOrEqual(0.95)
  })

  it.each([20, 44, 100, 384, 1_536, 4_096])("quantized scores match exact ones at %d dimensions", (dimension) => {
    const all = embeddings(2_500, dimension, 60)
    const stored = new QuantizedVectors(dimension, 60)
    // Some before the codes are built, some after, and one of each kind replaced by another's neighbor.
    for (const [from, to] of [
      [0, 2_100],
      [2_100, 2_500]
    ] as const)
      stored.put(all.slice(from, to).map((vector, at) => ({ id: BigInt(from + at), vector })))
    for (const at of [17, 2_417]) {
      stored.put([{ id: BigInt(at), vector: all[at + 1]! }])
      const near = stored.nearest(all[at + 1]!, 12)
      expect(
        near.map(({ id }) => Number(id)),
        `seed ${seed}`
      ).toEqual(expect.arrayContaining([at, at + 1]))
      for (const { id, similarity } of near) {
        const exact = dot(id === 17n || id === 2_417n ? all[Number(id) + 1]! : all[Number(id)]!, all[at + 1]!)
        expect(Math.abs(similarity - exact), `seed ${seed}`).toBeLessThan(0.02)
      }
    }
  })

  it("quantized sums do not overflow when every number adds up", () => {
    const [dimension, others] = [4_096, embeddings(2_100, 4_096, 2_100)]
    const alike = unit(Array.from({ length: dimension }, () => 1))
    const stored = new QuantizedVectors(dimension, 60)
    stored.put(others.map((vector, at) => ({ id: BigInt(at), vector })))
    stored.put([{ id: 9_999n, vector: alike }])
    expect(stored.nearest(alike, 1)[0]!.id).toBe(9_999n)
    expect(stored.nearest(alike, 1)[0]!.similarity).toBeCloseTo(1, 2)
  })

  it("quantized search finds later vectors unlike the first ones", () => {
    const [early, late] = [embeddings(2_100, 64, 1), embeddings(16_000, 64, 300)]
    const stored = new QuantizedVectors(64, 150)
    stored.put(early.map((vector, at) => ({ id: BigInt(at), vector })))
    stored.put(late.map((vector, at) => ({ id: BigInt(10_000 + at), vector })))
    let found = 0
    for (let query = 0; query < 20; query++) {
      const exact = late
        .map((one, at) => ({ at, similarity: dot(one, late[query * 31]!) }))
        .sort((a, b) => b.similarity - a.similarity)
        .slice(0, 10)
      const ids = new Set(stored.nearest(late[query * 31]!, 10).map(({ id }) => Number(id) - 10_000))
      found += exact.filter(({ at }) => ids.has(at)).length
    }
    expect(found, `seed ${seed}`).toBeGreaterThanOrEqual(175)
  })

  it("quantized vectors are replaced, grow, and rank among given ids only", () => {
    const stored = new QuantizedVectors(8)
    const axis = (at: number) => unit(Array.from({ length: 8 }, (_, i) => (i === at ? 1 : 0.01)))
    stored.put([0, 1, 2, 3, 4].map((at) => ({ id: BigInt(at), vector: axis(at) })))
    expect(stored.size).toBe(5)
    expect(stored.nearest(axis(3), 1)[0]!.id).toBe(3n)
    stored.put([{ id: 3n, vector: axis(7) }])
    expect(stored.size).toBe(5)
    expect(stored.nearest(axis(7), 1)[0]!.id).toBe(3n)
    expect(
      stored
        .nearest(axis(7), 9, [1n, 2n, 99n])
        .map(({ id }) => id)
        .toSorted()
    ).toEqual([1n, 2n])
    expect(new QuantizedVectors(8).nearest(axis(0), 5)).toEqual([])
  })

  it("each change gives quantized vectors a new edition, per copy", () => {
    const vectors = [{ id: 1n, vector: new Float32Array([1, 0]) }]
    const [stored, other] = [new QuantizedVectors(2), new QuantizedVectors(2)]
    const editions = new Set([stored.edition, other.edition])
    for (const one of [stored, other, stored]) {
      one.put(vectors)
      one.put([])
      editions.add(stored.edition).add(other.edition)
    }
    expect(editions.size).toBe(5)
  })
})

describe("the background of quantized vectors", () => {
  it("the background is the mean similarity of a bounded sample", () => {
    const all = embeddings(4_000, 100, 100)
    const stored = new QuantizedVectors(100)
    const one = unit(Array.from({ length: 100 }, normal))
    const similarities = all.map((vector) => dot(vector, one))
    stored.put(all.slice(0, 19).map((vector, at) => ({ id: BigInt(at), vector })))
    expect(stored.background(one)).toBeUndefined()
    for (const [count, places] of [
      [60, 60],
      [4_000, 1_000]
    ] as const) {
      stored.put(all.slice(0, count).map((vector, at) => ({ id: BigInt(at), vector })))
      const { chance, deviation, mean } = stored.background(one)!
      const exact = similarities.slice(0, count)
      const exactMean = exact.reduce((sum, similarity) => sum + similarity, 0) / count
      const exactDeviation = Math.sqrt(exact.reduce((sum, one) => sum + (one - exactMean) ** 2, 0) / count)
      expect(Math.abs(mean - exactMean)).toBeLessThan(count === places ? 0.002 : 0.15 * exactDeviation)
      expect(deviation / exactDeviation).toBeGreaterThan(count === places ? 0.99 : 0.9)
      expect(deviation / exactDeviation).toBeLessThan(count === places ? 1.01 : 1.1)
      expect(chance).toBeCloseTo(Math.sqrt(2 * Math.log(places)), 12)
    }
  })

  it("there is no background when all vectors are equal", () => {
    const [vector] = embeddings(1, 100, 1)
    const stored = new QuantizedVectors(100)
    stored.put(Array.from({ length: 30 }, (_, at) => ({ id: BigInt(at), vector: vector! })))
    expect(stored.background(vector!)).toBeUndefined()
  })
})
