// Translates the words of a query in Spanish, Russian or Japanese to English, by the lexicon. Russian words and phrases
// are matched by their beginnings, since most forms differ in their endings; Spanish ones in both numbers and genders,
// and only in a query that is in Spanish. A run of Japanese, which is written without blanks, is matched from left to
// right by the longest entry. A single character counts only between matches: otherwise it is a part of another word.
// Pure, and about as fast as splitting the query.
import { lexicon } from "./lexicon.ts"
import { isSmallEnglish, isSmallSpanish, wordsOf } from "./words.ts"

export interface Translation {
  /** Words of the query, in its split form. */
  readonly covers: ReadonlyArray<string>
  /** Their English, the best word first. */
  readonly english: ReadonlyArray<string>
}

interface Part {
  /** A beginning, or the forms that are it. */
  readonly prefix: string | undefined
  readonly forms: ReadonlyArray<string>
}

interface Entry {
  readonly words: ReadonlyArray<Part>
  /** Letters that it was written with. */
  readonly size: number
  readonly english: ReadonlyArray<string>
  /** English has these words too. */
  readonly isEnglishToo: boolean
}

/** Maximum for one query. */
const translationsMax = 12

const isCyrillic = (word: string): boolean => /\p{Script=Cyrillic}/u.test(word)
const run = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー々]+/gu

/** A word of Spanish in both numbers and genders; of Russian unchanged. */
const formsOf = (word: string): ReadonlyArray<string> => {
  if (isCyrillic(word)) return [word]
  if (/[oa]$/.test(word)) return ["o", "a", "os", "as"].map((ending) => `${word.slice(0, -1)}${ending}`)
  if (word.endsWith("z")) return [word, `${word.slice(0, -1)}ces`]
  return [word, `${word}s`, `${word}es`]
}

const readPart = (word: string): Part =>
  word.endsWith("*") ? { prefix: word.slice(0, -1), forms: [] } : { prefix: undefined, forms: formsOf(word) }

const readEntry = (text: string, english: ReadonlyArray<string>): Entry => {
  const words = text.replaceAll("~", "").split(" ")
  return {
    words: words.map(readPart),
    size: text.length + 100 * words.length,
    english,
    isEnglishToo: text.includes("~")
  }
}

const isPart = (word: string | undefined, { forms, prefix }: Part): boolean =>
  word !== undefined && (prefix === undefined ? forms.includes(word) : word.startsWith(prefix))

const lines = lexicon
  .trim()
  .split("\n")
  .map((line) => line.split(" > ").map((part) => part.split(", ")))

const entriesOf = (column: number): ReadonlyMap<string, ReadonlyArray<Entry>> =>
  Map.groupBy(
    lines.flatMap((line) => line[column]!.map((text) => readEntry(text, line[0]![0]!.split(" ")))),
    ({ words: [first] }) => (first!.prefix ?? first!.forms[0]!).slice(0, 2)
  )

const [spanish, russian] = [entriesOf(1), entriesOf(2)]

/** Entries in Japanese by their first character, longer ones first; of two lines that have one the first. */
const japanese = Map.groupBy(
  lines
    .flatMap((line) => line[3]!.map((text) => ({ text: text.normalize("NFKC"), english: line[0]![0]!.split(" ") })))
    .toSorted((a, b) => b.text.length - a.text.length),
  ({ text }) => text[0]!
)

interface Match {
  /** Places in the query's words. */
  readonly places: ReadonlyArray<number>
  readonly entry: Entry
}

const matchesAt = (
  words: ReadonlyArray<string>,
  at: number,
  entries: ReadonlyMap<string, ReadonlyArray<Entry>>
): ReadonlyArray<Match> => {
  const word = words[at]!
  return (entries.get(word.slice(0, 2)) ?? []).flatMap((entry) => {
    const isThere = entry.words.every((part, step) => isPart(words[at + step], part))
    return isThere ? [{ places: entry.words.map((_, step) => at + step), entry }] : []
  })
}

/** Longest phrases first, and each word in one; of a word the most specific entry. */
const chosen = (words: ReadonlyArray<string>, matches: ReadonlyArray<Match>): ReadonlyArray<Translation> => {
  const taken = new Set<number>()
  return matches
    .toSorted((a, b) => b.entry.size - a.entry.size)
    .filter(({ places }) => !places.some((place) => taken.has(place)) && places.every((place) => taken.add(place)))
    .map(({ entry, places }) => ({ covers: places.map((place) => words[place]!), english: entry.english }))
}

/** Small words of English that Spanish has too. */
const bothSmall = new Set("a he has me no o".split(" "))

const spanishOf = (query: string, words: ReadonlyArray<string>): ReadonlyArray<Translation> => {
  if (words.some((word) => isSmallEnglish(word) && !bothSmall.has(word))) return []
  const matches = words.flatMap((_, at) => matchesAt(words, at, spanish))
  const isSpanish =
    /[¿¡ñ]/i.test(query) || words.some(isSmallSpanish) || matches.some(({ entry }) => !entry.isEnglishToo)
  return isSpanish ? chosen(words, matches) : []
}

const isHan = (one: string | undefined): boolean => one !== undefined && /\p{Script=Han}/u.test(one)
const isKatakana = (one: string | undefined): boolean => one !== undefined && /[\p{Script=Katakana}ー]/u.test(one)

interface Span {
  readonly from: number
  readonly text: string
  readonly english: ReadonlyArray<string>
}

/** The longest entry at a position; a short Katakana entry does not match inside a longer Katakana word. */
const longestAt = (text: string, from: number): Span | undefined => {
  const found = (japanese.get(text[from]!) ?? []).find(({ text: entry }) => {
    if (!text.startsWith(entry, from)) return false
    const isWithin = isKatakana(text[from]) && (isKatakana(text[from - 1]) || isKatakana(text[from + entry.length]))
    return !isWithin || entry.length > 3
  })
  return found === undefined ? undefined : { from, ...found }
}

const spansOf = (text: string): ReadonlyArray<Span> => {
  const spans: Array<Span> = []
  for (let from = 0; from < text.length;) {
    const span = longestAt(text, from)
    if (span !== undefined) spans.push(span)
    from += span?.text.length ?? 1
  }
  const covered = new Set(spans.flatMap(({ from, text }) => Array.from(text, (_, at) => from + at)))
  const isLeft = (at: number): boolean => isHan(text[at]) && !covered.has(at)
  return spans.filter(({ from, text: { length } }) => length > 1 || !(isLeft(from - 1) || isLeft(from + 1)))
}

/**
 * Once the whole run is matched, each of its character pairs (the split form) belongs to the entry with the pair's
 * first character.
 */
const japaneseOf = (query: string): ReadonlyArray<Translation> =>
  (query.normalize("NFKC").match(run) ?? []).flatMap((text) => {
    const spans = spansOf(text)
    const covered = new Set(spans.flatMap(({ from, text }) => Array.from(text, (_, at) => from + at)))
    return spans.map(({ english, from, text: { length } }) => ({
      covers:
        text.length <= 2
          ? [text]
          : Array.from({ length }, (_, at) => from + at)
              .filter((at) => covered.has(at + 1))
              .map((at) => text.slice(at, at + 2)),
      english
    }))
  })

/** The English of the words of a query in these languages; empty for an English query. */
export const translationsOf = (query: string): ReadonlyArray<Translation> => {
  const { words } = wordsOf(query)
  const cyrillic = words.some(isCyrillic) ? words.flatMap((_, at) => matchesAt(words, at, russian)) : []
  return [...chosen(words, cyrillic), ...japaneseOf(query), ...spanishOf(query, words)].slice(0, translationsMax)
}
