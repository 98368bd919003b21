// Interprets the words of queries against the index: their lexemes with document frequencies, substitutes for a lexeme
// that no document holds (words that begin with it, or otherwise the nearest by trigrams), and near-synonyms. The
// lexemes of words never change and are cached; their frequencies come from the index in memory, and until it is loaded
// from PostgreSQL.
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { type AlikeWord, Search } from "../catalog/contract.ts"
import type { IndexState } from "./LexicalStore.ts"
import { type Foreign, foreignIn, isSmall, languageMark, withoutMark } from "./languages.ts"
import { MemoryIndex } from "./postings/MemoryIndex.ts"
import type { Statistics } from "./postings/Postings.ts"
import { gramsOf, isMistyped, stemmedAs, type Words } from "./words.ts"
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
/** Capacity of the cache of substitutes, and of the lexemes of words: the word table has 50,000 words. */
const keptMax = 20_000
const stemmedMax = 100_000

const noInterpretation: TermInterpretation = { isSpelt: undefined, frequency: 0, said: [], alike: [] }

interface Reading extends Counted {
  /** The mark of another language; of the index's own none. */
  readonly ending: string
}

type Spoken = Pick<IndexState, "language" | "spoken">

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

/** A word, and the text search configuration that reads it. */
type Stemmed = readonly [configuration: string, word: string]

/** The ways to read these words: in the index's own language, and in those of other listings. */
const readingsOf = (words: ReadonlyArray<string>, { language, spoken }: Spoken): ReadonlyArray<Stemmed> => {
  const others = foreignIn(spoken)
  return words.flatMap((word) => [
    [stemmedAs(word, language), word] as const,
    ...others.map(({ stems }) => [stems, word] as const)
  ])
}

/** The lexemes of each; none of a word that the language leaves out. */
const readLexemes = (sql: SqlClient.SqlClient, asked: ReadonlyArray<Stemmed>) =>
  Effect.map(
    sql<{ lexemes: ReadonlyArray<ReadonlyArray<string>> }>`select json_agg(tsvector_to_array(
        to_tsvector((one->>0)::regconfig, one->>1)) order by at) as lexemes
      from jsonb_array_elements(${JSON.stringify(asked)}::jsonb) with ordinality a (one, at)`,
    ([row]) => row!.lexemes
  )

/** The frequencies of these lexemes, without a copy of the index. */
const readFrequencies = (sql: SqlClient.SqlClient, lexemes: ReadonlyArray<string>, language: string) =>
  Effect.map(
    sql<Statistics & { readonly lexeme: string }>`select q.lexeme, t.documents, t.origins
      from jsonb_array_elements_text(${JSON.stringify(lexemes)}::jsonb) q (lexeme)
      cross join lateral ${countsOf(sql, language, "q.lexeme")} t`,
    (rows) => new Map(rows.map((row) => [row.lexeme, row]))
  )

const notCounted: Statistics = { documents: 0, origins: 0 }

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
  read: (word: string) => ReadonlyArray<Counted>
): ReadonlyArray<SimilarTerms> => {
  const likest = new Map<string, SimilarTerms>()
  for (const { likeness, word } of words)
    for (const counted of read(word)) {
      if (likest.size === alikeMax) return [...likest.values()]
      const isOther = counted.documents > 0 && own.every(({ lexeme }) => lexeme !== counted.lexeme)
      if (isOther && !likest.has(counted.lexeme)) likest.set(counted.lexeme, { ...counted, likeness })
    }
  return [...likest.values()]
}

interface Stems {
  /** Reads the lexemes that are not cached, in one statement. */
  readonly read: (all: ReadonlyArray<Stemmed>) => Effect.Effect<void, SqlError.SqlError>
  readonly of: (...one: Stemmed) => ReadonlyArray<string>
}

const makeStems = (sql: SqlClient.SqlClient): Stems => {
  const cached = new LruCache<string, ReadonlyArray<string>>({ name: "word-lexemes", capacity: stemmedMax })
  return {
    read: Effect.fnUntraced(function* (all: ReadonlyArray<Stemmed>) {
      const unread = [...new Map(all.map((one) => [one.join(" "), one]))].filter(
        ([key]) => cached.get(key) === undefined
      )
      if (unread.length === 0) return
      const lexemes = yield* readLexemes(
        sql,
        unread.map(([, one]) => one)
      )
      for (const [at, [key]] of unread.entries()) cached.set(key, lexemes[at]!)
    }),
    of: (...one: Stemmed) => cached.peek(one.join(" ")) ?? []
  }
}

