// The table of word vectors that ships with the plugin (`words.bin`, made by `npm run build:vectors`): 50,000 English
// words of a hundred signed bytes each. Loaded once, on first use, and only if its hash matches the constant below.
// About 12 MB of memory. The words are sorted by frequency, which determines their weight: a word that occurs in every
// text is not discriminative. Similar words are found by a full scan, in half a millisecond or so. Words of other
// languages are read as their English by the phrasebook, and an unknown word of a query may be mistyped.
import { Context, Effect, FileSystem, Layer, Path } from "effect"
import { Hex } from "effect/encoding"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { LruCache } from "../../../kernel/cache/LruCache.ts"
import type { AlikeWord } from "../../catalog/contract.ts"
import { addressesAt, addressesMax, makeVectorLoops, productsAt, vectorsAt } from "../index/vectorLoops.ts"
import { Phrasebook, phrasesHash } from "./Phrasebook.ts"
import { Spelling } from "./spelling.ts"

export const dimension = 100
export const tableHash = "6bf210cdc107772530566a7ea9efb1c31af183664c421aae0c8c28ebdee86314"

/** Of smooth inverse frequency (Arora and others): words more frequent than this weigh less. */
const smoothing = 0.0003
/** Zipf's law over the table's order. */
const frequencyOf = (rank: number): number => 1 / (12 * (rank + 2.7))
const weightOf = (rank: number): number => smoothing / (smoothing + frequencyOf(rank))

export interface WordMeaning {
  /** Length 1. */
  readonly vector: Float32Array
  /** 0 to 1: the share of the words' weight that the table covers. */
  readonly known: number
}

/** A word in English: as written, translated by the phrasebook, or guessed. */
export interface English {
  /** Empty for an unknown word. */
  readonly words: ReadonlyArray<string>
  /** 0 to 1: how sure that is. */
  readonly likeness: number
  /** From its letters, its form or its pieces. */
  readonly isGuess: boolean
}

/** Likeness of a phrasebook translation, and of a guess from a word's form, its pieces or its letters. */
const saidLikeness = 0.95
const guessedLikeness = 0.85

const unknown: English = { words: [], likeness: 0, isGuess: false }

/** Capacity of the cache of similar words, a kilobyte or so each; they are read again after each statistics refresh. */
const nearMax = 5_000

/** Bytes of one vector in memory, filled up with zeros. */
const stride = 16 * Math.ceil(dimension / 16)

export class WordTable {
  readonly #words: ReadonlyArray<string>
  readonly #positions: ReadonlyMap<string, number>
  readonly #loops = makeVectorLoops()
  readonly #vectors: Int8Array
  readonly #lengths: Float32Array
  /** By likeness and position in the table. */
  readonly #found = new LruCache<string, ReadonlyArray<AlikeWord>>({ name: "similar-words", capacity: nearMax })

  readonly #phrases: Phrasebook
  readonly #spelling: Spelling

  constructor(bytes: Uint8Array, phrases: Phrasebook) {
    this.#phrases = phrases
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const [count, textLength] = [view.getUint32(0, true), view.getUint32(4, true)]
    this.#words = new TextDecoder()
      .decode(bytes.subarray(8, 8 + textLength))
      .split("\n")
      .slice(0, count)
    this.#positions = new Map(this.#words.map((word, at) => [word, at]))
    this.#spelling = new Spelling(this.#words)
    this.#loops.reserve(vectorsAt + count * stride)
    const vectors = new Int8Array(this.#loops.memory.buffer, vectorsAt, count * stride)
    const given = new Int8Array(bytes.buffer, bytes.byteOffset + 8 + textLength, count * dimension)
    const lengths = new Float32Array(count)
    // One plain loop over five million numbers: nothing else runs while the table is read.
    for (let position = 0; position < count; position++) {
      let square = 0
      for (let at = 0; at < dimension; at++) {
        const one = given[position * dimension + at]!
        vectors[position * stride + at] = one
        square += one * one
      }
      lengths[position] = Math.sqrt(square)
    }
    this.#vectors = vectors
    this.#lengths = lengths
  }

  #rowOf(position: number): Int8Array {
    return this.#vectors.subarray(position * stride, position * stride + dimension)
  }

  /** The English of a listing's word, if known. */
  inEnglish(word: string): English {
    const said = this.#phrases.meanings(word)
    if (said.length > 0) return { words: said, likeness: saidLikeness, isGuess: false }
    return this.#positions.has(word) ? { words: [word], likeness: 1, isGuess: false } : unknown
  }

