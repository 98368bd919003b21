// From a query to weighted terms: stemmed as documents are, with the number of documents that hold each. A word that no
// document holds may be a partial word or a mistyped one: it then stands for the words that begin with it, or else for
// those most alike by trigrams, at a reduced weight. What stays unknown counts as missing, so that a query of unknown
// words finds nothing.
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { IndexState } from "./LexicalStore.ts"
import type { Term } from "./planCandidates.ts"
import { type Alternatives, type Counted, Vocabulary } from "./Vocabulary.ts"
import { queryWords } from "./words.ts"

export interface ReadQuery {
  /** At most `termsMax`, those worth most. */
  readonly terms: ReadonlyArray<Term>
  /** Words of the documents that answer best, which rank and widen, and mean nothing by themselves (`Feedback.ts`). */
  readonly related: ReadonlyArray<Term>
  /** What a document could be worth that had every word of the query. */
  readonly mass: number
}

const termsMax = 16

export const quoted = (lexeme: string): string => `'${lexeme.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`

/** Robertson and Sparck Jones' inverse document frequency, never negative. */
export const rarity = (documents: number, all: number): number =>
  Math.log(1 + (Math.max(0, all - documents) + 0.5) / (documents + 0.5))

/** Each lexeme once, without those that are there already. */
const distinct = (all: ReadonlyArray<Counted>, there: Set<string>): ReadonlyArray<Counted> =>
  all.filter(({ lexeme }) => !there.has(lexeme) && there.add(lexeme))

const termOf = ({ documents, lexeme, naming }: Counted, state: IndexState): Term => ({
  tsquery: quoted(lexeme),
  documents,
  naming,
  weight: rarity(documents, state.documents)
})

/** One term of all that may have been meant. */
const standInTerm = ({ found, share }: Alternatives, state: IndexState): Term => {
  const documents = found.reduce((sum, one) => sum + one.documents, 0)
  return {
    tsquery: found.map(({ lexeme }) => quoted(lexeme)).join(" | "),
    documents,
    naming: found.reduce((sum, one) => sum + one.naming, 0),
    weight: share * rarity(documents, state.documents)
  }
}

export class QueryReader extends Context.Service<
  QueryReader,
  { readonly read: (query: string, state: IndexState) => Effect.Effect<ReadQuery, SqlError.SqlError> }
>()("tollkeeper/search-lexical/QueryReader") {
  static readonly layer = Layer.effect(
    QueryReader,
    Effect.gen(function* () {
      const vocabulary = yield* Vocabulary

      const read = Effect.fn("readQuery")(function* (
        query: string,
        state: IndexState
      ): Effect.fn.Return<ReadQuery, SqlError.SqlError> {
        const { joined, words } = queryWords(query, state.language)
        const readings = yield* vocabulary.read([...words, ...joined], state)
        const own = distinct(readings.slice(0, words.length).flat(), new Set())
        const known = own.filter(({ documents }) => documents > 0)
        const unknown = own.filter(({ documents }) => documents === 0)
        // A compound in one piece is a second reading of words that are already there.
        const compounds = distinct(readings.slice(words.length).flat(), new Set(own.map(({ lexeme }) => lexeme)))
        const direct = [...known, ...compounds.filter(({ documents }) => documents > 0)].map((one) =>
          termOf(one, state)
        )
        const instead = yield* vocabulary.standIns(
          unknown.map(({ lexeme }) => lexeme),
          state
        )
        const standIns = [...instead.values()].flatMap((one) => (one === undefined ? [] : [standInTerm(one, state)]))
        const terms = [...direct, ...standIns].toSorted((a, b) => b.weight - a.weight).slice(0, termsMax)
        const mass = direct.reduce((sum, { weight }) => sum + weight, 0) + unknown.length * rarity(0, state.documents)
        return { terms, related: [], mass }
      })

      return QueryReader.of({ read })
    })
  ).pipe(Layer.provide(Vocabulary.layer))
}
