// The table of word vectors and its reading of texts.
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import { Spelling } from "../../../plugins/search-semantic/embedded/spelling.ts"
import { queryMeaning, resourceVector } from "../../../plugins/search-semantic/embedded/textVector.ts"
import { tableHash, LoadedWordTable } from "../../../plugins/search-semantic/embedded/WordTable.ts"
import { QuantizedVectors } from "../../../plugins/search-semantic/index/QuantizedVectors.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"
import { randomFrom } from "../analytics/recount.ts"
import { resourceDocument } from "../search-lexical/resourceDocument.ts"

const services = Layer.merge(NodeServices.layer, NodeCrypto.layer)
const table = Effect.flatMap(LoadedWordTable, ({ table }) => table).pipe(
  Effect.provide(LoadedWordTable.layer.pipe(Layer.provide(services)))
)
const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, one, at) => sum + one * b[at]!, 0)
const named = (serviceName: string, description = "") =>
  resourceDocument({ id: 1n, serviceName, description, resource: "https://x.example/" })

const letters = "abcd"
/** Every text that one typo after the first letter makes of a word. */
const slipsOf = (word: string): ReadonlyArray<string> =>
  [...word, ""].flatMap((_, at) => {
    if (at === 0) return []
    const [head, tail] = [word.slice(0, at), word.slice(at)]
    const others = [...letters].flatMap((letter) => [head + letter + tail, head + letter + tail.slice(1)])
    const swapped = tail.length > 1 ? [head + tail[1]! + tail[0]! + tail.slice(2)] : []
    return [head + tail.slice(1), ...others, ...swapped]
  })

it("typo lookup returns the most common word, like trying every typo", () => {
  const random = randomFrom(7_919)
  const text = () => Array.from({ length: 4 + random.below(4) }, () => random.pick([...letters])).join("")
  const words = [...new Set(Array.from({ length: 400 }, text))]
  const spelling = new Spelling(words)
  const asked = [...words, ...Array.from({ length: 2_000 }, text)].filter((word) => word.length >= 5)
  const places = asked.map((word) => {
    const slips = new Set(slipsOf(word).filter((slip) => slip !== word))
    return words.findIndex((one) => slips.has(one))
  })
  expect(asked.map((word) => spelling.likeliest(word))).toEqual(places.map((place) => words[place]))
  // Some are one typo away from a word, and some from none.
  expect(places).toContain(-1)
  expect(places.filter((place) => place >= 0).length).toBeGreaterThan(500)
})

