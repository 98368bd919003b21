// The lexical index in memory: a few segments, and the place of each document's latest version in them. One writer at a
// time; searches may run between the steps of a write and see the state before or after it.
import { type Documents, documentsOf, Lexemes, mergedDocuments, Segment, type StoredDocument } from "./Segment.ts"

/** Bytes of a lexeme's text, number and statistics, and of a document's place: estimates. */
const lexemeBytes = 128
const placeBytes = 120
/** A segment is merged with its predecessor unless the predecessor is larger by this factor. */
const tierFactor = 2

/** A document's latest version: a segment, and its number there. */
interface Place {
  readonly segment: Segment
  readonly document: number
}

/** How many documents and origins hold a lexeme. */
export interface Statistics {
  readonly documents: number
  readonly origins: number
}

/** Lexemes with their statistics, in three lists of the same order. */
export interface CountedLexemes {
  readonly lexemes: ReadonlyArray<string>
  readonly documents: ReadonlyArray<number>
  readonly origins: ReadonlyArray<number>
}

export class Postings {
  readonly #lexemes = new Lexemes()
  /** By the numbers of lexemes, as of the last refresh of the statistics. */
  #statistics = { documents: new Uint32Array(0), origins: new Uint32Array(0) }
  readonly #places = new Map<bigint, Place>()
  #segments: ReadonlyArray<Segment> = []

  /** The oldest first. */
  get segments(): ReadonlyArray<Segment> {
    return this.#segments
  }

  get documents(): number {
    return this.#places.size
  }

  get bytes(): number {
    const packed = this.#segments.reduce((sum, { bytes }) => sum + bytes, 0)
    return packed + lexemeBytes * this.#lexemes.texts.length + placeBytes * this.#places.size
  }

  /** How often each lexeme of a document occurs, in weighted eighths. */
  frequenciesOf(id: bigint): ReadonlyArray<readonly [lexeme: number, frequency: number]> {
    const place = this.#places.get(id)
    if (place === undefined) return []
    const { frequencies, lexemes, starts } = place.segment.documents
    const [from, to] = [starts[place.document]!, starts[place.document + 1]!]
    return Array.from(lexemes.subarray(from, to), (lexeme, at) => [lexeme, frequencies[from + at]!] as const)
  }

  /** Documents that hold a lexeme; a replaced version counts until its segment is merged. */
  countOf(lexeme: number): number {
    return this.#segments.reduce((sum, segment) => {
      const [from, to] = segment.rangeOf(lexeme)
      return sum + to - from
    }, 0)
  }

  /** Zero for a lexeme that the last refresh did not count. */
  statisticsOf(lexeme: string): Statistics {
    const number = this.#lexemes.numbers.get(lexeme) ?? Infinity
    const { documents, origins } = this.#statistics
    return { documents: documents[number] ?? 0, origins: origins[number] ?? 0 }
  }

  setStatistics(pages: ReadonlyArray<CountedLexemes>): void {
    const size = this.#lexemes.texts.length
    const [documents, origins] = [new Uint32Array(size), new Uint32Array(size)]
    for (const page of pages)
      for (const [at, lexeme] of page.lexemes.entries()) {
        const number = this.#lexemes.numbers.get(lexeme)
        if (number === undefined) continue
        documents[number] = page.documents[at]!
        origins[number] = page.origins[at]!
      }
    this.#statistics = { documents, origins }
  }

  holdsAny(id: bigint, lexemes: ReadonlyArray<number>): boolean {
    const place = this.#places.get(id)
    if (place === undefined) return false
    const { documents } = place.segment
    const held = documents.lexemes.subarray(documents.starts[place.document]!, documents.starts[place.document + 1]!)
    return lexemes.some((lexeme) => held.includes(lexeme))
  }

  /** The numbers of those lexemes that documents hold or held. */
  numbersOf(lexemes: ReadonlyArray<string>): ReadonlyArray<number> {
    return lexemes.flatMap((lexeme) => this.#lexemes.numbers.get(lexeme) ?? [])
  }

  textOf(lexeme: number): string {
    return this.#lexemes.texts[lexeme]!
  }

  /** Adds documents or their new versions, in steps. */
  *put(rows: ReadonlyArray<StoredDocument>): Generator<undefined, void> {
    if (rows.length === 0) return
    const added = yield* this.#segmentOf(documentsOf(rows, this.#lexemes))
    for (const id of added.documents.ids) {
      const before = this.#places.get(id)
      if (before === undefined) continue
      before.segment.isReplaced[before.document] = 1
      before.segment.alive -= 1
    }
    this.#segments = [...this.#segments, added]
    this.#place(added)
    while (this.#segments.length > 1) {
      const [older, newer] = this.#segments.slice(-2)
      if (older!.alive > tierFactor * newer!.alive && 2 * older!.alive >= older!.isReplaced.length) return
      const merged = yield* this.#segmentOf(yield* mergedDocuments([older!, newer!]))
      this.#segments = [...this.#segments.slice(0, -2), merged]
      this.#place(merged)
    }
  }

  #segmentOf(documents: Documents): Generator<undefined, Segment> {
    return Segment.of(documents, this.#lexemes.texts.length)
  }

  #place(segment: Segment): void {
    segment.documents.ids.forEach((id, document) => this.#places.set(id, { segment, document }))
  }
}
