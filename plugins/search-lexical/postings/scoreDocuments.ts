// Scores the documents of the index in memory. A document's score is Σ over the query's terms of rarity · saturation of
// the weighted term frequency (BM25F): a bound on repetition, and the length of the document, lower it (S169). Scores
// are divided by the highest score possible, of a document with every word in its name, so that a relevance of 0 to 1
// means the same for every query. Pure.
import type { Postings } from "./Postings.ts"
import type { Segment } from "./Segment.ts"

/** Saturation: the weighted frequency that gives half of a term's worth, halved like the weights of the fields. */
const saturation = 0.6
/** How much a document longer than the average is expected to repeat itself: 0 not, 1 in proportion. */
const lengthShare = 0.4
/** Frequencies are in eighths. */
export const frequencyUnit = 1 / 8

/** Any of the lexemes, and the worth of a match. */
export interface ScoredTerm {
  readonly lexemes: ReadonlyArray<string>
  readonly weight: number
  /** Near-synonyms: a document is worth the maximum of the word's match and theirs. */
  readonly alike?: Pick<ScoredTerm, "lexemes" | "weight"> | undefined
}

export interface ScoredQuery {
  readonly terms: ReadonlyArray<ScoredTerm>
  readonly related: ReadonlyArray<ScoredTerm>
  /** Pairs of adjacent words: a document with one of them gains the weight. */
  readonly phrase?: { readonly pairs: ReadonlyArray<Adjacent>; readonly weight: number } | undefined
}

/** Any lexeme of the first, followed by any of the second. */
type Adjacent = readonly [first: ReadonlyArray<string>, second: ReadonlyArray<string>]

export interface Scored {
  readonly id: bigint
  readonly score: number
  /** The weight of the query's own terms that it holds, however often. */
  readonly held: number
}

export const normOf = (length: number, average: number): number =>
  saturation * (1 - lengthShare + (lengthShare * length) / average)

/** Buffers for a segment's documents. They are zero between uses. */
interface Buffers {
  readonly scores: Float64Array
  readonly held: Float64Array
  readonly parts: Float64Array
  readonly heldParts: Float64Array
  readonly frequencies: Uint32Array
  /** Documents with a match of the query, and of the current term. */
  readonly matched: Uint32Array
  readonly touched: Uint32Array
  readonly counted: Uint32Array
}

let buffers: Buffers | undefined

const buffersFor = (count: number): Buffers => {
  if (buffers !== undefined && buffers.scores.length >= count) return buffers
  buffers = {
    scores: new Float64Array(count),
    held: new Float64Array(count),
    parts: new Float64Array(count),
    heldParts: new Float64Array(count),
    frequencies: new Uint32Array(count),
    matched: new Uint32Array(count),
    touched: new Uint32Array(count),
    counted: new Uint32Array(count)
  }
  return buffers
}

/** Sums the frequencies of any of the lexemes; returns the number of documents with one. */
const countInto = ({ counted, frequencies }: Buffers, segment: Segment, lexemes: ReadonlyArray<number>): number => {
  let count = 0
  for (const lexeme of lexemes) {
    const [from, to] = segment.rangeOf(lexeme)
    for (let at = from; at < to; at++) {
      const document = segment.holders[at]!
      if (frequencies[document] === 0) counted[count++] = document
      frequencies[document]! += segment.frequencies[at]!
    }
  }
  return count
}

interface NumberedTerm {
  readonly lexemes: ReadonlyArray<number>
  readonly weight: number
  readonly alike: Omit<NumberedTerm, "alike"> | undefined
}

/** The terms that are worth something, by the numbers of their lexemes. */
const numbered = (postings: Postings, terms: ReadonlyArray<ScoredTerm>): ReadonlyArray<NumberedTerm> =>
  terms
    .filter(({ weight }) => weight > 0)
    .map(({ alike, lexemes, weight }) => ({
      lexemes: postings.numbersOf(lexemes),
      weight,
      alike:
        alike === undefined || alike.weight <= 0
          ? undefined
          : { lexemes: postings.numbersOf(alike.lexemes), weight: alike.weight }
    }))

/** Adds one term's worth to each document that matches it. Returns the number of matched documents so far. */
const addTerm = (
  into: Buffers,
  segment: Segment,
  { norms, matchedBefore, isOwn }: { readonly norms: Float64Array; matchedBefore: number; readonly isOwn: boolean },
  term: NumberedTerm
): number => {
  const { counted, frequencies, held, heldParts, matched, parts, scores, touched } = into
  let count = 0
  const take = (weight: number, lexemes: ReadonlyArray<number>) => {
    const found = countInto(into, segment, lexemes)
    for (let at = 0; at < found; at++) {
      const document = counted[at]!
      const norm = norms[document]!
      const worth = weight * (1 - norm / (frequencies[document]! * frequencyUnit + norm))
      frequencies[document] = 0
      if (heldParts[document] === 0) {
        touched[count++] = document
        heldParts[document] = weight
      }
      if (worth > parts[document]!) parts[document] = worth
    }
  }
  take(term.weight, term.lexemes)
  if (term.alike !== undefined) take(term.alike.weight, term.alike.lexemes)
  let all = matchedBefore
  for (let at = 0; at < count; at++) {
    const document = touched[at]!
    if (scores[document] === 0) matched[all++] = document
    scores[document]! += parts[document]!
    if (isOwn) held[document]! += heldParts[document]!
    parts[document] = 0
    heldParts[document] = 0
  }
  return all
}

