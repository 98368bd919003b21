// The lexical index in PostgreSQL: documents as weighted tsvectors, and statistics of their lexemes. Writes are
// idempotent and an older version never replaces a newer one, so that the initial build and concurrent changes may be
// applied in any order. Changes are written to the index of every language, because while the language changes any
// replica may receive a change. Statistics are refreshed when a fifth of the documents has changed, after five minutes
// with any change, and immediately while there are few documents.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { ResourceDocument } from "../catalog/contract.ts"
import { type EvidenceConditions, refreshStatistics } from "./refreshStatistics.ts"
import { writeDocuments } from "./writeDocuments.ts"

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

export interface IndexState {
  readonly language: string
  /** The last resource id of the first build. */
  readonly scanned: bigint
  readonly complete: boolean
  /** As of the last refresh. */
  readonly documents: number
  /** As of the last refresh; 0 before the first count. */
  readonly origins: number
  /** Some listing has evidence, so `origins` counts only established origins. */
  readonly proven: boolean
  readonly averageLexemes: number
  /** The most frequent other languages of listings, by their tags (`languages.ts`). */
  readonly spoken: string
  readonly changed: number
  /** When the statistics were last refreshed. */
  readonly refreshedAt: Date
}

/** PostgreSQL's names of text search configurations; a closed list, so that a name is safe inside a statement. */
const isConfiguration = (language: string): boolean => /^[a-z_]{1,63}$/.test(language)

export class LexicalStore extends Context.Service<
  LexicalStore,
  {
    readonly language: string
    /** The language of the index that answers: the configured one once it is complete, the previous one until then. */
    readonly answering: Sql<IndexState>
    /** The state of the configured language's index; complete if another replica has moved on to another language. */
    readonly state: Sql<IndexState>
    /** Into the index of every language there is. */
    readonly write: (documents: ReadonlyArray<ResourceDocument>) => Sql<void>
    /** Records how far the first build has come. */
    readonly scannedTo: (id: bigint, complete: boolean) => Sql<void>
    /** Refreshes the statistics when they are due; returns whether it did. */
    readonly refresh: Sql<boolean>
    /** Removes languages that were begun before the own one, once that is complete. */
    readonly retire: Sql<void>
  }
>()("tollkeeper/search-lexical/LexicalStore") {
  /** Without `evidence` every origin counts for how common a word is. */
  static readonly layer = (
    language: string,
    evidence?: EvidenceConditions
  ): Layer.Layer<LexicalStore, SqlError.SqlError, SqlClient.SqlClient> =>
    Layer.effect(
      LexicalStore,
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        if (!isConfiguration(language))
          return yield* Effect.die(new Error("search.lexical.language is not the name of a text search configuration"))
        // By the database's clock, which all replicas share and which may not advance between two statements.
        yield* sql`insert into search_lexical_state (language, begun_at)
          select ${language}, greatest(clock_timestamp(), max(begun_at) + interval '1 microsecond')
            from search_lexical_state where language <> ${language}
          on conflict (language) do update set begun_at = excluded.begun_at`
        const columns = sql.literal(
          `language, scanned, complete, documents, origins, proven, average_lexemes as "averageLexemes", spoken, ` +
            `changed, refreshed_at as "refreshedAt"`
        )
        const retired: IndexState = {
          language,
          scanned: 0n,
          complete: true,
          documents: 0,
          origins: 0,
          proven: false,
          averageLexemes: 1,
          spoken: "",
          changed: 0,
          refreshedAt: new Date(0)
        }
        const state = Effect.map(
          sql<IndexState>`select ${columns} from search_lexical_state where language = ${language}`,
          ([row]) => row ?? retired
        )

        return LexicalStore.of({
          language,
          answering: Effect.map(
            sql<IndexState>`select ${columns} from search_lexical_state order by (language = ${language}
              and complete) desc, complete desc, (language = ${language}) desc limit 1`,
            ([row]) => row!
          ),
          state,
          write: (documents) => Effect.provideService(writeDocuments(documents), SqlClient.SqlClient, sql),
          scannedTo: (id, complete) =>
            Effect.asVoid(
              sql`update search_lexical_state set scanned = ${id}::int8, complete = ${complete}
                where language = ${language}`
            ),
          refresh: Effect.provideService(refreshStatistics(language, evidence), SqlClient.SqlClient, sql),
          retire: Effect.gen(function* () {
            const earlier = sql`select o.language from search_lexical_state o join search_lexical_state s
              on s.language = ${language} and s.complete and o.begun_at < s.begun_at`
            for (const table of ["documents", "terms", "state"]) {
              yield* sql`delete from ${sql(`search_lexical_${table}`)} where language in (${earlier})`
            }
          })
        })
      })
    )
}
