// From a query to weighted terms: stemmed as documents are, with the document frequency of each. A word that no
// document holds may be partial or mistyped: it is replaced by the words that begin with it, or else by the nearest by
// trigrams, at a reduced weight. Each of the first few words also matches its near-synonyms, for less. A word that
// stays unknown counts as missing, so that a query of unknown words finds nothing.
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { withSpanIfSampled } from "../../kernel/effect/withSpanIfSampled.ts"
import type { IndexState } from "./LexicalStore.ts"
import {
  alikeTerm,
  doubtfulTerm,
  isDoubtful,
  isEstablishedInstead,
  isHeld,
  lexemesOf,
  type Mistyped,
  mistypedOf,
  replacementsOf,
  substituteTerms,
  type Term,
  termOf,
  type WeightOf,
  withAlike
} from "./queryTerms.ts"
import { type Counted, isEstablished, type TermInterpretation, Vocabulary } from "./Vocabulary.ts"
import { commonShareOf } from "./commonWords.ts"
import { evidenceOf, fullEvidence, isMedium, ordinaryShare } from "./evidence.ts"
import { type Absent, measureQuery } from "./measureQuery.ts"
import { relationsOf } from "./relations.ts"
import type { ScoredQuery } from "./postings/scoreDocuments.ts"
import { translationsOf } from "./translations.ts"
import { queryWords } from "./words.ts"

export interface ReadQuery {
  /** At most `termsMax`, the terms of highest weight. */
  readonly terms: ReadonlyArray<Term>
  /** Expansion terms of the best documents: they rank and widen, but are not sufficient evidence (`Feedback.ts`). */
  readonly related: ReadonlyArray<Term>
  /** Adjacent words of the query: a document with some of them adjacent gains this much. */
  readonly phrase?: ScoredQuery["phrase"]
  /** The lexemes of the query's own rare words, without substitutes; undefined without rare words. */
  readonly discriminative: ReadonlyArray<string> | undefined
  readonly mistyped: ReadonlyArray<Mistyped>
  /** The worth of a document with every word of the query. */
  readonly mass: number
  /** The share of that which documents hold at all, and with similar words, spellings and topics. */
  readonly covered: number
  readonly supported: number
}

const termsMax = 16
/** A term is discriminative when its weight exceeds this share of the weight of a term of a single document. */
const discriminativeMin = 0.75
/** Minimum number of documents in the index for a term to count as rare. */
const discriminativeAmong = 20
const hasLetter = /\p{L}/u
/** A number is ambiguous (a port, a version, an amount): its share of a word's weight. */
const numberShare = 0.5

/** Each lexeme once, without those already present. */
const distinct = (all: ReadonlyArray<Counted>, there: Set<string>): ReadonlyArray<Counted> =>
  all.filter(({ lexeme }) => !there.has(lexeme) && there.add(lexeme))

/** The words that are nearly as rare as a word of a single document; among a few documents nothing is rare. */
const discriminativeOf = (
  known: ReadonlyArray<Counted>,
  weightOf: WeightOf,
  state: IndexState
): ReadQuery["discriminative"] => {
  if (state.documents < discriminativeAmong) return undefined
  const least = discriminativeMin * fullEvidence(state)
  const isDiscriminative = (counted: Counted) => hasLetter.test(counted.lexeme) && weightOf(counted) >= least
  const discriminative = known.filter(isDiscriminative).slice(0, termsMax)
  return discriminative.length === 0 ? undefined : discriminative.flatMap(lexemesOf)
}

/** Compounds are split in two: up to this many words per query, with at least this many letters per part. */
const compoundsMax = 2
const pieceMin = 4

/** `wettervorhersage` as `wett` and `ervorhersage`, `wette` and `rvorhersage` and so on. */
const pairsOf = (word: string): ReadonlyArray<readonly [string, string]> => {
  const letters = [...word]
  return Array.from({ length: Math.max(0, letters.length - 2 * pieceMin + 1) }, (_, at) => [
    letters.slice(0, at + pieceMin).join(""),
    letters.slice(at + pieceMin).join("")
  ])
}

/** Weight of adjacent words, as a share of the rarer word's weight. */
const phraseShare = 0.15

/** Every two words of the query that are neighbours and that documents hold. */
const phraseOf = (readings: ReadonlyArray<ReadonlyArray<Counted>>, weightOf: WeightOf): ScoredQuery["phrase"] => {
  const pairs = readings.slice(1, termsMax).flatMap(([b], at) => {
    const [a] = readings[at]!
    if (a === undefined || b === undefined || a.lexeme === b.lexeme || !isHeld(a) || !isHeld(b)) return []
    return [{ pair: [lexemesOf(a), lexemesOf(b)] as const, weight: Math.min(weightOf(a), weightOf(b)) }]
  })
  if (pairs.length === 0) return undefined
  const rare = pairs.reduce((sum, { weight }) => sum + weight, 0) / pairs.length
  return { pairs: pairs.map(({ pair }) => pair), weight: phraseShare * rare }
}

/** Weight of a phrase's topic, as a share of a query word's; and the missing weight of a word that a topic explains. */
const aboutShare = 0.3

