// The generations of embeddings in the database: begun by the settings, filled by jobs (`EmbeddingJobs.ts`), active
// when complete. Exactly one is active, by a unique index; the move to a new one is a single transaction, so a search
// sees the old one whole or the new one whole. The configuration of a generation (model, revision, dimension, prefixes)
// never changes: another configuration is another generation (S319).
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { inTransaction } from "../../kernel/database/Database.ts"
import { trustedMillis } from "../../kernel/time/trustedTime.ts"
import type { GenerationStatus } from "../catalog/contract.ts"
import type { Method, VectorSet } from "./index/VectorIndex.ts"

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

/** The settings that determine the meaning of a vector. */
export interface EmbeddingConfig {
  readonly provider: string
  readonly url: string
  readonly model: string
  readonly revision: string
  readonly dimension: number
  readonly pooling: string
  readonly queryPrefix: string
  readonly documentPrefix: string
}

export interface Generation extends EmbeddingConfig {
  readonly id: bigint
  readonly method: Method
  readonly status: GenerationStatus["status"]
  readonly scanned: bigint
  readonly scanComplete: boolean
  /** How often its vectors were stored. */
  readonly stored: bigint
}

/** The table and columns of a generation's vectors. */
export const embeddingColumnOf = ({ dimension, id, method }: Generation): VectorSet => ({
  generation: id,
  dimension,
  method
})

/** How long a retired generation's vectors stay, for searches that are still reading them. */
const dropAfterMillis = 60_000

const now = Effect.map(trustedMillis, (millis) => new Date(millis))

type HistoryRow = Omit<GenerationStatus, "created_at" | "activated_at" | "retired_at"> & {
  readonly created_at: Date
  readonly activated_at: Date | null
  readonly retired_at: Date | null
}

const readHistory = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<HistoryRow>`select provider, model, revision, dimension, pooling, normalization, status,
      created_at, activated_at, retired_at
    from search_semantic_generations order by id desc limit 1000`
  return rows.map((row) => ({
    ...row,
    created_at: row.created_at.toISOString(),
    activated_at: row.activated_at?.toISOString() ?? null,
    retired_at: row.retired_at?.toISOString() ?? null
  }))
})

/** Runs in a transaction. */
const activate = Effect.fn("Generations.activate")(function* (generation: bigint) {
  const sql = yield* SqlClient.SqlClient
  const at = yield* now
  // Another replica may have activated it, or abandoned it for other settings. Then the active one stays.
  const building = yield* sql`select 1 from search_semantic_generations where id = ${generation}::int8
      and status = 'building' for update`
  if (building.length === 0) return false
  yield* sql`update search_semantic_generations set status = 'retired', retired_at = ${at} where status = 'active'`
  yield* sql`update search_semantic_generations set status = 'active', activated_at = ${at}
    where id = ${generation}::int8`
  return true
})

export class Generations extends Context.Service<
  Generations,
  {
    /** The generation of this configuration that is being built or active; otherwise begins a new one. */
    readonly begin: (meaning: EmbeddingConfig, fingerprint: string, method: Method) => Sql<Generation>
    readonly active: Sql<Option.Option<Generation>>
    /** Generations that are being built or active; changes of resources concern all of them. */
    readonly live: Sql<ReadonlyArray<Generation>>
    readonly scannedTo: (generation: bigint, id: bigint, complete: boolean) => Sql<void>
    /** Vectors of it are being stored, in this transaction. */
    readonly storing: (generation: bigint) => Sql<void>
    /** Every generation there was, newest first; at most 1 000. */
    readonly history: Sql<ReadonlyArray<GenerationStatus>>
    /** Activates it and retires the previous one. Returns false, without any change, if its building has stopped. */
    readonly activate: (generation: bigint) => Sql<boolean>
    readonly giveUp: (generation: bigint, detail: string) => Sql<void>
    /** Marks live generations of other configurations as no longer needed, except the active one. */
    readonly abandonOthers: (generation: bigint) => Sql<void>
    /** Ended generations; their vectors may be dropped now. */
    readonly droppable: Sql<ReadonlyArray<Generation>>
    readonly dropped: (generation: bigint) => Sql<void>
  }
>()("tollkeeper/search-semantic/Generations") {
  static readonly layer = Layer.effect(
    Generations,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const columns =
        sql.literal(`id, provider, url, model, revision, dimension, pooling, query_prefix as "queryPrefix",
          document_prefix as "documentPrefix",
        method, status, scanned, scan_complete as "scanComplete", stored`)
      const begin = Effect.fn("Generations.begin")(function* (
        meaning: EmbeddingConfig,
        fingerprint: string,
        method: Method
      ) {
        const { dimension, documentPrefix, model, pooling, provider, queryPrefix, revision, url } = meaning
        yield* sql`insert into search_semantic_generations ${sql.insert({
          fingerprint,
          provider,
          url,
          model,
          revision,
          dimension,
          pooling,
          normalization: "l2",
          query_prefix: queryPrefix,
          document_prefix: documentPrefix,
          method,
          created_at: yield* now
        })} on conflict do nothing`
        const [found] =
          yield* sql<Generation>`select ${columns} from search_semantic_generations where fingerprint = ${fingerprint}
            and status in ('building', 'active')`
        return found!
      })

      return Generations.of({
        begin,
        active: Effect.map(
          sql<Generation>`select ${columns} from search_semantic_generations where status = 'active'`,
          ([row]) => Option.fromUndefinedOr(row)
        ),
        live: sql<Generation>`select ${columns} from search_semantic_generations where status in ('building', 'active')
          order by id`,
        scannedTo: (generation, id, complete) =>
          Effect.asVoid(
            sql`update search_semantic_generations set scanned = ${id}::int8, scan_complete = ${complete}
              where id = ${generation}::int8`
          ),
        storing: (generation) =>
          Effect.asVoid(sql`update search_semantic_generations set stored = stored + 1 where id = ${generation}::int8`),
        history: Effect.provideService(readHistory, SqlClient.SqlClient, sql),
        activate: (generation) => Effect.provideService(inTransaction(activate(generation)), SqlClient.SqlClient, sql),
        giveUp: Effect.fn("Generations.giveUp")(function* (generation, detail) {
          yield* sql`update search_semantic_generations set status = 'failed', detail = ${detail.slice(0, 200)},
            retired_at = ${yield* now} where id = ${generation}::int8 and status = 'building'`
        }),
        abandonOthers: Effect.fn("Generations.abandonOthers")(function* (generation) {
          yield* sql`update search_semantic_generations set status = 'retired', retired_at = ${yield* now}
            where id <> ${generation}::int8 and status = 'building'`
        }),
        droppable: Effect.flatMap(
          now,
          (at) =>
            sql<Generation>`select ${columns} from search_semantic_generations
            where not dropped and status in ('retired', 'failed')
              and retired_at < ${new Date(at.getTime() - dropAfterMillis)}`
        ),
        dropped: Effect.fn("Generations.dropped")(function* (generation) {
          yield* sql`delete from search_semantic_jobs where generation = ${generation}::int8`
          yield* sql`update search_semantic_generations set dropped = true where id = ${generation}::int8`
        })
      })
    })
  )
}
