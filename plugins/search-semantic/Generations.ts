// The generations of embeddings in the database: begun by the settings, filled by jobs, active when complete. Exactly
// one is active, by a unique index; the move to a new one is a single transaction, so a search sees the old one whole
// or the new one whole. What a generation means (model, revision, dimension, prefixes) never changes: another meaning
// is another generation (S319).
import { Clock, Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { inTransaction } from "../../kernel/database/Database.ts"
import type { GenerationStatus } from "../catalog/contract.ts"
import type { Method } from "./VectorIndex.ts"

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

/** What decides what a vector means. */
export interface Meaning {
  readonly provider: string
  readonly url: string
  readonly model: string
  readonly revision: string
  readonly dimension: number
  readonly pooling: string
  readonly queryPrefix: string
  readonly documentPrefix: string
}

export interface Generation extends Meaning {
  readonly id: bigint
  readonly method: Method
  readonly status: GenerationStatus["status"]
  readonly scanned: bigint
  readonly scanComplete: boolean
}

export interface Job {
  readonly generation: bigint
  /** The catalog's resource id. */
  readonly id: bigint
  readonly attempts: number
  readonly fence: bigint
}

/** How long a retired generation's vectors stay, for searches that are still reading them. */
const dropAfterMillis = 60_000
const backoffMillis = (attempts: number): number => Math.min(600_000, 500 * 2 ** attempts)

export class Generations extends Context.Service<
  Generations,
  {
    /** The generation of this meaning that is being built or active; begins one when there is none. */
    readonly begin: (meaning: Meaning, fingerprint: string, method: Method) => Sql<Generation>
    readonly active: Sql<Option.Option<Generation>>
    /** Those that are being built or active; changes of resources concern all of them. */
    readonly live: Sql<ReadonlyArray<Generation>>
    /** Queues resources for a generation; one that was queued already is due again at once. */
    readonly enqueue: (generation: bigint, ids: ReadonlyArray<bigint>) => Sql<void>
    readonly scannedTo: (generation: bigint, id: bigint, complete: boolean) => Sql<void>
    /** Leases jobs: untried ones together, a tried one alone. The active generation's come first. */
    readonly lease: (limit: number, leaseMillis: number) => Sql<ReadonlyArray<Job>>
    /**
     * Which of the jobs are still this holder's; those are finished and go. In the transaction that stores their
     * vectors.
     */
    readonly finish: (jobs: ReadonlyArray<Job>) => Sql<ReadonlySet<bigint>>
    /**
     * Gives jobs back after a failure: due later, or set aside when the resources are the reason and have failed too
     * often.
     */
    readonly fail: (
      jobs: ReadonlyArray<Job>,
      error: string,
      options: { readonly counts: boolean; readonly attemptsMax: number }
    ) => Sql<void>
    readonly counts: (generation: bigint) => Sql<{ readonly due: number; readonly dead: number }>
    /** Jobs of all live generations. */
    readonly backlog: Sql<{ readonly due: number; readonly dead: number }>
    /** Every generation there was, newest first; at most 1 000. */
    readonly history: Sql<ReadonlyArray<GenerationStatus>>
    /**
     * Makes it the active one and retires the one before; false, and nothing changes, when it is not being built any
     * more.
     */
    readonly activate: (generation: bigint) => Sql<boolean>
    readonly giveUp: (generation: bigint, detail: string) => Sql<void>
    /** Live generations of other meanings than this one are no longer wanted, except the active one. */
    readonly abandonOthers: (generation: bigint) => Sql<void>
    /** Ended generations whose vectors may be dropped now. */
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
        method, status, scanned, scan_complete as "scanComplete"`)
      const transactional = <A, E>(effect: Effect.Effect<A, E>) =>
        Effect.provideService(inTransaction(effect), SqlClient.SqlClient, sql)
      const now = Effect.map(Clock.currentTimeMillis, (millis) => new Date(millis))
      const keys = (jobs: ReadonlyArray<Job>) =>
        JSON.stringify(
          jobs.map(({ fence, generation, id }) => ({
            generation: String(generation),
            id: String(id),
            fence: String(fence)
          }))
        )
      const keysType = sql.literal("as k (generation bigint, id bigint, fence bigint)")

      const begin = Effect.fn("Generations.begin")(function* (meaning: Meaning, fingerprint: string, method: Method) {
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

      const lease = Effect.fn("Generations.lease")(function* (limit: number, leaseMillis: number) {
        const at = yield* now
        const take = (tried: boolean, count: number) =>
          sql<Job>`update search_semantic_jobs j set fence = j.fence + 1, leased_until =
            ${new Date(at.getTime() + leaseMillis)}
            from (select j.generation, j.id from search_semantic_jobs j join search_semantic_generations g
              on g.id = j.generation
              where j.state = 'due' and j.due_at <= ${at} and (j.leased_until is null or j.leased_until < ${at})
                and g.status in ('building', 'active')
                and ${tried ? sql`j.attempts > 0` : sql`j.attempts = 0`}
              order by (g.status = 'active') desc, j.generation, j.due_at, j.id limit ${count} for
                update of j skip locked) due
            where j.generation = due.generation and j.id = due.id
            returning j.generation, j.id, j.attempts, j.fence`
        const untried = yield* take(false, limit)
        return untried.length > 0 ? untried : yield* take(true, 1)
      })

      return Generations.of({
        begin,
        lease,
        active: Effect.map(
          sql<Generation>`select ${columns} from search_semantic_generations where status = 'active'`,
          ([row]) => Option.fromUndefinedOr(row)
        ),
        live: sql<Generation>`select ${columns} from search_semantic_generations where status in ('building', 'active')
          order by id`,
        enqueue: Effect.fn("Generations.enqueue")(function* (generation, ids) {
          if (ids.length === 0) return
          yield* sql`insert into search_semantic_jobs as old (generation, id, due_at)
            select ${generation}::int8, value::bigint, ${yield* now}
              from jsonb_array_elements_text(${JSON.stringify(ids.map(String))}::jsonb) order by value::bigint
            on conflict (generation, id) do update set state = 'due', attempts = 0, due_at = excluded.due_at, fence =
              old.fence + 1, leased_until = null, error = null`
        }),
        scannedTo: (generation, id, complete) =>
          Effect.asVoid(
            sql`update search_semantic_generations set scanned = ${id}::int8, scan_complete = ${complete}
              where id = ${generation}::int8`
          ),
        finish: (jobs) =>
          Effect.map(
            sql<{
              id: bigint
            }>`delete from search_semantic_jobs j using jsonb_to_recordset(${keys(jobs)}::jsonb) ${keysType}
              where j.generation = k.generation and j.id = k.id and j.fence = k.fence returning j.id`,
            (rows) => new Set(rows.map(({ id }) => id))
          ),
        fail: Effect.fn("Generations.fail")(function* (jobs, error, { attemptsMax, counts }) {
          const at = yield* now
          for (const job of jobs) {
            const attempts = job.attempts + 1
            yield* sql`update search_semantic_jobs set leased_until = null, error = ${error.slice(0, 200)}, attempts =
              ${counts ? attempts : job.attempts},
                due_at = ${new Date(at.getTime() + backoffMillis(attempts))}, state =
                  ${counts && attempts >= attemptsMax ? "dead" : "due"}
              where generation = ${job.generation}::int8 and id = ${job.id}::int8 and fence = ${job.fence}::int8`
          }
        }),
        counts: (generation) =>
          Effect.map(
            sql<{
              due: number
              dead: number
            }>`select (count(*) filter (where state = 'due'))::int as due, (count(*)
              filter (where state = 'dead'))::int as dead
              from search_semantic_jobs where generation = ${generation}::int8`,
            ([row]) => row ?? { due: 0, dead: 0 }
          ),
        backlog: Effect.map(
          sql<{
            due: number
            dead: number
          }>`select (count(*) filter (where state = 'due'))::int as due, (count(*)
            filter (where state = 'dead'))::int as dead
            from search_semantic_jobs where generation in (select id from search_semantic_generations
              where status in ('building', 'active'))`,
          ([row]) => row ?? { due: 0, dead: 0 }
        ),
        history: Effect.map(
          sql<
            Omit<GenerationStatus, "created_at" | "activated_at" | "retired_at"> & {
              readonly created_at: Date
              readonly activated_at: Date | null
              readonly retired_at: Date | null
            }
          >`
            select provider, model, revision, dimension, pooling, normalization, status, created_at, activated_at,
              retired_at
            from search_semantic_generations order by id desc limit 1000`,
          (rows) =>
            rows.map((row) => ({
              ...row,
              created_at: row.created_at.toISOString(),
              activated_at: row.activated_at?.toISOString() ?? null,
              retired_at: row.retired_at?.toISOString() ?? null
            }))
        ),
        activate: Effect.fn("Generations.activate")(function* (generation) {
          const at = yield* now
          return yield* transactional(
            Effect.gen(function* () {
              // Another replica may have activated it, or given it up for other settings: then the active one stays.
              const building = yield* sql`select 1 from search_semantic_generations where id = ${generation}::int8
                  and status = 'building' for update`
              if (building.length === 0) return false
              yield* sql`update search_semantic_generations set status = 'retired', retired_at = ${at}
                where status = 'active'`
              yield* sql`update search_semantic_generations set status = 'active', activated_at = ${at}
                where id = ${generation}::int8`
              return true
            })
          )
        }),
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
