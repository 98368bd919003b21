// Selection only by signs: existing positions, in order, and as many of each group of sixteen as score well enough.
import { describe, expect, it } from "vitest"
import { SignCodes } from "../../../../plugins/search-semantic/index/SignCodes.ts"

/** A component of the vector, positive or negative, for each bit of a position. */
const vectorOf = (place: number): Float32Array =>
  Float32Array.from({ length: 20 }, (_, bit) => (((place >> bit) & 1) === 1 ? 1 : -1))

const codesOf = (size: number): SignCodes => {
  const codes = new SignCodes(new Float32Array(20))
  for (let place = 0; place < size; place++) codes.put(place, vectorOf(place))
  return codes
}

const first = (count: number) => Array.from({ length: count }, (_, place) => place)

describe("selection of vectors by their signs", () => {
  it.each([0, 1, 15, 16, 17, 100])("sign selection returns all and only existing vectors: %i of them", (size) => {
    expect(codesOf(size).best(vectorOf(5), 1_000)).toEqual(first(size))
  })

  it("sign selection returns those matching the query's signs, whole groups if needed", () => {
    const codes = codesOf(64)
    const query = new Float32Array(20)
    query[4] = 1
    // The fifth bit of a place is shared by every other sixteen.
    const sixteens = [...first(16).map((at) => 16 + at), ...first(16).map((at) => 48 + at)]
    expect(codes.best(query, 20)).toEqual(sixteens)
    query[0] = 1
    expect(codes.best(query, 10)).toEqual(sixteens.filter((place) => place % 2 === 1))
  })

  it("vectors inserted after a search are selected as well", () => {
    const codes = codesOf(16)
    expect(codes.best(vectorOf(3), 16)).toHaveLength(16)
    for (let place = 16; place < 40; place++) codes.put(place, vectorOf(place))
    expect(codes.best(vectorOf(3), 40)).toEqual(codesOf(40).best(vectorOf(3), 40))
    expect(codes.best(vectorOf(37), 1)).toEqual(codesOf(40).best(vectorOf(37), 1))
  })
})
