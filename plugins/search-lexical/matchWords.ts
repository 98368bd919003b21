// The words of texts that a query matches: in any form that shares a lexeme with the query, a synonym of it or a
// correction, and characters of scripts without blanks. Texts are sellers'; positions are the only result, besides the
// corrected words.
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Matched, Span } from "../catalog/contract.ts"
import { withoutMark } from "./languages.ts"
import type { IndexState } from "./LexicalStore.ts"
import type { ReadQuery } from "./QueryReader.ts"
import type { Vocabulary } from "./Vocabulary.ts"
import { wordsOf } from "./words.ts"

/** Maximum different words of the texts that are compared by their lexemes. */
const wordsMax = 200
/** Words with another beginning are of another lexeme. */
const beginning = 3

const wordPattern = /\p{Lu}?[\p{Ll}\p{Lo}\p{Lm}\p{M}]+|\p{Lu}+|\p{N}+/gu
const isUnspaced = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]+$/u

const lexemesOf = ({ related, terms }: ReadQuery): ReadonlySet<string> =>
  new Set([...terms, ...related].flatMap(({ alike, lexemes }) => [...lexemes, ...(alike?.lexemes ?? [])]))

interface Word {
  readonly text: number
  readonly span: Span
  readonly word: string
}

const wordsIn = (texts: ReadonlyArray<string>): ReadonlyArray<Word> =>
  texts.flatMap((text, at) =>
    [...text.matchAll(wordPattern)].flatMap(({ 0: token, index }): ReadonlyArray<Word> => {
      const [word] = isUnspaced.test(token) ? [] : wordsOf(token).words
      return word === undefined ? [] : [{ text: at, span: [index, index + token.length], word }]
    })
  )

/** Occurrences of lexemes in text of scripts without blanks. */
const unspacedSpans = (text: string, lexemes: Iterable<string>): ReadonlyArray<Span> =>
  [...lexemes].flatMap((lexeme) =>
    isUnspaced.test(lexeme)
      ? Array.from(text.matchAll(new RegExp(lexeme, "g")), ({ index }): Span => [index, index + lexeme.length])
      : []
  )

/** In order; overlapping and adjacent ones become one. */
const merged = (spans: ReadonlyArray<Span>): ReadonlyArray<Span> => {
  const all: Array<[number, number]> = []
  for (const [start, end] of spans.toSorted((a, b) => a[0] - b[0] || a[1] - b[1])) {
    const last = all.at(-1)
    if (last !== undefined && start <= last[1]) last[1] = Math.max(last[1], end)
    else all.push([start, end])
  }
  return all
}

export const makeMatcher = (vocabulary: Vocabulary["Service"]) =>
  Effect.fnUntraced(function* (
    query: ReadQuery,
    texts: ReadonlyArray<string>,
    state: IndexState
  ): Effect.fn.Return<Matched, SqlError.SqlError> {
    const lexemes = lexemesOf(query)
    const beginnings = new Set([...lexemes].map((lexeme) => withoutMark(lexeme).slice(0, beginning)))
    const words = wordsIn(texts).filter(({ word }) => beginnings.has(word.slice(0, beginning)))
    const distinct = [...new Set(words.map(({ word }) => word))].slice(0, wordsMax)
    const readings = yield* vocabulary.read(distinct, state)
    const forms = new Map(
      distinct.map((word, at) => [word, readings[at]!.flatMap(({ foreign = [], lexeme }) => [lexeme, ...foreign])])
    )
    const holds = (word: string, among: { has(lexeme: string): boolean }) =>
      (forms.get(word) ?? []).some((lexeme) => among.has(lexeme))
    const matched = words.filter(({ word }) => holds(word, lexemes))
    return {
      spans: texts.map((text, at) =>
        merged([...matched.filter((one) => one.text === at).map(({ span }) => span), ...unspacedSpans(text, lexemes)])
      ),
      corrected: query.mistyped.flatMap(({ lexemes: meant, word }) => {
        const instead = matched.find((one) => holds(one.word, new Set(meant)))
        return instead === undefined ? [] : [{ word, instead: instead.word }]
      })
    }
  })
