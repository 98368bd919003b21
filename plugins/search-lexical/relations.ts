// The topics of a query's phrases, by the table of relations: everyday words as the words of listings. A phrase's words
// occur in the query in their order, with a word or two between them. Pure, and about as fast as splitting the query.
import { relationTable } from "./relationTable.ts"
import { isSmallEnglish, wordsOf } from "./words.ts"

interface Relation {
  /** Words of the query, in its split form. */
  readonly covers: ReadonlyArray<string>
  readonly about: ReadonlyArray<string>
}

/** Maximum words between the words of a phrase. */
const gapMax = 1
/** Maximum for one query. */
const relationsMax = 6

/** A word without the ending that most forms of it differ in. */
const stemOf = (word: string): string =>
  /^[a-z]{4,}$/.test(word) ? word.replace(/(?:ies|ing|ed|es|s|y|e)$/, "").replace(/(.)\1$/, "$1") : word

interface Phrase {
  readonly words: ReadonlyArray<{ readonly stem: string; readonly isPrefix: boolean }>
  readonly about: ReadonlyArray<string>
}

const readPhrase = (phrase: string, about: ReadonlyArray<string>): Phrase => ({
  words: phrase
    .split(" ")
    .filter((word) => !isSmallEnglish(word))
    .map((word) =>
      word.endsWith("*") ? { stem: word.slice(0, -1), isPrefix: true } : { stem: stemOf(word), isPrefix: false }
    ),
  about
})

const lines = relationTable
  .trim()
  .split("\n")
  .flatMap((line) => {
    const [asked = "", about = ""] = line.split(" > ")
    return asked.split(", ").map((phrase) => ({ phrase, about: about.split(" ") }))
  })
const phrases = lines.map(({ about, phrase }) => readPhrase(phrase, about)).filter(({ words }) => words.length > 0)
/** By the first three letters of the first word, so that few phrases are compared for each word of a query. */
const byHead = Map.groupBy(phrases, ({ words }) => words[0]!.stem.slice(0, 2))

const matches = (word: string, { isPrefix, stem }: Phrase["words"][number]): boolean =>
  isPrefix ? word.startsWith(stem) : stemOf(word) === stem

/** The positions of a phrase's words from a given word on; undefined unless all occur. */
const placesOf = (words: ReadonlyArray<string>, from: number, phrase: Phrase): ReadonlyArray<number> | undefined => {
  if (!matches(words[from]!, phrase.words[0]!)) return undefined
  const places = [from]
  for (const part of phrase.words.slice(1)) {
    const last = places.at(-1)!
    const next = words.findIndex((word, at) => at > last && at <= last + 1 + gapMax && matches(word, part))
    if (next === -1) return undefined
    places.push(next)
  }
  return places
}

/** The topics of a query's phrases, the longest phrases first; each word counts for one phrase. */
export const relationsOf = (query: string): ReadonlyArray<Relation> => {
  const found: Array<Relation & { readonly size: number }> = []
  const words = wordsOf(query).words.filter((word) => !isSmallEnglish(word))
  for (const at of words.keys())
    for (const phrase of byHead.get(words[at]!.slice(0, 2)) ?? []) {
      const places = placesOf(words, at, phrase)
      if (places === undefined) continue
      found.push({ covers: places.map((place) => words[place]!), about: phrase.about, size: places.length })
    }
  const covered = new Set<string>()
  return found
    .toSorted((a, b) => b.size - a.size)
    .filter(({ covers }) => {
      if (covers.every((word) => covered.has(word))) return false
      for (const word of covers) covered.add(word)
      return true
    })
    .slice(0, relationsMax)
}