const isFollowed = (first: Uint16Array, second: Uint16Array): boolean =>
  first.some((position) => second.includes(position + 1))

/** Adds a phrase's worth to the matched documents that hold one of its pairs. */
const addPhrase = (
  into: Buffers,
  segment: Segment,
  pairs: ReadonlyArray<readonly [first: ReadonlyArray<number>, second: ReadonlyArray<number>]>,
  weight: number
): void => {
  const { counted, frequencies, parts, scores } = into
  const gaining: Array<number> = []
  for (const [first, second] of pairs) {
    const found = countInto(into, segment, first)
    for (const lexeme of second) {
      const [from, to] = segment.rangeOf(lexeme)
      for (let at = from; at < to; at++) {
        const document = segment.holders[at]!
        if (frequencies[document] === 0 || parts[document] !== 0) continue
        const after = segment.positionsOf(document, lexeme)
        if (!first.some((one) => isFollowed(segment.positionsOf(document, one), after))) continue
        parts[document] = 1
        gaining.push(document)
      }
    }
    for (let at = 0; at < found; at++) frequencies[counted[at]!] = 0
  }
  for (const document of gaining) {
    parts[document] = 0
    if (scores[document]! > 0) scores[document]! += weight
  }
}

const normsOf = new WeakMap<Segment, { readonly average: number; readonly norms: Float64Array }>()

const normsFor = (segment: Segment, average: number): Float64Array => {
  const known = normsOf.get(segment)
  if (known?.average === average) return known.norms
  const { ids, starts } = segment.documents
  const norms = Float64Array.from(ids, (_, at) => normOf(starts[at + 1]! - starts[at]!, average))
  normsOf.set(segment, { average, norms })
  return norms
}

const isBetter = (a: Scored, b: Scored): boolean => a.score > b.score || (a.score === b.score && a.id < b.id)

/** The best documents seen so far, as a heap with the worst of them first. */
class BestDocuments {
  readonly #heap: Array<Scored> = []
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  isWorthless(score: number): boolean {
    return this.#heap.length >= this.#max && score < this.#heap[0]!.score
  }

  add(one: Scored): void {
    const heap = this.#heap
    if (heap.length < this.#max) {
      let at = heap.length
      for (let above = (at - 1) >> 1; at > 0 && isBetter(heap[above]!, one); above = (at - 1) >> 1) {
        heap[at] = heap[above]!
        at = above
      }
      heap[at] = one
    } else if (isBetter(one, heap[0]!)) {
      let at = 0
      for (let below = 1; below < heap.length; below = 2 * at + 1) {
        if (below + 1 < heap.length && isBetter(heap[below]!, heap[below + 1]!)) below += 1
        if (!isBetter(one, heap[below]!)) break
        heap[at] = heap[below]!
        at = below
      }
      heap[at] = one
    }
  }

  inOrder(): ReadonlyArray<Scored> {
    return this.#heap.toSorted((a, b) => (isBetter(a, b) ? -1 : 1))
  }
}

/** Scores one segment's documents; returns how many match, at the beginning of `matched`. */
const scoreSegment = (
  into: Buffers,
  segment: Segment,
  norms: Float64Array,
  { pairs, related, terms, weight }: NumberedQuery
): number => {
  let count = 0
  for (const term of terms) count = addTerm(into, segment, { norms, matchedBefore: count, isOwn: true }, term)
  for (const term of related) count = addTerm(into, segment, { norms, matchedBefore: count, isOwn: false }, term)
  if (pairs.length > 0 && count > 0) addPhrase(into, segment, pairs, weight)
  return count
}

interface NumberedQuery {
  readonly terms: ReadonlyArray<NumberedTerm>
  readonly related: ReadonlyArray<NumberedTerm>
  readonly pairs: Parameters<typeof addPhrase>[2]
  /** Of a pair of adjacent words. */
  readonly weight: number
}

/**
 * The best documents that hold a term of the query, best first, the older of equals. `isAmong`: the documents to
 * choose from, default all.
 */
export const bestDocuments = (
  postings: Postings,
  { phrase, related, terms }: ScoredQuery,
  {
    average,
    isAmong,
    max
  }: {
    readonly average: number
    readonly max: number
    readonly isAmong?: ((id: bigint) => boolean) | undefined
  }
): ReadonlyArray<Scored> => {
  const query: NumberedQuery = {
    terms: numbered(postings, terms),
    related: numbered(postings, related),
    pairs: (phrase?.pairs ?? []).map(
      ([first, second]) => [postings.numbersOf(first), postings.numbersOf(second)] as const
    ),
    weight: phrase?.weight ?? 0
  }
  const best = new BestDocuments(max)
  for (const segment of postings.segments) {
    const { documents, isReplaced } = segment
    const into = buffersFor(isReplaced.length)
    const count = scoreSegment(into, segment, normsFor(segment, average), query)
    for (let at = 0; at < count; at++) {
      const document = into.matched[at]!
      const [score, held] = [into.scores[document]!, into.held[document]!]
      into.scores[document] = 0
      into.held[document] = 0
      if (isReplaced[document] === 1 || best.isWorthless(score)) continue
      const id = documents.ids[document]!
      if (isAmong?.(id) !== false) best.add({ id, score, held })
    }
  }
  return best.inOrder()
}
