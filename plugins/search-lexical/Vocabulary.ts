// Interprets the words of queries against the index: their lexemes with document frequencies, substitutes for a lexeme
// that no document holds (words that begin with it, or otherwise the nearest by trigrams), and near-synonyms. Findings
// are cached until the statistics are refreshed: queries use the same few words.
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { type AlikeWord, Search } from "../catalog/contract.ts"
import type { IndexState } from "./LexicalStore.ts"
import { type Foreign, foreignIn, isSmall, languageMark, withoutMark } from "./languages.ts"
import { gramsOf, isMistyped, stemmedAs } from "./words.ts"
import { LruCache } from "../../kernel/cache/LruCache.ts"

export interface Counted {
  readonly lexeme: string
  /** Its lexemes in other languages, with their marks, as far as documents hold them. */
  readonly foreign?: ReadonlyArray<string>
  readonly documents: number
  /** Origins that hold it; at least as many of several lexemes as of the commonest. */
  readonly origins: number
}

/** Established origins hold it, or any do while no listing has evidence. */
export const isEstablished = ({ origins }: Counted): boolean => origins > 0

export interface Alternatives {
  readonly found: ReadonlyArray<Counted>
  /** Weight of a match, as a share of a match by the word itself. */
  readonly share: number
}

export interface SimilarTerms extends Counted {
  /** 0 to 1. */
  readonly likeness: number
}

/** Information about a word that does not come from documents. */
export interface TermInterpretation {
  /** A known word as written: no other word was meant. Undefined if no provider knows words. */
  readonly isSpelt: boolean | undefined
  /** The share of this word in any English text, where that is known. */
  readonly frequency: number
  /** The English of a word of another language, if it is known and not guessed. */
  readonly said: ReadonlyArray<string>
  /** Near-synonyms. */
  readonly alike: ReadonlyArray<SimilarTerms>
}

/** A shorter word is the beginning of too many. */
const substituteLengthMin = 4
/** Maximum number of unknown words per query that get substitutes; the others are missing. */
const substitutesMax = 4
const partialMax = 5
const mistypedMax = 3
/** Weight of a match by the beginning of a word and by likeness, as a share of a match by the word itself. */
const partialShare = 0.5
export const mistypedShare = 0.6
const likenessMin = 0.25
/** Per query: words that get similar terms; per word: candidates considered, and terms kept. */
const alikeWordsMax = 8
const similarCandidatesMax = 60
const alikeMax = 6
/** Below this similarity, words share a topic but are not synonyms. */
const wordLikenessMin = 0.6
/** At or above this similarity to an unknown word, a word is its English translation. */
const saidMin = 0.95
/** Timeout of the search for substitutes, which is optional: after it the words are missing. */
const substituteTimeout = "150 millis"
/** Capacity of each cache, in words. */
const keptMax = 20_000

const noInterpretation: TermInterpretation = { isSpelt: undefined, frequency: 0, said: [], alike: [] }

interface Reading extends Counted {
  readonly word: string
  /** The mark of another language; of the index's own none. */
  readonly ending: string
}

/** Combines a word's lexemes of the index's own language with its readings in others. */
const joined = (
  word: string,
  readings: ReadonlyArray<Reading>,
  others: ReadonlyArray<Foreign>
): ReadonlyArray<Counted> => {
  const own = readings.filter(({ ending }) => ending === "")
  const foreign = readings.filter(({ documents, ending }) => ending !== "" && documents > 0)
  const [first, ...rest] = own.map(({ documents, lexeme, origins }): Counted => ({ lexeme, documents, origins }))
  if (first === undefined) return []
  if (foreign.length === 0) {
    // "un" and "fur" do not count as missing words if listings are in French and German.
    return own.every(({ documents }) => documents === 0) && isSmall(word, others) ? [] : [first, ...rest]
  }
  const whole: Counted = {
    lexeme: first.lexeme,
    foreign: foreign.map(({ lexeme }) => lexeme),
    documents: foreign.reduce((sum, one) => sum + one.documents, first.documents),
    origins: foreign.reduce((sum, one) => sum + one.origins, first.origins)
  }
  return [whole, ...rest]
}

/**
 * The counts of one lexeme, to be joined laterally; `lexeme` is an expression. The limit forces a lookup of each:
 * otherwise the database reads all lexemes of the index for a few.
 */
export const countsOf = (sql: SqlClient.SqlClient, language: string, lexeme: string): Statement.Fragment =>
  sql`(select documents, origins from search_lexical_terms
    where language = ${language} and lexeme = (${sql.literal(lexeme)}) collate "C" limit 1)`

