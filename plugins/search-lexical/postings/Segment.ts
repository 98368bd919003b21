// An immutable part of the index in memory: documents with their lexemes, and for each lexeme the documents that hold
// it, packed into typed arrays. A new version of a document goes to a new segment, and its old one is marked as
// replaced. Segments of similar size are merged, so there are few.
import { byteMax, readVector } from "./readVector.ts"

export interface StoredDocument {
  readonly id: bigint
  /** The text of its tsvector. */
  readonly document: string
}

const [encoder, decoder] = [new TextEncoder(), new TextDecoder()]

/** Numbers of lexemes, shared by all segments of an index. */
export class Lexemes {
  readonly numbers = new Map<string, number>()
  readonly texts: Array<string> = []

  numberOf(lexeme: string): number {
    const known = this.numbers.get(lexeme)
    if (known !== undefined) return known
    const number = this.texts.length
    // A copy: a slice would keep the whole text of its document.
    const text = decoder.decode(encoder.encode(lexeme))
    this.numbers.set(text, number)
    this.texts.push(text)
    return number
  }
}

/** Documents in order, each with its lexemes and their positions. */
export interface Documents {
  readonly ids: BigInt64Array
  /** Of each document, and after the last: its first entry among the lexemes, and its first position. */
  readonly starts: Uint32Array
  readonly positionStarts: Uint32Array
  readonly lexemes: Uint32Array
  /** Weighted, in eighths. */
  readonly frequencies: Uint8Array
  readonly positionCounts: Uint8Array
  readonly positions: Uint16Array
}

/** Postings are handled in slices of this many, between which other work runs. */
const sliceMax = 50_000
const documentsSliceMax = 500

export class Segment {
  readonly documents: Documents
  readonly isReplaced: Uint8Array
  alive: number
  /** The numbers of the lexemes in rising order, and the first holder of each. */
  readonly #keys: Uint32Array
  readonly #starts: Uint32Array
  readonly holders: Uint32Array
  readonly frequencies: Uint8Array

  private constructor(documents: Documents, keys: Uint32Array, starts: Uint32Array, holders: Holders) {
    this.documents = documents
    this.isReplaced = new Uint8Array(documents.ids.length)
    this.alive = documents.ids.length
    this.#keys = keys
    this.#starts = starts
    this.holders = holders.documents
    this.frequencies = holders.frequencies
  }

  get postings(): number {
    return this.holders.length
  }

  get bytes(): number {
    const { ids, positions } = this.documents
    return 11 * this.postings + 17 * ids.length + 2 * positions.length + 8 * this.#keys.length
  }

  rangeOf(lexeme: number): readonly [from: number, to: number] {
    let [low, high] = [0, this.#keys.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#keys[middle]! < lexeme) low = middle + 1
      else high = middle
    }
    return this.#keys[low] === lexeme ? [this.#starts[low]!, this.#starts[low + 1]!] : [0, 0]
  }

  positionsOf(document: number, lexeme: number): Uint16Array {
    const { lexemes, positionCounts, positions, positionStarts, starts } = this.documents
    let from = positionStarts[document]!
    for (let at = starts[document]!; at < starts[document + 1]!; at++) {
      const to = from + positionCounts[at]!
      if (lexemes[at] === lexeme) return positions.subarray(from, to)
      from = to
    }
    return positions.subarray(0, 0)
  }

