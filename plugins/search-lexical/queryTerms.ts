// Terms of a query from the lexemes of its words: a word itself, its near-synonyms, and the words that replace it if no
// document holds it or only a stranger's listing does. Pure.
import type { IndexState } from "./LexicalStore.ts"
import type { ScoredTerm } from "./postings/scoreDocuments.ts"
import {
  type Alternatives,
  type Counted,
  isEstablished,
  mistypedShare,
  type SimilarTerms,
  type TermInterpretation
} from "./Vocabulary.ts"
import { withoutMark } from "./languages.ts"
import { evidenceOf } from "./evidence.ts"

/** A weighted term: a lexeme, or the substitutes for a mistyped or partial word, with near-synonyms. */
export type Term = ScoredTerm
type SimilarTerm = NonNullable<Term["alike"]>

/** A word's lexeme, and its lexemes in the languages of listings. */
export const lexemesOf = ({ foreign = [], lexeme }: Pick<Counted, "foreign" | "lexeme">): ReadonlyArray<string> => [
  lexeme,
  ...foreign
]

/** How much each of the query's lexemes is worth. */
export type WeightOf = (counted: Counted) => number

export const termOf = (counted: Counted, weightOf: WeightOf): Term => ({
  lexemes: lexemesOf(counted),
  weight: weightOf(counted)
})

/** Removes the endings that differ between "leaves" and "leaf", which stemmers leave in place. */
const withoutEnding = (lexeme: string): string => lexeme.replace(/(?<=\p{L}{2})(?:ve?|fe?)$/u, "")

/** Whether two lexemes may be forms of one word. */
const areForms = (one: string, other: string): boolean =>
  one.startsWith(other) || other.startsWith(one) || withoutEnding(one) === withoutEnding(other)

/** Substitutes for a lexeme; a correctly spelled word gets only its own forms, never a merely similar word. */
const asMeant = (
  lexeme: string,
  instead: Alternatives | undefined,
  meant: TermInterpretation | undefined
): Alternatives | undefined => {
  if (instead === undefined || meant?.isSpelt !== true) return instead
  const found = instead.found.filter((one) => areForms(lexeme, withoutMark(one.lexeme)))
  return found.length === 0 ? undefined : { ...instead, found }
}

const sumOf = (all: ReadonlyArray<Counted>): number => all.reduce((sum, { origins }) => sum + origins, 0)

/** One term of all that may have been meant. */
const substituteTerm = ({ found, share }: Alternatives, weight: number, state: IndexState): Term => {
  const documents = found.reduce((sum, one) => sum + one.documents, 0)
  return {
    lexemes: found.flatMap(lexemesOf),
    weight: share * Math.min(weight, evidenceOf({ documents, origins: sumOf(found) }, state))
  }
}

export const isHeld = ({ documents }: Counted): boolean => documents > 0

/**
 * Only listings without established evidence hold the word, and no dictionary has it: a free listing may hold any
 * misspelling, to keep the query from the word that was meant. So the query is searched for both.
 */
export const isDoubtful = (counted: Counted, { proven }: IndexState, meant: TermInterpretation | undefined): boolean =>
  proven && isHeld(counted) && !isEstablished(counted) && meant?.isSpelt === false && meant.said.length === 0

/** Share of a match by a synonym at full similarity, against one by the word itself. */
const alikeShare = 0.7

/** Near-synonyms of a word of the query; undefined if the query already has all of them. */
export const alikeTerm = (
  weight: number,
  alike: ReadonlyArray<SimilarTerms>,
  asked: ReadonlySet<string>,
  state: IndexState
): SimilarTerm | undefined => {
  const others = alike.filter(({ lexeme }) => !asked.has(lexeme))
  if (others.length === 0) return undefined
  const held = { documents: others.reduce((sum, one) => sum + one.documents, 0), origins: sumOf(others) }
  const likeness = others.reduce((sum, one) => sum + one.likeness, 0) / others.length
  // As rare as the word or its substitute: common words are not evidence for a rare one.
  const rare = Math.min(weight, evidenceOf(held, state))
  return {
    lexemes: others.flatMap(lexemesOf),
    weight: alikeShare * likeness * rare
  }
}

export const withAlike = (term: Term, alike: SimilarTerm | undefined): Term =>
  alike === undefined ? term : { ...term, alike }

/** The term of a doubtful word, with the established words that may have been meant. */
export const doubtfulTerm = (
  counted: Counted,
  { found }: Alternatives,
  weightOf: WeightOf,
  state: IndexState
): Term => {
  // As rare as its correction, which counts as much: otherwise the free listing ranks first by its misspelling alone.
  const alike = substituteTerm({ found, share: 1 }, weightOf(counted), state)
  return { ...termOf(counted, () => alike.weight), alike }
}

interface Replacement {
  readonly one: Counted
  readonly word: string
  readonly substitute: Alternatives | undefined
}

/** Lexemes of a query with their substitutes. */
export const replacementsOf = (
  all: ReadonlyArray<Counted>,
  wordOf: ReadonlyMap<string, string>,
  instead: ReadonlyMap<string, Alternatives | undefined>,
  meant: ReadonlyMap<string, TermInterpretation>
): ReadonlyArray<Replacement> =>
  all.map((one) => {
    const word = wordOf.get(one.lexeme)!
    return { one, word, substitute: asMeant(one.lexeme, instead.get(one.lexeme), meant.get(word)) }
  })

export const isEstablishedInstead = (one: Replacement): one is Replacement & { readonly substitute: Alternatives } =>
  one.substitute?.found.some(isEstablished) === true

/** The term that replaces an unknown word, if there is one. */
export const substituteTerms = (
  { one, substitute }: Replacement,
  like: SimilarTerm | undefined,
  weightOf: WeightOf,
  state: IndexState
): ReadonlyArray<Term> => {
  if (substitute !== undefined) return [withAlike(substituteTerm(substitute, weightOf(one), state), like)]
  return like === undefined ? [] : [like]
}

/** A word that no document holds, or none of an established seller, and the lexemes that may be meant. */
export interface Mistyped {
  readonly word: string
  readonly lexemes: ReadonlyArray<string>
}

export const mistypedOf = (all: ReadonlyArray<Replacement>): ReadonlyArray<Mistyped> =>
  all.flatMap(({ substitute, word }) =>
    substitute?.share === mistypedShare ? [{ word, lexemes: substitute.found.map(({ lexeme }) => lexeme) }] : []
  )