  /** The English of a query's word; an unknown word is guessed. */
  guessed(word: string): English {
    const known = this.inEnglish(word)
    if (known.words.length > 0) return known
    const mistyped = this.#spelling.likeliest(word)
    if (mistyped !== undefined) return { words: [mistyped], likeness: guessedLikeness, isGuess: true }
    const forms = this.#phrases.meaningsOfForm(word)
    const words = forms.length > 0 ? forms : this.#phrases.meaningsOfPieces(word)
    return words.length === 0 ? unknown : { words, likeness: guessedLikeness, isGuess: true }
  }

  /**
   * The combined vector of English words, each by its weight, and by its sureness for `known`. Undefined if the table
   * has no vector for any of them.
   */
  meaningOf(words: Iterable<readonly [word: string, times: number, sureness?: number]>): WordMeaning | undefined {
    const sum = new Float64Array(dimension)
    let [all, known] = [0, 0]
    for (const [word, times, sureness = 1] of words) {
      const position = this.#positions.get(word)
      const weight = times * (position === undefined ? 1 : weightOf(position))
      all += weight
      if (position === undefined) continue
      known += sureness * weight
      const row = this.#rowOf(position)
      const share = weight / this.#lengths[position]!
      for (let at = 0; at < dimension; at++) sum[at]! += share * row[at]!
    }
    const length = Math.hypot(...sum)
    return length < 1e-9 ? undefined : { vector: Float32Array.from(sum, (one) => one / length), known: known / all }
  }

  /**
   * The words of at least this similarity, nearest first, including the word itself if it is a known English word. For
   * an unknown word, its English.
   */
  alike(word: string, likenessMin: number): ReadonlyArray<AlikeWord> {
    const english = this.guessed(word)
    const position = this.#positions.get(word)
    const frequency = position === undefined ? 0 : frequencyOf(position)
    const itself = english.likeness === 1 ? [{ word, likeness: 1, frequency }] : []
    const meant = english.words.flatMap((one) =>
      one === word || english.likeness < likenessMin ? [] : [{ word: one, likeness: english.likeness }]
    )
    return [...itself, ...meant, ...this.#near(word, likenessMin)]
  }

  #near(word: string, likenessMin: number): ReadonlyArray<AlikeWord> {
    const position = this.#positions.get(word)
    if (position === undefined) return []
    const key = `${likenessMin} ${position}`
    const cachedWords = this.#found.get(key)
    if (cachedWords !== undefined) return cachedWords
    const found = this.#read(position, likenessMin)
    this.#found.set(key, found)
    return found
  }

  #read(position: number, likenessMin: number): ReadonlyArray<AlikeWord> {
    const { buffer } = this.#loops.memory
    new Int16Array(buffer, 0, stride).set(this.#vectors.subarray(position * stride, (position + 1) * stride))
    const addresses = new Uint32Array(buffer, addressesAt, addressesMax)
    const products = new Int32Array(buffer, productsAt, addressesMax)
    const found: Array<AlikeWord> = []
    const least = likenessMin * this.#lengths[position]!
    for (let from = 0; from < this.#words.length; from += addressesMax) {
      const count = Math.min(addressesMax, this.#words.length - from)
      for (let at = 0; at < count; at++) addresses[at] = vectorsAt + (from + at) * stride
      this.#loops.dot(count, stride / 16)
      for (let at = 0; at < count; at++) {
        // Nearly all are dissimilar: they are rejected without a division.
        if (products[at]! < least * this.#lengths[from + at]! || from + at === position) continue
        const likeness = products[at]! / (this.#lengths[position]! * this.#lengths[from + at]!)
        found.push({ word: this.#words[from + at]!, likeness })
      }
    }
    return found.sort((a, b) => b.likeness - a.likeness || (a.word < b.word ? -1 : 1))
  }
}

export class LoadedWordTable extends Context.Service<LoadedWordTable, { readonly table: Effect.Effect<WordTable> }>()(
  "tollkeeper/search-semantic/LoadedWordTable"
) {
  static readonly layer = Layer.effect(
    LoadedWordTable,
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const paths = yield* Path.Path
      const crypto = yield* Crypto
      const read = Effect.gen(function* () {
        const bytes = yield* files.readFile(yield* paths.fromFileUrl(new URL("words.bin", import.meta.url)))
        const phrases = yield* files.readFile(yield* paths.fromFileUrl(new URL("phrases.txt", import.meta.url)))
        if (Hex.encode(crypto.sha256(bytes)) !== tableHash || Hex.encode(crypto.sha256(phrases)) !== phrasesHash)
          return yield* Effect.die(new Error("the table of words differs from the one in this program's build"))
        return new WordTable(bytes, new Phrasebook(new TextDecoder().decode(phrases)))
      })
      return LoadedWordTable.of({ table: yield* Effect.cached(Effect.orDie(read)) })
    })
  )
}
