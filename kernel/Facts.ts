// The journal of facts: past tense, versioned, append-only, written inside the transaction that made them true, so that
// a fact exists exactly when its cause does. A consumer keeps a cursor in the database and is called with batches in
// order, its cursor moving in the same transaction as whatever it writes; it is called again after a crash and must be
// idempotent only for effects outside that transaction. The cursor cannot overtake an open transaction: order is
// (transaction id, row id), and rows of transactions that might still be open are not read yet.
import { Context, Effect, Layer, Schema, type Scope } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { contract } from "./Contract.ts"
import { inTransaction } from "./database/Database.ts"
import { reconciler, type Reconciler } from "./Actor.ts"
import { Supervisor } from "./Supervisor.ts"

export interface Fact {
  readonly id: bigint
  readonly at: Date
  /** `<owner>.<past tense>`, such as `settlement.settled`. */
  readonly type: string
  /** Of the shape of `data`, from 1. */
  readonly version: number
  /** What it is about: the id of a settlement, a resource, a channel. */
  readonly subject: string
  readonly data: unknown
}

export interface NewFact {
  readonly type: string
  readonly version: number
  readonly subject: string
  /** JSON; amounts as decimal strings. */
  readonly data: Readonly<Record<string, unknown>>
}

/** A fact was published outside a transaction: it could exist without its cause. A bug of ours. */
export class FactOutsideTransaction extends Schema.TaggedError<FactOutsideTransaction>()("FactOutsideTransaction", {
  type: Schema.String
}) {}

export interface ConsumerSpec<E, R> {
  /** Names the cursor; unique. */
  readonly consumer: string
  /** Facts at most in one batch. Default 200. */
  readonly batchMax?: number
  /** Runs inside the transaction that moves the cursor. A failure rolls both back; the next turn tries again. */
  readonly handle: (facts: ReadonlyArray<Fact>) => Effect.Effect<void, E, R>
}

const readBatch = (sql: SqlClient.SqlClient, consumer: string, batchMax: number) =>
  Effect.gen(function* () {
    yield* sql`insert into kernel_fact_cursors (consumer) values (${consumer}) on conflict do nothing`
    const [cursor] = yield* sql<{ xid: string; id: bigint }>`
      select xid::text as xid, id from kernel_fact_cursors where consumer = ${consumer} for update`
    return yield* sql<Fact & { readonly xid: string }>`
      select id, xid::text as xid, at, type, version, subject, data from kernel_facts
      where (xid, id) > (${cursor!.xid}::xid8, ${cursor!.id}) and xid < pg_snapshot_xmin(pg_current_snapshot())
      order by kernel_facts.xid, kernel_facts.id limit ${batchMax}`
  })

export class Facts extends Context.Service<
  Facts,
  {
    /** Appends a fact in the caller's transaction. Outside of one it is a defect. */
    readonly publish: (fact: NewFact) => Effect.Effect<void, SqlError.SqlError>
    /** Starts a consumer as a supervised reconciler; it is woken by facts published in this process. */
    readonly consume: <E, R>(spec: ConsumerSpec<E, R>) => Effect.Effect<Reconciler, never, R | Scope.Scope>
    /**
     * In the caller's transaction: the consumer reads the journal again from its beginning. Waits for a batch that is
     * being read.
     */
    readonly rewind: (consumer: string) => Effect.Effect<void, SqlError.SqlError>
    /**
     * Whether a fact of a type became visible after `mark`, by any replica, and the mark for the next time; without a
     * mark it did. For caches: what was read after one mark holds as long as nothing is published by the next. It may
     * say so once too often, never too seldom.
     */
    readonly publishedSince: (
      type: string,
      mark: string | undefined
    ) => Effect.Effect<{ readonly published: boolean; readonly mark: string }, SqlError.SqlError>
  }
>()("tollkeeper/kernel/Facts") {
  static readonly layer = Layer.effect(
    Facts,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const supervisor = yield* Supervisor
      const consumers = new Set<Reconciler>()

      const wakeAll = Effect.suspend(() => Effect.forEach(consumers, (consumer) => consumer.wake, { discard: true }))

      const publish = Effect.fn("Facts.publish")(function* (fact: NewFact) {
        const transaction = yield* Effect.serviceOption(sql.transactionService)
        if (transaction._tag === "None") return yield* Effect.die(new FactOutsideTransaction({ type: fact.type }))
        yield* sql`insert into kernel_facts ${sql.insert({
          type: fact.type,
          version: fact.version,
          subject: fact.subject,
          data: JSON.stringify(fact.data)
        })}`
        yield* sql.afterCommit(wakeAll)
      })

      const consume = Effect.fnUntraced(function* <E, R>(spec: ConsumerSpec<E, R>) {
        const batchMax = spec.batchMax ?? 200
        const step = inTransaction(
          Effect.gen(function* () {
            const facts = yield* readBatch(sql, spec.consumer, batchMax)
            const last = facts.at(-1)
            if (last === undefined) return 0
            yield* spec.handle(facts)
            yield* sql`update kernel_fact_cursors set xid = ${last.xid}::xid8, id = ${last.id}, updated_at = clock_timestamp()
            where consumer = ${spec.consumer}`
            return facts.length
          })
        ).pipe(Effect.provideService(SqlClient.SqlClient, sql))
        const turn = Effect.gen(function* () {
          while ((yield* step) === batchMax) yield* Effect.yieldNow
        })
        const started = yield* reconciler({ id: `facts-${spec.consumer}`, every: "5 seconds", turn }).pipe(
          Effect.provideService(Supervisor, supervisor)
        )
        yield* Effect.acquireRelease(
          Effect.sync(() => consumers.add(started)),
          () => Effect.sync(() => consumers.delete(started))
        )
        return started
      })

      /**
       * A transaction below the mark had ended when the mark was taken; what any other publishes may have been
       * invisible then.
       */
      const publishedSince = Effect.fn("Facts.publishedSince")(function* (type: string, mark: string | undefined) {
        const [row] = yield* sql<{
          published: boolean
          mark: string
        }>`select pg_snapshot_xmin(pg_current_snapshot())::text as mark,
          exists (select 1 from kernel_facts where xid >= coalesce(${mark ?? null}::xid8, pg_snapshot_xmin(pg_current_snapshot())) and type = ${type}) as published`
        return { published: mark === undefined || row!.published, mark: row!.mark }
      })

      const rewind = Effect.fn("Facts.rewind")(function* (consumer: string) {
        yield* sql`update kernel_fact_cursors set xid = '0', id = 0, updated_at = clock_timestamp() where consumer = ${consumer}`
        yield* sql.afterCommit(wakeAll)
      })

      return Facts.of({ publish, consume, rewind, publishedSince })
    })
  )
}

/** Facts stand on the database; whoever publishes or consumes needs this contract. */
export const factsContract = contract("kernel", Facts)