/** Lexemes by word; a word that the language leaves out has no entry. */
const readWords = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  words: ReadonlyArray<string>,
  { language, spoken }: IndexState
) {
  const others = foreignIn(spoken)
  const asked = words.flatMap((word) => [
    { word, stems: stemmedAs(word, language), ending: "" },
    ...others.map(({ ending, stems }) => ({ word, stems, ending }))
  ])
  const rows = yield* sql<Reading>`select w.word, w.ending, q.lexeme || w.ending as lexeme,
      coalesce(t.documents, 0) as documents, coalesce(t.origins, 0) as origins
    from jsonb_to_recordset(${JSON.stringify(asked)}::jsonb) w (word text, stems text, ending text)
    cross join lateral unnest(tsvector_to_array(to_tsvector(w.stems::regconfig, w.word))) q (lexeme)
    left join lateral ${countsOf(sql, language, "q.lexeme || w.ending")} t on true`
  const byWord = Map.groupBy(rows, ({ word }) => word)
  return new Map(words.map((word) => [word, joined(word, byWord.get(word) ?? [], others)]))
})

/**
 * Substitutes for lexemes, in one statement: words that begin with one, and words similar by trigrams. `offset 0` keeps
 * the planner from inlining the count of shared trigrams and repeating it for each use.
 */
const readAlternatives = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  lexemes: ReadonlyArray<string>,
  language: string
) {
  const asked = lexemes.map((lexeme) => ({ lexeme, grams: gramsOf(lexeme) }))
  return yield* sql<Counted & { readonly missing: string; readonly partial: boolean }>`
    with asked as materialized (
      select lexeme collate "C" as lexeme, grams from jsonb_to_recordset(${JSON.stringify(asked)}::jsonb)
        as a (lexeme text, grams text[])
    )
    select asked.lexeme as missing, true as partial, t.lexeme, t.documents, t.origins from asked, lateral (
      select lexeme, documents, origins from search_lexical_terms
      where language = ${language} and lexeme > asked.lexeme and lexeme < asked.lexeme || ${"\u{10ffff}"}
      order by (origins > 0) desc, documents desc, lexeme limit ${partialMax}) t
    union all
    select asked.lexeme, false, t.lexeme, t.documents, t.origins from asked, lateral (
      select lexeme, documents, origins, shared / (size + cardinality(asked.grams) - shared) as likeness from (
        select lexeme, documents, origins, cardinality(grams) as size,
          (select count(*) from unnest(grams) g where g = any (asked.grams))::float8 as shared
        from search_lexical_terms
        where language = ${language} and grams && asked.grams
          and length(split_part(lexeme, ${languageMark}, 1)) between length(asked.lexeme) - 2
            and length(asked.lexeme) + 2 offset 0) alike
      where shared / (size + cardinality(asked.grams) - shared) >= ${likenessMin}
      order by (origins > 0) desc, likeness desc, documents desc limit 20) t`
})

/**
 * The lexemes that established origins hold, if there are any; otherwise all. A stranger's free listing may hold any
 * misspelling, and must not decide which word was meant.
 */
const establishedOf = <T extends Counted>(found: ReadonlyArray<T>): ReadonlyArray<T> =>
  found.some(isEstablished) ? found.filter(isEstablished) : found

/** Words that begin with it, or otherwise words within a slip or two of it; by lexeme. */
const alternatives = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  lexemes: ReadonlyArray<string>,
  language: string
) {
  const rows = Map.groupBy(yield* readAlternatives(sql, lexemes, language), ({ missing }) => missing)
  return new Map(
    lexemes.map((lexeme): [string, Alternatives | undefined] => {
      const own = rows.get(lexeme) ?? []
      const longer = establishedOf(own.filter(({ partial }) => partial))
      const alike = establishedOf(own.filter((one) => !one.partial && isMistyped(lexeme, withoutMark(one.lexeme))))
      if (longer.some(isEstablished) || (longer.length > 0 && !alike.some(isEstablished)))
        return [lexeme, { found: longer, share: partialShare }]
      const nearest = alike.slice(0, mistypedMax)
      return [lexeme, nearest.length === 0 ? undefined : { found: nearest, share: mistypedShare }]
    })
  )
})

/** The nearest lexemes that documents hold, each once and without the word's own. */
const alikeLexemes = (
  own: ReadonlyArray<Counted>,
  words: ReadonlyArray<AlikeWord>,
  read: ReadonlyMap<string, ReadonlyArray<Counted>>
): ReadonlyArray<SimilarTerms> => {
  const likest = new Map<string, SimilarTerms>()
  for (const { likeness, word } of words)
    for (const counted of read.get(word) ?? []) {
      const isOther = counted.documents > 0 && own.every(({ lexeme }) => lexeme !== counted.lexeme)
      if (isOther && !likest.has(counted.lexeme)) likest.set(counted.lexeme, { ...counted, likeness })
    }
  return [...likest.values()].slice(0, alikeMax)
}