/** Weight of a translated word, as a share of a query word's. */
const translatedShare = 0.7
/** Share of that for the English of a word that documents hold in the query's own language. */
const translatedBesideShare = 0.3

/** The weight of each lexeme, without those that name the medium. */
const weighed = (
  all: ReadonlyArray<Counted>,
  wordOf: ReadonlyMap<string, string>,
  meant: ReadonlyMap<string, TermInterpretation>,
  state: IndexState
): { readonly weightOf: WeightOf; readonly discriminative: ReadonlyArray<Counted> } => {
  const commonOf = ({ lexeme }: Counted) => {
    const word = wordOf.get(lexeme) ?? lexeme
    return Math.max(...[word, ...(meant.get(word)?.said ?? [])].map(commonShareOf))
  }
  const shareOf = ({ lexeme }: Counted) =>
    hasLetter.test(lexeme) ? ordinaryShare(meant.get(wordOf.get(lexeme) ?? lexeme)?.frequency ?? 0) : numberShare
  return {
    weightOf: (counted) => evidenceOf(counted, state, commonOf(counted)) * shareOf(counted),
    discriminative: all.filter((counted) => !isMedium(counted, state, commonOf(counted)))
  }
}

/** Splits the first few long words that no document holds into two words that documents hold, if possible. */
const makeApart = (vocabulary: Vocabulary["Service"]) =>
  Effect.fnUntraced(function* (
    words: ReadonlyArray<string>,
    joined: ReadonlyArray<string>,
    state: IndexState
  ): Effect.fn.Return<ReadonlyArray<string>, SqlError.SqlError> {
    const readings = yield* vocabulary.read([...words, ...joined], state)
    const lost = words.filter(
      (word, at) => word.length >= 2 * pieceMin && readings[at]!.length > 0 && !readings[at]!.some(isHeld)
    )
    const parts = new Map<string, readonly [string, string]>()
    for (const word of lost.slice(0, compoundsMax)) {
      const pairs = pairsOf(word)
      const found = yield* vocabulary.read(pairs.flat(), state)
      const pairOf = (is: (counted: Counted) => boolean) =>
        pairs.find((_, at) => found[2 * at]!.some(is) && found[2 * at + 1]!.some(is))
      const pair = pairOf(isEstablished) ?? pairOf(isHeld)
      if (pair !== undefined) parts.set(word, pair)
    }
    return words.flatMap((word): ReadonlyArray<string> => parts.get(word) ?? [word])
  })

/** The topics of a query's phrases, as far as documents hold them, and the words that they explain. */
const makeAboutOf = (vocabulary: Vocabulary["Service"]) =>
  Effect.fnUntraced(function* (
    query: string,
    words: ReadonlyArray<string>,
    heldWords: ReadonlySet<string | undefined>,
    state: IndexState
  ) {
    // A word that listings hold needs no relation.
    const relations = relationsOf(query).filter(({ covers }) => covers.length > 1 || !heldWords.has(covers[0]))
    const aboutWords = [...new Set(relations.flatMap(({ about }) => about))].filter((word) => !words.includes(word))
    const readings = yield* vocabulary.read(aboutWords, state)
    // A topic without any listing explains nothing.
    const heldAbout = new Set(aboutWords.filter((_, at) => readings[at]!.some(isHeld)))
    const explaining = relations.filter((one) => one.about.some((word) => heldAbout.has(word)))
    return {
      about: readings.flat().filter(isHeld),
      explained: new Set(explaining.flatMap(({ covers }) => covers))
    }
  })

/** English terms of a query in another language that documents hold, and the score of a document with all of them. */
const makeTranslated = (vocabulary: Vocabulary["Service"]) =>
  Effect.fnUntraced(function* (query: string, heldWords: ReadonlySet<string | undefined>, state: IndexState) {
    const translations = translationsOf(query)
    const english = [...new Set(translations.flatMap(({ english }) => english))]
    const readings = yield* vocabulary.read(english, state)
    const terms = new Map<string, Term>()
    let mass = 0
    for (const { covers, english: words } of translations) {
      const found = words
        .flatMap((word) => readings[english.indexOf(word)]!.map((counted) => ({ word, counted })))
        .filter(({ counted, word }) => isHeld(counted) && !isMedium(counted, state, commonShareOf(word)))
        .map(({ counted, word }) => ({ counted, weight: evidenceOf(counted, state, commonShareOf(word)) }))
      const most = found.length === 0 ? fullEvidence(state) : Math.max(...found.map(({ weight }) => weight))
      // A word that listings use in the query's own language is searched as is, and its English for less.
      const held = covers.some((word) => heldWords.has(word)) ? translatedBesideShare : 1
      mass += most * held
      for (const { counted, weight } of found) {
        const share = (2 * translatedShare * held) / (found.length + 1)
        const shared = () => share * weight
        terms.set(counted.lexeme, termOf(counted, shared))
      }
    }
    return { covered: new Set(translations.flatMap(({ covers }) => covers)), terms, mass }
  })

