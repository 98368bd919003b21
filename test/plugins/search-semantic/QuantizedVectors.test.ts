// The quantized scan finds what an exact one finds.
import { describe, expect, it } from "vitest"
import { QuantizedVectors } from "../../../plugins/search-semantic/QuantizedVectors.ts"

/** A small generator with a seed, so that a failure can be seen again. */
const randomFrom = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
}

const seed = Number(process.env["TOLLKEEPER_TEST_SEED"] ?? Date.now() % 1_000_000)
console.log(`seed ${seed}`)
const random = randomFrom(seed)
const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())

const unit = (numbers: ReadonlyArray<number>): Float32Array => {
  const length = Math.hypot(...numbers)
  return Float32Array.from(numbers, (one) => one / length)
}

/** Vectors in clusters around topics and with a direction that all share, as embeddings are. */
const embeddings = (count: number, dimension: number, topics: number): ReadonlyArray<Float32Array> => {
  const shared = Array.from({ length: dimension }, normal)
  const centres = Array.from({ length: topics }, () => Array.from({ length: dimension }, normal))
  return Array.from({ length: count }, (_, at) => unit(centres[at % topics]!.map((one, i) => shared[i]! + one + 0.9 * normal())))
}

const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, one, at) => sum + one * b[at]!, 0)

describe("quantized vectors", () => {
  it("return 95 of 100 of the exact nearest", () => {
    const all = embeddings(8_000, 128, 200)
    const stored = new QuantizedVectors(128)
    stored.put(all.map((vector, at) => ({ id: BigInt(at), vector })))
    let found = 0
    for (let query = 0; query < 20; query++) {
      const vector = unit(Array.from(all[query * 37]!, (one) => one + 0.03 * normal()))
      const exact = all.map((one, at) => ({ at, similarity: dot(one, vector) })).sort((a, b) => b.similarity - a.similarity).slice(0, 20)
      const near = stored.nearest(vector, 20)
      const ids = new Set(near.map(({ id }) => Number(id)))
      found += exact.filter(({ at }) => ids.has(at)).length
      for (const { id, similarity } of near) expect(Math.abs(similarity - dot(all[Number(id)]!, vector))).toBeLessThan(0.01)
    }
    expect(found / 400, `seed ${seed}`).toBeGreaterThanOrEqual(0.95)
  })

  it("replaces a vector, grows, and ranks among given ids only", () => {
    const stored = new QuantizedVectors(8, 2)
    const axis = (at: number) => unit(Array.from({ length: 8 }, (_, i) => i === at ? 1 : 0.01))
    stored.put([0, 1, 2, 3, 4].map((at) => ({ id: BigInt(at), vector: axis(at) })))
    expect(stored.size).toBe(5)
    expect(stored.nearest(axis(3), 1)[0]!.id).toBe(3n)
    stored.put([{ id: 3n, vector: axis(7) }])
    expect(stored.size).toBe(5)
    expect(stored.nearest(axis(7), 1)[0]!.id).toBe(3n)
    expect(stored.nearest(axis(7), 9, [1n, 2n, 99n]).map(({ id }) => id).toSorted()).toEqual([1n, 2n])
    expect(new QuantizedVectors(8).nearest(axis(0), 5)).toEqual([])
  })
})