export class Vocabulary extends Context.Service<
  Vocabulary,
  {
    /** The lexemes of each word, in the order of the words. */
    readonly read: (
      words: ReadonlyArray<string>,
      state: IndexState
    ) => Effect.Effect<ReadonlyArray<ReadonlyArray<Counted>>, SqlError.SqlError>
    /** Substitutes for lexemes that no document holds: for the first few that are long enough. */
    readonly substitutes: (
      lexemes: ReadonlyArray<string>,
      state: IndexState
    ) => Effect.Effect<ReadonlyMap<string, Alternatives | undefined>, SqlError.SqlError>
    /** Whether words are spelled correctly, and their near-synonyms: of the first few. */
    readonly meant: (
      words: ReadonlyArray<string>,
      state: IndexState
    ) => Effect.Effect<ReadonlyMap<string, TermInterpretation>, SqlError.SqlError>
  }
>()("tollkeeper/search-lexical/Vocabulary") {
  static readonly layer = Layer.effect(
    Vocabulary,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const search = yield* Search
      /** As of one refresh of the statistics of one language. */
      let asOf = ""
      const readings = new LruCache<string, ReadonlyArray<Counted>>({ name: "word-readings", capacity: keptMax })
      const found = new LruCache<string, Alternatives | null>({ name: "word-substitutes", capacity: keptMax })
      const meanings = new LruCache<string, TermInterpretation>({ name: "word-meanings", capacity: keptMax })

      const forgetOlder = ({ language, refreshedAt }: IndexState): void => {
        const now = `${language} ${refreshedAt.getTime()}`
        if (now === asOf) return
        asOf = now
        readings.clear()
        found.clear()
        meanings.clear()
      }

      const read = Effect.fnUntraced(function* (words: ReadonlyArray<string>, state: IndexState) {
        forgetOlder(state)
        const unread = [...new Set(words)].filter((word) => readings.get(word) === undefined)
        const found: ReadonlyMap<string, ReadonlyArray<Counted>> = unread.length === 0
          ? new Map()
          : yield* readWords(sql, unread, state)
        const all = words.map((word) => readings.peek(word) ?? found.get(word)!)
        for (const [word, reading] of found) readings.set(word, reading)
        return all
      })

      const substitutes = Effect.fnUntraced(function* (lexemes: ReadonlyArray<string>, state: IndexState) {
        forgetOlder(state)
        const asked = lexemes.filter((lexeme) => lexeme.length >= substituteLengthMin).slice(0, substitutesMax)
        const unknown = asked.filter((lexeme) => found.get(lexeme) === undefined)
        if (unknown.length > 0) {
          const observed = yield* Effect.timeoutOption(alternatives(sql, unknown, state.language), substituteTimeout)
          for (const [lexeme, instead] of Option.getOrElse(observed, () => [])) found.set(lexeme, instead ?? null)
        }
        return new Map(asked.map((lexeme) => [lexeme, found.peek(lexeme) ?? undefined]))
      })

      const meant = Effect.fnUntraced(function* (words: ReadonlyArray<string>, state: IndexState) {
        forgetOlder(state)
        const asked = [...new Set(words)].slice(0, alikeWordsMax)
        const unread = asked.filter((word) => meanings.get(word) === undefined)
        const like = yield* Effect.forEach(unread, (word) => search.similarTerms(word, wordLikenessMin))
        const seen = like.map((words) => words?.slice(0, similarCandidatesMax))
        const all = new Set(seen.flatMap((words) => (words ?? []).map(({ word }) => word)))
        // Similar words are in the index's own language; no other language needs to be read.
        const read = all.size === 0 ? new Map() : yield* readWords(sql, [...all], { ...state, spoken: "" })
        for (const [at, word] of unread.entries()) {
          // No provider of similar words yet: nothing to cache.
          if (seen[at] === undefined) continue
          const itself = seen[at].find((one) => one.word === word)
          const isSpelt = itself !== undefined
          const said = isSpelt ? [] : seen[at].filter(({ likeness }) => likeness >= saidMin).map(({ word }) => word)
          const alike = alikeLexemes(readings.peek(word) ?? [], seen[at], read)
          meanings.set(word, { isSpelt, frequency: itself?.frequency ?? 0, said, alike })
        }
        return new Map(asked.map((word) => [word, meanings.peek(word) ?? noInterpretation]))
      })

      return Vocabulary.of({ read, substitutes, meant })
    })
  )
}
