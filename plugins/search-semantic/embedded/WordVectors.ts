// The vectors of resources by the table of words, in the database, and the progress of this revision. A resource gets a
// vector only if it has a word of the table.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { ResourceDocument } from "../../catalog/contract.ts"
import { type VectorSet, VectorIndex, wordVectors } from "../index/VectorIndex.ts"
import { phrasesHash } from "./Phrasebook.ts"
import { recipe, resourceVector } from "./textVector.ts"
import { dimension, tableHash, LoadedWordTable } from "./WordTable.ts"

export const wordVectorSet: VectorSet = { generation: wordVectors, dimension, method: "scan" }

const revision = `${recipe} ${tableHash} ${phrasesHash}`

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

interface WordsState {
  /** The last resource id of the first run. */
  readonly scanned: bigint
  readonly complete: boolean
}

export class WordVectors extends Context.Service<
  WordVectors,
  {
    readonly state: Sql<WordsState>
    readonly write: (documents: ReadonlyArray<ResourceDocument>) => Sql<void>
    /** Records the progress of the first run; a complete revision replaces the others. */
    readonly scannedTo: (id: bigint, complete: boolean) => Sql<void>
    readonly count: Sql<number>
  }
>()("tollkeeper/search-semantic/WordVectors") {
  static readonly layer = Layer.effect(
    WordVectors,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const index = yield* VectorIndex
      const words = yield* LoadedWordTable
      yield* sql`insert into search_semantic_words (revision) values (${revision}) on conflict do nothing`

      return WordVectors.of({
        state: Effect.map(
          sql<WordsState>`select scanned, complete from search_semantic_words where revision = ${revision}`,
          ([row]) => row ?? { scanned: 0n, complete: false }
        ),
        write: Effect.fn("WordVectors.write")(function* (documents) {
          // The table is only loaded for the first resource: an empty catalog does not need it.
          if (documents.length === 0) return
          const table = yield* words.table
          // Other work runs between two documents: the largest ones take milliseconds each.
          const vectors = yield* Effect.forEach(documents, (document) =>
            Effect.map(Effect.yieldNow, () => ({ id: document.id, vector: resourceVector(table, document) }))
          )
          yield* index.write(
            wordVectorSet,
            vectors.flatMap(({ id, vector }) => (vector === undefined ? [] : [{ id, vector }]))
          )
        }),
        scannedTo: Effect.fn("WordVectors.scannedTo")(function* (id, complete) {
          yield* sql`update search_semantic_words set scanned = ${id}::int8, complete = ${complete}
            where revision = ${revision}`
          if (complete) yield* sql`delete from search_semantic_words where revision <> ${revision}`
        }),
        count: Effect.map(
          sql<{ count: number }>`select count(*)::int as count from search_semantic_word_vectors`,
          ([row]) => row?.count ?? 0
        )
      })
    })
  )
}
