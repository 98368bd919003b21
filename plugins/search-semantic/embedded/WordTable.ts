// The table of word vectors that the plugin brings along (`words.bin`, made by `npm run words`): 50,000 English words
// of a hundred signed bytes each. Read once, by whoever needs it first, and believed only when its hash is the one
// below. About 12 MB of memory. The words stand in the order of their frequency, which is what weighs them: a word that
// stands in every text tells nothing.
import { Context, Effect, FileSystem, Layer, Path } from "effect"
import { Hex } from "effect/encoding"
import { Crypto } from "../../../kernel/platform/Crypto.ts"

export const dimension = 100
export const tableHash = "175323a18b2627a4220fa5b703914aee00d0dbbc577237d6fcdaf7d16fa21791"

/** Of smooth inverse frequency (Arora and others): words more frequent than this weigh less. */
const smoothing = 0.001
/** Zipf's law over the table's order. */
const frequencyOf = (rank: number): number => 1 / (12 * (rank + 2.7))
const weightOf = (rank: number): number => smoothing / (smoothing + frequencyOf(rank))

export interface Meaning {
  /** Length 1. */
  readonly vector: Float32Array
  /** 0 to 1: how much of the words' weight the table knows. */
  readonly known: number
}

export class WordTable {
  readonly #places: ReadonlyMap<string, number>
  readonly #vectors: Int8Array

  constructor(bytes: Uint8Array) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const [count, textLength] = [view.getUint32(0, true), view.getUint32(4, true)]
    const words = new TextDecoder().decode(bytes.subarray(8, 8 + textLength)).split("\n")
    this.#places = new Map(words.slice(0, count).map((word, at) => [word, at]))
    this.#vectors = new Int8Array(bytes.buffer, bytes.byteOffset + 8 + textLength, count * dimension)
  }

  /** What words mean together, each as much as it weighs; undefined when the table knows none of them. */
  meaningOf(words: Iterable<readonly [word: string, times: number]>): Meaning | undefined {
    const sum = new Float64Array(dimension)
    let [all, known] = [0, 0]
    for (const [word, times] of words) {
      const place = this.#places.get(word)
      const weight = times * (place === undefined ? 1 : weightOf(place))
      all += weight
      if (place === undefined) continue
      known += weight
      const row = this.#vectors.subarray(place * dimension, (place + 1) * dimension)
      const share = weight / Math.sqrt(row.reduce((square, one) => square + one * one, 0))
      for (let at = 0; at < dimension; at++) sum[at]! += share * row[at]!
    }
    const length = Math.hypot(...sum)
    return length < 1e-9 ? undefined : { vector: Float32Array.from(sum, (one) => one / length), known: known / all }
  }
}

export class Words extends Context.Service<Words, { readonly table: Effect.Effect<WordTable> }>()(
  "tollkeeper/search-semantic/Words"
) {
  static readonly layer = Layer.effect(
    Words,
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const paths = yield* Path.Path
      const crypto = yield* Crypto
      const read = Effect.gen(function* () {
        const bytes = yield* files.readFile(yield* paths.fromFileUrl(new URL("words.bin", import.meta.url)))
        if (Hex.encode(crypto.sha256(bytes)) !== tableHash)
          return yield* Effect.die(new Error("the table of words is not the one that this program was made with"))
        return new WordTable(bytes)
      })
      return Words.of({ table: yield* Effect.cached(Effect.orDie(read)) })
    })
  )
}
