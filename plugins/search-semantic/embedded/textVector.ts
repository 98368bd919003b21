// The vector of a resource or a query by the table of words: the weighted mean of its words. Names weigh most, then
// tags, then the description. Pure.
import type { ResourceDocument } from "../../catalog/contract.ts"
import {
  evidenceShare,
  relatedWords,
  resourceTexts,
  discriminativeTerms,
  translatedWords
} from "../../search-lexical/contract.ts"
import type { English, WordMeaning, WordTable } from "./WordTable.ts"

/** Another way from texts to vectors is another revision. */
export const recipe = "5"

const fields = [
  ["a", 1],
  ["b", 0.6],
  ["c", 0.8],
  ["d", 0.1]
] as const

/** How much of a guessed word's weight is known. */
const guessKnown = 0.6

type WeighedWord = readonly [word: string, times: number, sureness: number]

/** Replaces a word by its English words, which share its count; an unknown word stays itself. */
const shared = (word: string, times: number, { isGuess, words }: English): ReadonlyArray<WeighedWord> =>
  words.length === 0
    ? [[word, times * evidenceShare(word), 1]]
    : words.map((one): WeighedWord => [
        one,
        // "api" is a fire in Indonesian, and the medium here.
        (times * Math.min(evidenceShare(word), evidenceShare(one))) / words.length,
        isGuess ? guessKnown : 1
      ])

export const resourceVector = (table: WordTable, resource: ResourceDocument): Float32Array | undefined => {
  const texts = resourceTexts(resource)
  const words = fields.flatMap(([field, weight]) =>
    texts[field].split(" ").flatMap((word) => shared(word, weight, table.inEnglish(word)))
  )
  return table.meaningOf(words)?.vector
}

/** A query with only words that name the medium is searched by them. */
const reporting = (words: ReadonlyArray<WeighedWord>): ReadonlyArray<WeighedWord> =>
  words.every(([, times]) => times === 0)
    ? words.map(([word, , sureness]): WeighedWord => [word, 1, sureness])
    : words.filter(([, times]) => times > 0)

/** Weight of a phrase's related terms, against the query's words. */
const relatedShare = 0.3

export const queryMeaning = (table: WordTable, query: string): WordMeaning | undefined => {
  const translations = translatedWords(query)
  const covered = new Set(translations.flatMap(({ covers }) => covers))
  const words = [...new Set(discriminativeTerms(query))].filter((word) => !covered.has(word))
  const related = relatedWords(query).filter((word) => !words.includes(word))
  return table.meaningOf([
    ...reporting([
      ...words.flatMap((word) => shared(word, 1, table.guessed(word))),
      ...translations.flatMap(({ english }) =>
        english.map((word): WeighedWord => [word, evidenceShare(word) / english.length, 1])
      )
    ]),
    ...related.map((word): WeighedWord => [word, relatedShare, 1])
  ])
}
