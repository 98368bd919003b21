// From a query to weighted terms: stemmed as documents are, with the number of documents that hold each. A word that no
// document holds may be a partial word or a mistyped one: it then stands for the words that begin with it, or else for
// those most alike by trigrams, at a reduced weight. What stays unknown counts as missing, so that a query of unknown
// words finds nothing.
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { IndexState } from "./LexicalStore.ts"
import type { Term } from "./planCandidates.ts"
import { Vocabulary } from "./Vocabulary.ts"
import { queryWords } from "./words.ts"

export interface ReadQuery {
  /** At most `termsMax`, those worth most. */
  readonly terms: ReadonlyArray<Term>
  /** What a document could be worth that had every word of the query. */
  readonly mass: number
}

const termsMax = 16

const quoted = (lexeme: string): string => `'${lexeme.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`

/** Robertson and Sparck Jones' inverse document frequency, never negative. */
export const rarity = (documents: number, all: number): number =>
  Math.log(1 + (Math.max(0, all - documents) + 0.5) / (documents + 0.5))

export class QueryReader extends Context.Service<
  QueryReader,
  { readonly read: (query: string, state: IndexState) => Effect.Effect<ReadQuery, SqlError.SqlError> }
>()("tollkeeper/search-lexical/QueryReader") {
  static readonly layer = Layer.effect(
    QueryReader,
    Effect.gen(function* () {
      const vocabulary = yield* Vocabulary

      /** The term of a lexeme that no document holds: what stands for it, or nothing. */
      const standIn = Effect.fnUntraced(function* (lexeme: string, state: IndexState) {
        const instead = yield* vocabulary.standIn(lexeme, state)
        if (instead === undefined) return []
        const together = instead.found.reduce((sum, one) => sum + one.documents, 0)
        const term: Term = {
          tsquery: instead.found.map((one) => quoted(one.lexeme)).join(" | "),
          documents: together,
          naming: instead.found.reduce((sum, one) => sum + one.naming, 0),
          weight: instead.share * rarity(together, state.documents)
        }
        return [term]
      })

      const read = Effect.fn("readQuery")(function* (
        query: string,
        state: IndexState
      ): Effect.fn.Return<ReadQuery, SqlError.SqlError> {
        const { joined, words } = queryWords(query, state.language)
        let mass = 0
        const terms: Array<Term> = []
        const seen = new Set<string>()
        const own = yield* vocabulary.read(words, state)
        const compounds = yield* vocabulary.read(joined, state)
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
          terms.push(...(yield* standIn(lexeme, state)))
        }
        return { terms: terms.toSorted((a, b) => b.weight - a.weight).slice(0, termsMax), mass }
      })

      return QueryReader.of({ read })
    })
  ).pipe(Layer.provide(Vocabulary.layer))
}