/** Terms of the query's translation and of its subject, without its own. */
const relatedTerms = (
  translated: ReadonlyMap<string, Term>,
  about: ReadonlyArray<Counted>,
  asked: ReadonlySet<string>,
  weightOf: WeightOf
): ReadonlyArray<Term> =>
  [
    ...[...translated].filter(([lexeme]) => !asked.has(lexeme)).map(([, term]) => term),
    ...distinct(about, new Set([...asked, ...translated.keys()])).map((one) => ({
      ...termOf(one, weightOf),
      weight: aboutShare * weightOf(one)
    }))
  ].slice(0, termsMax)

export class QueryReader extends Context.Service<
  QueryReader,
  { readonly read: (query: string, state: IndexState) => Effect.Effect<ReadQuery, SqlError.SqlError> }
>()("tollkeeper/search-lexical/QueryReader") {
  static readonly layer = Layer.effect(
    QueryReader,
    Effect.gen(function* () {
      const vocabulary = yield* Vocabulary
      const [apart, aboutOf] = [makeApart(vocabulary), makeAboutOf(vocabulary)]
      const translatedOf = makeTranslated(vocabulary)

      const read = Effect.fnUntraced(function* (
        query: string,
        state: IndexState
      ): Effect.fn.Return<ReadQuery, SqlError.SqlError> {
        const { joined, words: given } = queryWords(query, state.language)
        const similar = yield* vocabulary.prepare({ joined, words: given }, state)
        const words = yield* apart(given, joined, state)
        const readings = yield* vocabulary.read([...words, ...joined], state)
        const all = distinct(readings.slice(0, words.length).flat(), new Set())
        const wordOf = new Map(
          words.toReversed().flatMap((word, at) => readings[words.length - 1 - at]!.map(({ lexeme }) => [lexeme, word]))
        )
        // Terms that documents hold come first: similar terms are read only for the first few.
        const inTurn = all.toSorted((a, b) => Number(isHeld(b)) - Number(isHeld(a)))
        const inOrder = inTurn.map(({ lexeme }) => wordOf.get(lexeme)!)
        const meant = yield* vocabulary.meant(inOrder, state, similar)
        const { discriminative, weightOf } = weighed(all, wordOf, meant, state)
        const own = discriminative.length === 0 ? all : discriminative
        const known = own.filter(isHeld)
        const heldWords = new Set(known.map(({ lexeme }) => wordOf.get(lexeme)))
        const translated = yield* translatedOf(query, heldWords, state)
        const isTranslated = ({ lexeme }: Counted) => translated.covered.has(wordOf.get(lexeme) ?? "")
        // A translated word is searched by its English, not by similar words or prefixes.
        const unknown = own.filter((one) => one.documents === 0 && !isTranslated(one))
        const asked = new Set(all.map(({ lexeme }) => lexeme))
        // A compound in one piece is a second reading of words that are already there.
        const compounds = distinct(readings.slice(words.length).flat(), new Set(asked))
        const alike = (counted: Counted) =>
          isTranslated(counted)
            ? undefined
            : alikeTerm(weightOf(counted), meant.get(wordOf.get(counted.lexeme)!)?.alike ?? [], asked, state)
        const doubtful = known.filter((one) => isDoubtful(one, state, meant.get(wordOf.get(one.lexeme)!)))
        const lost = [...unknown, ...doubtful].map(({ lexeme }) => lexeme)
        const instead = yield* vocabulary.substitutes(lost, state)
        const replaced = replacementsOf(unknown, wordOf, instead, meant)
        const doubted = replacementsOf(doubtful, wordOf, instead, meant).filter(isEstablishedInstead)
        const isPlain = (counted: Counted) => !doubted.some(({ one }) => one === counted)
        const direct = [
          ...known.filter(isPlain).map((one) => withAlike(termOf(one, weightOf), alike(one))),
          ...doubted.map(({ one, substitute }) => doubtfulTerm(one, substitute, weightOf, state)),
          ...compounds.filter(isHeld).map((one) => termOf(one, weightOf))
        ]
        const substitutes = replaced.flatMap((lost) => substituteTerms(lost, alike(lost.one), weightOf, state))
        const terms = [...direct, ...substitutes].toSorted((a, b) => b.weight - a.weight).slice(0, termsMax)
        const { about, explained } = yield* aboutOf(query, words, heldWords, state)
        const absent = unknown.map((one): Absent => ({
          weight: weightOf(one),
          like: alike(one)?.weight ?? 0,
          isExplained: explained.has(wordOf.get(one.lexeme) ?? ""),
          isGuessed: instead.get(one.lexeme) !== undefined
        }))
        const related = relatedTerms(translated.terms, about, asked, weightOf)
        return {
          // If no document holds a word of the query, the related terms are the query.
          terms: terms.length === 0 ? related : terms,
          related: terms.length === 0 ? [] : related,
          phrase: phraseOf(readings.slice(0, words.length), weightOf),
          mistyped: mistypedOf([...replaced, ...doubted]),
          discriminative: discriminativeOf(known, weightOf, state),
          ...measureQuery(direct, absent, translated.mass)
        }
      }, withSpanIfSampled("readQuery"))

      return QueryReader.of({ read })
    })
  ).pipe(Layer.provideMerge(Vocabulary.layer))
}