/** Reads words: their lexemes, with their frequencies. */
const makeReaderOf = (sql: SqlClient.SqlClient, index: MemoryIndex["Service"], stems: Stems) =>
  Effect.fnUntraced(function* (words: ReadonlyArray<string>, state: IndexState) {
    yield* stems.read(readingsOf(words, state))
    const others = foreignIn(state.spoken)
    const lexemesOf = (word: string) => [
      ...stems.of(stemmedAs(word, state.language), word).map((lexeme) => ({ lexeme, ending: "" })),
      ...others.flatMap(({ ending, stems: configuration }) =>
        stems.of(configuration, word).map((lexeme) => ({ lexeme: `${lexeme}${ending}`, ending }))
      )
    ]
    const postings = yield* index.whole(state)
    const all = () => [...new Set(words.flatMap((word) => lexemesOf(word).map(({ lexeme }) => lexeme)))]
    const counts = postings === undefined ? yield* readFrequencies(sql, all(), state.language) : undefined
    const statisticsOf = (lexeme: string) => postings?.statisticsOf(lexeme) ?? counts?.get(lexeme) ?? notCounted
    return (word: string): ReadonlyArray<Counted> =>
      joined(
        word,
        lexemesOf(word).map((one): Reading => ({ ...one, ...statisticsOf(one.lexeme) })),
        others
      )
  })

/** The nearest words of each word that has any; without a provider undefined. */
type SimilarTo = ReadonlyMap<string, ReadonlyArray<AlikeWord> | undefined>

const similarWords = (similar: SimilarTo): ReadonlyArray<string> =>
  [...similar.values()].flatMap((like = []) => like.map(({ word }) => word))

const interpret = (
  word: string,
  like: ReadonlyArray<AlikeWord> | undefined,
  read: (word: string) => ReadonlyArray<Counted>
): TermInterpretation => {
  if (like === undefined) return noInterpretation
  const itself = like.find((one) => one.word === word)
  const isSpelt = itself !== undefined
  const said = isSpelt ? [] : like.filter(({ likeness }) => likeness >= saidMin).map(({ word }) => word)
  return { isSpelt, frequency: itself?.frequency ?? 0, said, alike: alikeLexemes(read(word), like, read) }
}

export class Vocabulary extends Context.Service<
  Vocabulary,
  {
    /** Reads in one statement what the other reads need of a query's words. Returns their similar words. */
    readonly prepare: (query: Words, state: IndexState) => Effect.Effect<SimilarTo, SqlError.SqlError>
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
      state: IndexState,
      known?: SimilarTo
    ) => Effect.Effect<ReadonlyMap<string, TermInterpretation>, SqlError.SqlError>
  }
>()("tollkeeper/search-lexical/Vocabulary") {
  static readonly layer = Layer.effect(
    Vocabulary,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const search = yield* Search
      const stems = makeStems(sql)
      const readerOf = makeReaderOf(sql, yield* MemoryIndex, stems)
      /** As of one refresh of the statistics of one language. */
      let asOf = ""
      const found = new LruCache<string, Alternatives | null>({ name: "word-substitutes", capacity: keptMax })

      const substitutes = Effect.fnUntraced(function* (lexemes: ReadonlyArray<string>, state: IndexState) {
        const now = `${state.language} ${state.refreshedAt.getTime()}`
        if (now !== asOf) found.clear()
        asOf = now
        const asked = lexemes.filter((lexeme) => lexeme.length >= substituteLengthMin).slice(0, substitutesMax)
        const unknown = asked.filter((lexeme) => found.get(lexeme) === undefined)
        if (unknown.length > 0) {
          const observed = yield* Effect.timeoutOption(alternatives(sql, unknown, state.language), substituteTimeout)
          for (const [lexeme, instead] of Option.getOrElse(observed, () => [])) found.set(lexeme, instead ?? null)
        }
        return new Map(asked.map((lexeme) => [lexeme, found.peek(lexeme) ?? undefined]))
      })

      const similarTo = Effect.fnUntraced(function* (words: ReadonlyArray<string>, known: SimilarTo) {
        const similar = new Map(known)
        for (const word of words.filter((word) => !known.has(word)))
          similar.set(word, (yield* search.similarTerms(word, wordLikenessMin))?.slice(0, similarCandidatesMax))
        return similar
      })

      return Vocabulary.of({
        prepare: Effect.fnUntraced(function* ({ joined, words }, state) {
          const asked = [...new Set(words)]
          // Of many words the held ones count, which are not known yet.
          const similar = yield* similarTo(asked.length > alikeWordsMax ? [] : asked, new Map())
          yield* stems.read([
            ...readingsOf([...words, ...joined], state),
            ...readingsOf(similarWords(similar), { ...state, spoken: "" })
          ])
          return similar
        }),
        read: Effect.fnUntraced(function* (words, state) {
          return words.length === 0 ? [] : words.map(yield* readerOf(words, state))
        }),
        substitutes,
        meant: Effect.fnUntraced(function* (words, state, known = new Map()) {
          const asked = [...new Set(words)].slice(0, alikeWordsMax)
          const similar = yield* similarTo(asked, known)
          // Similar words are in the index's own language; no other language needs to be read.
          const read = yield* readerOf([...asked, ...similarWords(similar)], { ...state, spoken: "" })
          return new Map(asked.map((word) => [word, interpret(word, similar.get(word), read)]))
        })
      })
    })
  )
}
