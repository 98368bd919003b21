// What a resource and a query mean by the table of words: the weighed mean of their words. Names tell most, then tags,
// then what is described. Pure.
import type { ResourceDocument } from "../../catalog/contract.ts"
import { resourceTexts, tellingWords } from "../../search-lexical/contract.ts"
import type { English, Meaning, WordTable } from "./WordTable.ts"

/** Another way from texts to vectors is another revision. */
export const recipe = "3"

const fields = [
  ["a", 1],
  ["b", 0.6],
  ["c", 0.8],
  ["d", 0.1]
] as const

/** How much of a guessed word's weight is known. */
const guessKnown = 0.6

/** A word that counts so often, as English words that count as often together; itself where it is not known. */
const shared = (
  word: string,
  times: number,
  { isGuess, words }: English
): ReadonlyArray<readonly [string, number, number]> =>
  words.length === 0
    ? [[word, times, 1]]
    : words.map((one): readonly [string, number, number] => [one, times / words.length, isGuess ? guessKnown : 1])

export const resourceVector = (table: WordTable, resource: ResourceDocument): Float32Array | undefined => {
  const texts = resourceTexts(resource)
  const words = fields.flatMap(([field, weight]) =>
    texts[field].split(" ").flatMap((word) => shared(word, weight, table.inEnglish(word)))
  )
  return table.meaningOf(words)?.vector
}

export const queryMeaning = (table: WordTable, query: string): Meaning | undefined =>
  table.meaningOf([...new Set(tellingWords(query))].flatMap((word) => shared(word, 1, table.guessed(word))))