describe("the table of word vectors", () => {
  it.effect("word vectors match meaning without shared words, and know the unknown", () =>
    Effect.gen(function* () {
      const words = yield* table
      const resources = ["Weather forecast", "Soccer results", "Currency exchange", "Medicine interactions"].map(
        (name) => resourceVector(words, named(name))!
      )
      const first = (query: string) => {
        const { vector } = queryMeaning(words, query)!
        const likeness = resources.map((one) => dot(one, vector))
        return likeness.indexOf(Math.max(...likeness))
      }
      expect(["will it rain tomorrow", "football scores", "dollars to euros", "two pills together"].map(first)).toEqual(
        [0, 1, 2, 3]
      )
      expect(queryMeaning(words, "xqzzt plornk")).toBeUndefined()
      expect(queryMeaning(words, "weather xqzzt")!.known).toBeLessThan(0.6)
      expect(queryMeaning(words, "weather")!.known).toBe(1)
      for (const vector of resources) expect(Math.hypot(...vector)).toBeCloseTo(1, 5)
    })
  )

  it.effect("similar words are returned, most similar first", () =>
    Effect.gen(function* () {
      const words = yield* table
      const [itself, ...alike] = words.alike("photo", 0.6)
      // An exact known word is the most similar to itself; a corrected one is not.
      expect(itself).toMatchObject({ word: "photo", likeness: 1 })
      const [today] = words.alike("today", 0.9)
      expect(today!.frequency).toBeGreaterThan(5 * itself!.frequency!)
      expect(words.alike("wether", 0.6).some(({ word }) => word === "wether")).toBe(false)
      expect(words.alike("погода", 0.6).some(({ word }) => word === "погода")).toBe(false)
      expect(alike.slice(0, 6).map(({ word }) => word)).toContain("photograph")
      expect(alike.every(({ likeness, word }) => likeness >= 0.6 && likeness <= 1 && word !== "photo")).toBe(true)
      expect(alike.map(({ likeness }) => likeness)).toEqual(
        alike
          .map(({ likeness }) => likeness)
          .toSorted()
          .toReversed()
      )
      const likeness = (a: string, b: string) => words.alike(a, -1).find(({ word }) => word === b)!.likeness
      const products = ["photo", "picture"].map((word) => words.meaningOf([[word, 1]])!.vector)
      expect(likeness("photo", "picture")).toBeCloseTo(dot(products[0]!, products[1]!), 5)
      expect(words.alike("website", 0.6).map(({ word }) => word)).toContain("site")
      expect(words.alike("xqzzt", 0)).toEqual([])
      // Cached similar words belong to one threshold.
      const many = (likenessMin: number) => words.alike("website", likenessMin).length
      expect(many(0.5)).toBeGreaterThan(many(0.6))
      expect(many(0.6)).toBe(words.alike("website", 0.6).length)
    })
  )

  it.effect("words of other languages are read as their English meaning", () =>
    Effect.gen(function* () {
      const words = yield* table
      const meant = (word: string) => words.guessed(word).words
      expect(meant("天气")).toEqual(["weather"])
      expect(meant("餐厅")).toEqual(["restaurant"])
      expect(meant("नमक")).toContain("salt")
      // Another form of a word, and two words written as one.
      expect(meant("погоду")).toEqual(["weather"])
      expect(meant("benzinpreis")).toContain("fuel")
      // A word that is English too is read as English.
      for (const word of ["pain", "gift", "weather"]) expect(words.guessed(word)).toMatchObject({ words: [word] })
      const first = queryMeaning(words, "погода")!
      expect(first.known).toBe(1)
      expect(dot(first.vector, resourceVector(words, named("Weather"))!)).toBeGreaterThan(0.85)
      // A listing in another language is found in English.
      expect(dot(resourceVector(words, named("天气"))!, queryMeaning(words, "weather")!.vector)).toBeGreaterThan(0.9)
      expect(words.alike("погода", 0.6).map(({ word }) => word)).toContain("weather")
    })
  )

  it.effect("an unknown word is corrected with lower confidence", () =>
    Effect.gen(function* () {
      const words = yield* table
      for (const [typed, meant] of [
        ["resturant", "restaurant"],
        ["databse", "database"],
        ["vulnerabilty", "vulnerability"],
        ["trnaslation", "translation"]
      ] as const)
        expect(words.guessed(typed)).toMatchObject({ words: [meant], isGuess: true })
      const { known, vector } = queryMeaning(words, "resturant")!
      expect(known).toBeLessThan(0.7)
      // Related words are added to a correctly spelled word, not to a guessed one.
      expect(dot(vector, queryMeaning(words, "restaurant")!.vector)).toBeGreaterThan(0.9)
      // Short words, words of a listing, and unknown words are left unchanged.
      expect(words.guessed("bsu").words).toEqual([])
      expect(words.inEnglish("resturant").words).toEqual([])
      expect(words.guessed("xqzzt").words).toEqual([])
      expect(queryMeaning(words, "annealing")).toBeUndefined()
    })
  )

  it.effect("a vector table is read only if built for this program", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      for (const file of ["words.bin", "phrases.txt"]) {
        const changed = Layer.succeed(FileSystem.FileSystem, {
          ...files,
          readFile: (path: string) =>
            Effect.map(files.readFile(path), (bytes) =>
              path.endsWith(file) ? bytes.with(bytes.length >> 1, bytes[bytes.length >> 1]! ^ 1) : bytes
            )
        })
        const layer = LoadedWordTable.layer.pipe(Layer.provide(changed), Layer.provide(services))
        const exit = yield* Effect.exit(
          Effect.flatMap(LoadedWordTable, ({ table }) => table).pipe(Effect.provide(layer))
        )
        expect(exit._tag, file).toBe("Failure")
      }
      expect(tableHash).toMatch(/^[0-9a-f]{64}$/)
    }).pipe(Effect.provide(services))
  )

  it("vectors are distinguished by what they do not all share", () => {
    const unit = (...numbers: ReadonlyArray<number>) => {
      const length = Math.hypot(...numbers)
      return Float32Array.from(numbers, (one) => one / length)
    }
    const stored = new QuantizedVectors(16)
    const spread = (at: number) => unit(5, ...Array.from({ length: 15 }, (_, i) => (i === at % 15 ? 1 : 0)))
    stored.put(Array.from({ length: 600 }, (_, at) => ({ id: BigInt(at), vector: spread(at) })))
    const left = stored.distinguishing(spread(3))
    expect(Math.abs(left[0]!)).toBeLessThan(0.6)
    expect(left[4]).toBeGreaterThan(0.7)
    // A replaced vector no longer counts for the common direction.
    stored.put(Array.from({ length: 600 }, (_, at) => ({ id: BigInt(at), vector: unit(0, ...Array(14).fill(0), 1) })))
    expect(stored.distinguishing(unit(1, ...Array(15).fill(0)))[0]).toBeCloseTo(1, 2)
  })
})
