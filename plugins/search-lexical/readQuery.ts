// From a query to weighted terms: stemmed as documents are, with the number of documents that hold each. A word that no
// document holds may be a partial word or a mistyped one: it then stands for the words that begin with it, or else for
// those most alike by trigrams, at a reduced weight. What stays unknown counts as missing, so that a query of unknown
// words finds nothing. What a word is found to be is kept until the statistics are refreshed: people ask in the same
// few words.
import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import type { IndexState } from "./LexicalStore.ts"
import type { Term } from "./planCandidates.ts"
import { gramsOf, isMistyped, queryWords } from "./words.ts"

export interface ReadQuery {
  /** At most `termsMax`, those worth most. */
  readonly terms: ReadonlyArray<Term>
  /** What a document could be worth that had every word of the query. */
  readonly mass: number
}

const termsMax = 16
const partialLengthMin = 3
const mistypedLengthMin = 4
const alternativesMax = 5
/** Of a match by the beginning of a word and by likeness, against one by the word itself. */
const partialShare = 0.5
const mistypedShare = 0.6
const likenessMin = 0.25

const quoted = (lexeme: string): string => `'${lexeme.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`

/** Robertson and Sparck Jones' inverse document frequency, never negative. */
export const rarity = (documents: number, all: number): number =>
  Math.log(1 + (Math.max(0, all - documents) + 0.5) / (documents + 0.5))

/** Words whose readings are kept. */
const keptMax = 20_000

interface Counted {
  readonly lexeme: string
  readonly documents: number
  readonly naming: number
}

interface Alternatives {
  readonly found: ReadonlyArray<Counted>
  readonly share: number
}

export const makeReadQuery = (sql: SqlClient.SqlClient) => {
  /**
   * The readings of words, and what stands for lexemes that no document holds: as of one refresh of the statistics of
   * one language.
   */
  let asOf = ""
  const readings = new Map<string, ReadonlyArray<Counted>>()
  const standIns = new Map<string, Alternatives | undefined>()

  const keep = <A>(map: Map<string, A>, key: string, value: A): void => {
    map.set(key, value)
    if (map.size > keptMax) map.delete(map.keys().next().value!)
  }

  const read = Effect.fnUntraced(function* (words: ReadonlyArray<string>, language: string) {
    const unread = [...new Set(words)].filter((word) => !readings.has(word))
    const found = new Map<string, Array<Counted>>(unread.map((word) => [word, []]))
    if (unread.length > 0) {
      const rows = yield* sql<Counted & { readonly word: string }>`
        select w.word, q.lexeme, coalesce(t.documents, 0) as documents, coalesce(t.naming, 0) as naming
        from jsonb_array_elements_text(${JSON.stringify(unread)}::jsonb) w (word),
          unnest(tsvector_to_array(to_tsvector(${language}::regconfig, w.word))) q (lexeme)
        left join search_lexical_terms t on t.language = ${language} and t.lexeme = q.lexeme collate "C"`
      for (const { word, ...counted } of rows) found.get(word)?.push(counted)
    }
    const all = words.map((word) => readings.get(word) ?? found.get(word)!)
    for (const [word, reading] of found) keep(readings, word, reading)
    return all.flat()
  })

  const alternatives = Effect.fnUntraced(function* (
    lexeme: string,
    language: string
  ): Effect.fn.Return<Alternatives | undefined, SqlError.SqlError> {
    if (lexeme.length >= partialLengthMin) {
      const longer = yield* sql<Counted>`select lexeme, documents, naming from search_lexical_terms
        where language = ${language} and lexeme >= ${lexeme} and lexeme < ${`${lexeme}\u{10ffff}`}
        order by documents desc, lexeme limit ${alternativesMax}`
      if (longer.length > 0) return { found: longer, share: partialShare }
    }
    if (lexeme.length < mistypedLengthMin) return undefined
    const grams = gramsOf(lexeme)
    const alike = yield* sql<Counted>`select lexeme, documents, naming from (
        select lexeme, documents, naming, cardinality(grams) as size,
          (select count(*) from unnest(grams) g where g in ${sql.in(grams)})::float8 as shared
        from search_lexical_terms
        where language = ${language} and grams && (select array_agg(g)
          from jsonb_array_elements_text(${JSON.stringify(grams)}::jsonb) g)
          and length(lexeme) between ${lexeme.length - 2} and ${lexeme.length + 2}) t
      where shared / (size + ${grams.length} - shared) >= ${likenessMin}
      order by shared / (size + ${grams.length} - shared) desc, documents desc limit 20`
    const found = alike.filter((one) => isMistyped(lexeme, one.lexeme)).slice(0, 3)
    return found.length === 0 ? undefined : { found, share: mistypedShare }
  })

  const standIn = Effect.fnUntraced(function* (lexeme: string, language: string) {
    if (standIns.has(lexeme)) return standIns.get(lexeme)
    const found = yield* alternatives(lexeme, language)
    keep(standIns, lexeme, found)
    return found
  })

  return Effect.fn("readQuery")(function* (
    query: string,
    state: IndexState
  ): Effect.fn.Return<ReadQuery, SqlError.SqlError> {
    const { joined, words } = queryWords(query, state.language)
    const { language } = state
    const now = `${language} ${state.refreshedAt.getTime()}`
    if (now !== asOf) {
      asOf = now
      readings.clear()
      standIns.clear()
    }
    let mass = 0
    const terms: Array<Term> = []
    const seen = new Set<string>()
    const own = yield* read(words, language)
    const compounds = yield* read(joined, language)
    for (const [at, { documents, lexeme, naming }] of [...own, ...compounds].entries()) {
      if (seen.has(lexeme)) continue
      seen.add(lexeme)
      if (documents > 0) {
        const weight = rarity(documents, state.documents)
        terms.push({ tsquery: quoted(lexeme), documents, naming, weight })
        mass += weight
        continue
      }
      // A compound in one piece is a second reading of words that are already there.
      if (at >= own.length) continue
      mass += rarity(0, state.documents)
      const instead = yield* standIn(lexeme, language)
      if (instead === undefined) continue
      const together = instead.found.reduce((sum, one) => sum + one.documents, 0)
      terms.push({
        tsquery: instead.found.map((one) => quoted(one.lexeme)).join(" | "),
        documents: together,
        naming: instead.found.reduce((sum, one) => sum + one.naming, 0),
        weight: instead.share * rarity(together, state.documents)
      })
    }
    return { terms: terms.toSorted((a, b) => b.weight - a.weight).slice(0, termsMax), mass }
  })
}
