// What the words of queries are in the index: their lexemes with the numbers of documents that hold them, and what may
// stand for a lexeme that no document holds (the words that begin with it, or else those most alike by trigrams). What
// a word is found to be is kept until the statistics are refreshed: people ask in the same few words.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { IndexState } from "./LexicalStore.ts"
import { gramsOf, isMistyped } from "./words.ts"

export interface Counted {
  readonly lexeme: string
  readonly documents: number
  readonly naming: number
}

export interface Alternatives {
  readonly found: ReadonlyArray<Counted>
  /** What a match is worth, against one by the word itself. */
  readonly share: number
}

const partialLengthMin = 3
const mistypedLengthMin = 4
const alternativesMax = 5
/** Of a match by the beginning of a word and by likeness, against one by the word itself. */
const partialShare = 0.5
const mistypedShare = 0.6
const likenessMin = 0.25
/** Words whose readings are kept. */
const keptMax = 20_000

const keep = <A>(map: Map<string, A>, key: string, value: A): void => {
  map.set(key, value)
  if (map.size > keptMax) map.delete(map.keys().next().value!)
}

/** Words as lexemes, by word; one that the language leaves out has none. */
const readWords = Effect.fnUntraced(function* (words: ReadonlyArray<string>, language: string) {
  const sql = yield* SqlClient.SqlClient
  const found = new Map<string, Array<Counted>>(words.map((word) => [word, []]))
  const rows = yield* sql<Counted & { readonly word: string }>`
    select w.word, q.lexeme, coalesce(t.documents, 0) as documents, coalesce(t.naming, 0) as naming
    from jsonb_array_elements_text(${JSON.stringify(words)}::jsonb) w (word),
      unnest(tsvector_to_array(to_tsvector(${language}::regconfig, w.word))) q (lexeme)
    left join search_lexical_terms t on t.language = ${language} and t.lexeme = q.lexeme collate "C"`
  for (const { word, ...counted } of rows) found.get(word)?.push(counted)
  return found
})

const alternatives = Effect.fnUntraced(function* (lexeme: string, language: string) {
  const sql = yield* SqlClient.SqlClient
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

export class Vocabulary extends Context.Service<
  Vocabulary,
  {
    /** The lexemes of words, in their order. */
    readonly read: (
      words: ReadonlyArray<string>,
      state: IndexState
    ) => Effect.Effect<ReadonlyArray<Counted>, SqlError.SqlError>
    readonly standIn: (lexeme: string, state: IndexState) => Effect.Effect<Alternatives | undefined, SqlError.SqlError>
  }
>()("tollkeeper/search-lexical/Vocabulary") {
  static readonly layer = Layer.effect(
    Vocabulary,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      /** As of one refresh of the statistics of one language. */
      let asOf = ""
      const readings = new Map<string, ReadonlyArray<Counted>>()
      const standIns = new Map<string, Alternatives | undefined>()

      const forgetOlder = ({ language, refreshedAt }: IndexState): void => {
        const now = `${language} ${refreshedAt.getTime()}`
        if (now === asOf) return
        asOf = now
        readings.clear()
        standIns.clear()
      }

      const read = Effect.fnUntraced(
        function* (words: ReadonlyArray<string>, state: IndexState) {
          forgetOlder(state)
          const unread = [...new Set(words)].filter((word) => !readings.has(word))
          const found: ReadonlyMap<string, ReadonlyArray<Counted>> = unread.length === 0
            ? new Map()
            : yield* readWords(unread, state.language)
          const all = words.map((word) => readings.get(word) ?? found.get(word)!)
          for (const [word, reading] of found) keep(readings, word, reading)
          return all.flat()
        },
        Effect.provideService(SqlClient.SqlClient, sql)
      )

      const standIn = Effect.fnUntraced(
        function* (lexeme: string, state: IndexState) {
          forgetOlder(state)
          if (standIns.has(lexeme)) return standIns.get(lexeme)
          const found = yield* alternatives(lexeme, state.language)
          keep(standIns, lexeme, found)
          return found
        },
        Effect.provideService(SqlClient.SqlClient, sql)
      )

      return Vocabulary.of({ read, standIn })
    })
  )
}
