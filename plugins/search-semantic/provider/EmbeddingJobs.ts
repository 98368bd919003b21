// The queue of pending embeddings: resources of generations that are being built or active. Jobs are leased with a
// fence, so that a late holder cannot finish any. A resource that changes during its lease is due again. Jobs that
// failed too often are suspended and do not delay others.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { trustedMillis } from "../../../kernel/time/trustedTime.ts"

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

export interface Job {
  readonly generation: bigint
  /** The catalog's resource id. */
  readonly id: bigint
  readonly attempts: number
  readonly fence: bigint
}

const backoffMillis = (attempts: number): number => Math.min(600_000, 500 * 2 ** attempts)
const now = Effect.map(trustedMillis, (millis) => new Date(millis))

/** Leases jobs of one kind: either retries or first attempts. */
const take = Effect.fnUntraced(function* (tried: boolean, count: number, leaseMillis: number) {
  const sql = yield* SqlClient.SqlClient
  const at = yield* now
  return yield* sql<Job>`update search_semantic_jobs j set fence = j.fence + 1,
      leased_until = ${new Date(at.getTime() + leaseMillis)}
    from (select j.generation, j.id from search_semantic_jobs j join search_semantic_generations g
      on g.id = j.generation
      where j.state = 'due' and j.due_at <= ${at} and (j.leased_until is null or j.leased_until < ${at})
        and g.status in ('building', 'active')
        and ${tried ? sql`j.attempts > 0` : sql`j.attempts = 0`}
      order by (g.status = 'active') desc, j.generation, j.due_at, j.id limit ${count} for
        update of j skip locked) due
    where j.generation = due.generation and j.id = due.id
    returning j.generation, j.id, j.attempts, j.fence`
})

const keys = (jobs: ReadonlyArray<Job>): string =>
  JSON.stringify(
    jobs.map(({ fence, generation, id }) => ({ generation: String(generation), id: String(id), fence: String(fence) }))
  )

export class EmbeddingJobs extends Context.Service<
  EmbeddingJobs,
  {
    /** Queues resources for a generation; a resource that is already queued is due again immediately. */
    readonly enqueue: (generation: bigint, ids: ReadonlyArray<bigint>) => Sql<void>
    /** Leases jobs: untried ones together, a tried one by itself. The active generation's come first. */
    readonly lease: (limit: number, leaseMillis: number) => Sql<ReadonlyArray<Job>>
    /**
     * Deletes finished jobs, if this holder's fence is still valid, and returns their ids. In the transaction that
     * stores their vectors.
     */
    readonly finish: (jobs: ReadonlyArray<Job>) => Sql<ReadonlySet<bigint>>
    /** Returns jobs after a failure: due later, or suspended if the resources caused it and have failed too often. */
    readonly fail: (
      jobs: ReadonlyArray<Job>,
      error: string,
      options: { readonly counts: boolean; readonly attemptsMax: number }
    ) => Sql<void>
    readonly counts: (generation: bigint) => Sql<{ readonly due: number; readonly dead: number }>
    /** Jobs of all live generations. */
    readonly backlog: Sql<{ readonly due: number; readonly dead: number }>
  }
>()("tollkeeper/search-semantic/EmbeddingJobs") {
  static readonly layer = Layer.effect(
    EmbeddingJobs,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const lease = Effect.fn("EmbeddingJobs.lease")(
        function* (limit: number, leaseMillis: number) {
          const untried = yield* take(false, limit, leaseMillis)
          return untried.length > 0 ? untried : yield* take(true, 1, leaseMillis)
        },
        Effect.provideService(SqlClient.SqlClient, sql)
      )

      const counted = (where: Statement.Fragment) =>
        Effect.map(
          sql<{ due: number; dead: number }>`select (count(*) filter (where state = 'due'))::int as due,
            (count(*) filter (where state = 'dead'))::int as dead
            from search_semantic_jobs where ${where}`,
          ([row]) => row ?? { due: 0, dead: 0 }
        )

      return EmbeddingJobs.of({
        lease,
        enqueue: Effect.fn("EmbeddingJobs.enqueue")(function* (generation, ids) {
          if (ids.length === 0) return
          yield* sql`insert into search_semantic_jobs as old (generation, id, due_at)
            select ${generation}::int8, value::bigint, ${yield* now}
              from jsonb_array_elements_text(${JSON.stringify(ids.map(String))}::jsonb) order by value::bigint
            on conflict (generation, id) do update set state = 'due', attempts = 0, due_at = excluded.due_at, fence =
              old.fence + 1, leased_until = null, error = null`
        }),
        finish: (jobs) =>
          Effect.map(
            sql<{
              id: bigint
            }>`delete from search_semantic_jobs j using jsonb_to_recordset(${keys(jobs)}::jsonb)
                as k (generation bigint, id bigint, fence bigint)
              where j.generation = k.generation and j.id = k.id and j.fence = k.fence returning j.id`,
            (rows) => new Set(rows.map(({ id }) => id))
          ),
        fail: Effect.fn("EmbeddingJobs.fail")(function* (jobs, error, { attemptsMax, counts }) {
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
        counts: (generation) => counted(sql`generation = ${generation}::int8`),
        backlog: counted(sql`generation in (select id from search_semantic_generations
          where status in ('building', 'active'))`)
      })
    })
  )
}