  /** Sorts the postings by lexeme: counts them, then puts each in its place. */
  static *of(documents: Documents, lexemesCount: number): Generator<undefined, Segment> {
    const { frequencies, ids, lexemes, starts } = documents
    const places = new Uint32Array(lexemesCount + 1)
    for (let at = 0; at < lexemes.length; at++) {
      places[lexemes[at]! + 1]! += 1
      if (at % sliceMax === sliceMax - 1) yield
    }
    let kinds = 0
    for (let at = 1; at < places.length; at++) if (places[at]! > 0) kinds += 1
    const [keys, keyStarts] = [new Uint32Array(kinds), new Uint32Array(kinds + 1)]
    for (let at = 1, next = 0, sum = 0; at < places.length; at++) {
      const count = places[at]!
      places[at] = sum + count
      if (count > 0) {
        keys[next] = at - 1
        keyStarts[next] = sum
        next += 1
      }
      sum += count
    }
    keyStarts[kinds] = lexemes.length
    const holders = { documents: new Uint32Array(lexemes.length), frequencies: new Uint8Array(lexemes.length) }
    for (let document = 0, at = 0; document < ids.length; document++)
      for (; at < starts[document + 1]!; at++) {
        const place = places[lexemes[at]!]!
        places[lexemes[at]!] = place + 1
        holders.documents[place] = document
        holders.frequencies[place] = frequencies[at]!
        if (at % sliceMax === sliceMax - 1) yield
      }
    return new Segment(documents, keys, keyStarts, holders)
  }
}

interface Holders {
  readonly documents: Uint32Array
  readonly frequencies: Uint8Array
}

/** The given rows as documents, the last row of each id. */
export const documentsOf = (rows: ReadonlyArray<StoredDocument>, lexemes: Lexemes): Documents => {
  const latest = [...new Map(rows.map((row) => [row.id, row])).values()]
  const numbers: Array<number> = []
  const frequencies: Array<number> = []
  const counts: Array<number> = []
  const positions: Array<number> = []
  const [starts, positionStarts] = [[0], [0]]
  for (const { document } of latest) {
    readVector(document, (lexeme, frequency, at) => {
      numbers.push(lexemes.numberOf(lexeme))
      frequencies.push(frequency)
      counts.push(Math.min(byteMax, at.length))
      for (const position of at) positions.push(position)
    })
    starts.push(numbers.length)
    positionStarts.push(positions.length)
  }
  return {
    ids: BigInt64Array.from(latest, ({ id }) => id),
    starts: Uint32Array.from(starts),
    positionStarts: Uint32Array.from(positionStarts),
    lexemes: Uint32Array.from(numbers),
    frequencies: Uint8Array.from(frequencies),
    positionCounts: Uint8Array.from(counts),
    positions: Uint16Array.from(positions)
  }
}

/** The documents of these segments without the replaced ones. No document may be replaced meanwhile. */
export function* mergedDocuments(segments: ReadonlyArray<Segment>): Generator<undefined, Documents> {
  let [count, postings, places] = [0, 0, 0]
  for (const { documents, isReplaced } of segments)
    for (let at = 0; at < isReplaced.length; at++) {
      if (isReplaced[at] === 1) continue
      count += 1
      postings += documents.starts[at + 1]! - documents.starts[at]!
      places += documents.positionStarts[at + 1]! - documents.positionStarts[at]!
    }
  const merged: Documents = {
    ids: new BigInt64Array(count),
    starts: new Uint32Array(count + 1),
    positionStarts: new Uint32Array(count + 1),
    lexemes: new Uint32Array(postings),
    frequencies: new Uint8Array(postings),
    positionCounts: new Uint8Array(postings),
    positions: new Uint16Array(places)
  }
  let [next, at, place] = [0, 0, 0]
  for (const { documents, isReplaced } of segments)
    for (let document = 0; document < isReplaced.length; document++) {
      if (isReplaced[document] === 1) continue
      const [from, to] = [documents.starts[document]!, documents.starts[document + 1]!]
      const [first, last] = [documents.positionStarts[document]!, documents.positionStarts[document + 1]!]
      merged.lexemes.set(documents.lexemes.subarray(from, to), at)
      merged.frequencies.set(documents.frequencies.subarray(from, to), at)
      merged.positionCounts.set(documents.positionCounts.subarray(from, to), at)
      merged.positions.set(documents.positions.subarray(first, last), place)
      merged.ids[next] = documents.ids[document]!
      ;[next, at, place] = [next + 1, at + to - from, place + last - first]
      merged.starts[next] = at
      merged.positionStarts[next] = place
      if (next % documentsSliceMax === 0) yield
    }
  return merged
}
