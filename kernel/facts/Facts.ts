// The journal of facts: past tense, versioned, append-only, written inside the transaction that made them true, so that
// a fact exists exactly when its cause does. It has a separate order: a fact gets its position, the next one, only
// after its transaction has committed. So positions do not depend on a cluster's transaction ids and survive a dump
// that is restored elsewhere. A transaction that commits late is read late, never skipped. A consumer keeps a cursor,
// the last position it has read, and is called with batches in order, its cursor moving in the same transaction as its
// writes; it is called again after a crash and must be idempotent only for effects outside that transaction. A reader
// outside the database names a position together with its epoch (`FactsEpoch.ts`).
import { Context, Duration, Effect, Layer, Option, Queue, Schema, type Scope } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { reconciler, type Reconciler } from "../actor/Actor.ts"
import { contract } from "../contract/Contract.ts"
import { inTransaction } from "../database/Database.ts"
import { ReadTarget } from "../database/ReadReplica.ts"
import { type FactsNotifier, startFactsNotifier } from "./FactsNotifier.ts"
import {
  beginEpoch,
  decodeCursor,
  encodeCursor,
  isServedAnew,
  isWhole,
  type JournalCursor,
  type JournalEnd,
  newestEpoch,
  rememberEpochs
} from "./FactsEpoch.ts"
import { watchConsumers, watchEvery } from "./FactsWatch.ts"
import { Supervisor } from "../actor/Supervisor.ts"
import { withSpanIfSampled } from "../effect/withSpanIfSampled.ts"

export interface Fact {
  readonly id: bigint
  readonly at: Date
  /** `<owner>.<past tense>`, such as `settlement.settled`. */
  readonly type: string
  /** Version of the shape of `data`, from 1. */
  readonly version: number
  /** The id of the fact's subject: a settlement, a resource, a channel. */
  readonly subject: string
  readonly data: unknown
  /** Its place in the journal, from 1. */
  readonly position: bigint
  /** The owner of the settlement that the fact is about; null for anything else. */
  readonly principal: string | null
}

export interface NewFact {
  readonly type: string
  readonly version: number
  readonly subject: string
  /** The principal of the settlement that the fact is about; that principal may follow it. */
  readonly principal?: string
  /** JSON; amounts as decimal strings. */
  readonly data: Readonly<Record<string, unknown>>
}

/** A fact was published outside a transaction: it could exist without its cause. That is a bug. */
class FactOutsideTransaction extends Schema.TaggedError<FactOutsideTransaction>()("FactOutsideTransaction", {
  type: Schema.String
}) {}

interface ConsumerSpec<E, R> {
  /** Names the cursor; unique. */
  readonly consumer: string
  /** Maximum facts of one batch. Default 200. */
  readonly batchMax?: number
  /** How long publications are collected into one turn; absent: the first one is read immediately. */
  readonly gather?: Duration.Input
  /** The start position of a consumer without a cursor: the beginning (the default) or the end. */
  readonly from?: "beginning" | "end"
  /** Slow work on the next facts, before their transaction holds an embedded database; it may see facts again. */
  readonly prepare?: (facts: ReadonlyArray<Fact>) => Effect.Effect<void, E, R>
  /** Runs inside the transaction that moves the cursor. A failure rolls both back; the next turn tries again. */
  readonly handle: (facts: ReadonlyArray<Fact>) => Effect.Effect<void, E, R>
}

/** Poll interval of a consumer after a failure, and while notifications of other replicas do not arrive. */
const pollEvery = Duration.seconds(5)
/** Poll interval if every published fact wakes it. */
const pollEveryReceived = Duration.seconds(30)
/** Poll interval if no other process can publish, so that no fact can be missed. */
const pollEveryAlone = Duration.minutes(2)

/** Maximum number of subjects that `publishedSince` returns. */
const subjectsMax = 1_000

/** Maximum facts that get their positions in one transaction. */
const placedMax = 5_000

const nothingSeen: JournalCursor = { position: 0n, epoch: 0n }

/**
 * Gives every committed fact its position: the next ones, above every fact's and every cursor's, restored ones
 * included. The lock makes positions visible in their order, and the statement after it sees the facts placed before.
 * So no reader passes a position that appears later. Facts of one subject keep their order, since a later one has the
 * higher id.
 */
const placeFacts = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, seen: JournalCursor = nothingSeen) {
  let isFirst = true
  while (true) {
    const [due] = yield* sql<{ unplaced: boolean; anew: boolean; whole: boolean; epoch: bigint }>`select
      exists (select 1 from kernel_facts where position is null) as unplaced,
      ${sql.literal(isServedAnew)} as anew, ${sql.literal(isWhole)} as whole, ${sql.literal(newestEpoch)} as epoch`
    if (!due!.whole) return
    if (!due!.anew) yield* rememberEpochs(sql, due!.epoch)
    const isBehind = isFirst && seen.position > 0n
    if (!due!.unplaced && !due!.anew && !isBehind) return
    isFirst = false
    const placed = yield* inTransaction(
      Effect.all([
        sql`select pg_advisory_xact_lock(724402404)`,
        // Before it assigns any position: the following positions belong to the new epoch.
        beginEpoch(sql, seen),
        sql<{ count: number }>`with placed as (
            update kernel_facts f set position = n.position
            from (
              select w.id, t.top + row_number() over (order by w.id) as position
              from (select id from kernel_facts where position is null order by id limit ${placedMax}) w,
                (select greatest(coalesce((select max(position) from kernel_facts), 0),
                  coalesce((select max(position) from kernel_fact_cursors), 0)) as top) t
            ) n
            where f.id = n.id and f.position is null returning 1)
          select count(*)::int as count from placed`
      ])
    ).pipe(Effect.provideService(SqlClient.SqlClient, sql))
    if (placed[2][0]!.count < placedMax) return
  }
}, withSpanIfSampled("Facts.place"))

const factColumns = "id, at, type, version, subject, data, position, principal"

/** The next batch, at most up to a position. */
const readBatch = (sql: SqlClient.SqlClient, consumer: string, batchMax: number, until: bigint | null) =>
  Effect.gen(function* () {
    const [cursor] = yield* sql<{ position: bigint }>`
      select position from kernel_fact_cursors where consumer = ${consumer} for update`
    return yield* sql<Fact>`select ${sql.literal(factColumns)} from kernel_facts
      where position > ${cursor!.position} and position <= coalesce(${until}::bigint, position)
      order by position limit ${batchMax}`
  })

/** One turn of a consumer: everything committed, in batches, each with its cursor in one transaction. */
const consumerTurn = <E, R>(
  sql: SqlClient.SqlClient,
  { batchMax = 200, consumer, from, handle, prepare }: ConsumerSpec<E, R>
) => {
  const begin = sql`insert into kernel_fact_cursors (consumer, position)
    values (${consumer}, case when ${from ?? "beginning"} = 'beginning' then 0
      else (select coalesce(max(position), 0) from kernel_facts) end) on conflict do nothing`
  const stepTo = Effect.fnUntraced(function* (until: bigint | null) {
    const facts = yield* readBatch(sql, consumer, batchMax, until)
    const last = facts.at(-1)
    if (last === undefined) return 0
    yield* handle(facts)
    yield* sql`update kernel_fact_cursors set position = ${last.position}, updated_at = clock_timestamp()
      where consumer = ${consumer}`
    return facts.length
  })
  const step = Effect.gen(function* () {
    if (prepare === undefined) return yield* inTransaction(stepTo(null))
    const next = yield* readBatch(sql, consumer, batchMax, null)
    if (next.length === 0) return 0
    yield* prepare(next)
    yield* inTransaction(stepTo(next.at(-1)!.position))
    return next.length
  }).pipe(Effect.provideService(SqlClient.SqlClient, sql))
  const poll = sql<{ unplaced: boolean; begun: boolean; behind: boolean }>`select
    exists (select 1 from kernel_facts where position is null) or ${sql.literal(isServedAnew)} as unplaced,
    c.position is not null as begun,
    coalesce((select max(position) from kernel_facts), 0) > coalesce(c.position, 0) as behind
    from (select 1) as one left join kernel_fact_cursors as c on c.consumer = ${consumer}`
  return Effect.gen(function* () {
    // Most turns find nothing, and cost one statement.
    const [at] = yield* poll
    if (at!.unplaced) yield* placeFacts(sql)
    if (!at!.begun) yield* begin
    if (at!.begun && !at!.unplaced && !at!.behind) return
    while ((yield* step) === batchMax) yield* Effect.yieldNow
  })
}

/** The journal's current end. The last position that this process read shows whether the journal went back. */
const makeEnd = (sql: SqlClient.SqlClient): Effect.Effect<JournalEnd, SqlError.SqlError> => {
  let seen = nothingSeen
  const read = Effect.map(
    sql<JournalEnd>`select coalesce(max(position), 0) as "end",
      case when ${sql.literal(isWhole)} then ${sql.literal(newestEpoch)} else 0 end as epoch from kernel_facts`,
    ([row]) => row!
  )
  const isBack = ({ end, epoch }: JournalEnd) => epoch === seen.epoch && end < seen.position
  return Effect.gen(function* () {
    yield* placeFacts(sql)
    let now = yield* read
    if (isBack(now)) {
      yield* placeFacts(sql, seen)
      now = yield* read
    }
    if (now.epoch > seen.epoch || (now.epoch === seen.epoch && now.end > seen.position))
      seen = { epoch: now.epoch, position: now.end }
    return now
  })
}

/** A replica assigns no positions: facts have them when they are replicated from the primary. */
const placeHere = (sql: SqlClient.SqlClient) =>
  Effect.flatMap(ReadTarget, (replica) => (replica === undefined ? placeFacts(sql) : Effect.void))

/**
 * The mark is a cursor. A mark of another epoch, or beyond the journal's end, is useless: it cannot show the facts
 * published since.
 */
const publishedSince = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, type: string, mark: string | undefined) {
  yield* placeHere(sql)
  const since = Option.getOrUndefined(decodeCursor(mark ?? ""))
  const [row] = yield* sql<JournalEnd & { count: number; subjects: ReadonlyArray<string> }>`select
    (select coalesce(max(position), 0) from kernel_facts) as "end", ${sql.literal(newestEpoch)} as epoch,
    count(*)::int as count, coalesce(jsonb_agg(distinct subject), '[]') as subjects from (
      select subject from kernel_facts where position > ${since?.position ?? null}::bigint and type = ${type}
        limit ${subjectsMax + 1}) published`
  const { count, end, epoch, subjects } = row!
  const isKnown = since !== undefined && since.epoch === epoch && end >= since.position && count <= subjectsMax
  return {
    published: count > 0 || !isKnown,
    mark: encodeCursor({ epoch, position: end }),
    subjects: isKnown ? subjects : undefined
  }
}, withSpanIfSampled("Facts.publishedSince"))

/** The row of a fact, for a statement that writes it together with its cause: see `publishedBy`. */
export const factRow = ({ data, principal, subject, type, version }: NewFact) => ({
  type,
  version,
  subject,
  principal: principal ?? null,
  data: JSON.stringify(data)
})

/** Keeps something in a set or map while the Scope lives. */
const whileScoped = (add: () => void, remove: () => void): Effect.Effect<void, never, Scope.Scope> =>
  Effect.acquireRelease(Effect.sync(add), () => Effect.sync(remove))

/** A consumer's turn, and its poll interval. */
const paced = <E, R>(
  turn: Effect.Effect<void, E, R>,
  { isOnlyProcess: isAlone, isListening: isReceived }: Pick<FactsNotifier, "isOnlyProcess" | "isListening">
) => {
  let hasSucceeded = false
  const pollEveryWoken = isAlone ? pollEveryAlone : pollEveryReceived
  return {
    every: Effect.sync(() => (hasSucceeded && isReceived() ? pollEveryWoken : pollEvery)),
    turn: Effect.suspend(() => {
      hasSucceeded = false
      return Effect.map(turn, () => void (hasSucceeded = true))
    })
  }
}

/** The subscribers to facts of this process and of others, and the notifier of the others. */
const makeWakes = Effect.gen(function* () {
  const supervisor = yield* Supervisor
  const [own, others, readers] = [1, 2, 3].map(() => new Set<Effect.Effect<void>>()) as [Wakes, Wakes, Wakes]
  const run = (these: Wakes) => Effect.suspend(() => Effect.forEach(these, (wake) => wake, { discard: true }))
  const reported = yield* Queue.sliding<void>(1)
  const bell = yield* startFactsNotifier(Effect.andThen(Queue.offer(reported, undefined), run(others)))
  const keep = (these: Wakes, wake: Effect.Effect<void>) =>
    whileScoped(
      () => these.add(wake),
      () => these.delete(wake)
    )
  const relieve = Effect.forever(
    Queue.take(reported).pipe(Effect.andThen(Effect.sleep(pollEvery)), Effect.andThen(run(readers)))
  )
  yield* supervisor.start({ id: "facts-relief", restart: "permanent", run: relieve })
  return {
    bell,
    wakeAll: Effect.andThen(run(own), bell.notify),
    onPublished: (wake: Effect.Effect<void>) => Effect.andThen(keep(own, wake), keep(others, wake)),
    /** All replicas share a cursor, and the publishing one moves it; if it cannot, another does soon. */
    whenPublished: (wake: Effect.Effect<void>) => Effect.andThen(keep(own, wake), keep(readers, wake))
  }
})

type Wakes = Set<Effect.Effect<void>>

/** False for a command that runs without a facilitator: it places nothing and begins no epoch, the next start does. */
export const ServesFacts = Context.Reference<boolean>("tollkeeper/facts/ServesFacts", { defaultValue: () => true })

export class Facts extends Context.Service<
  Facts,
  {
    /** Appends a fact in the caller's transaction. Outside of one it is a defect. */
    readonly publish: (fact: NewFact) => Effect.Effect<void, SqlError.SqlError>
    /** A statement that writes facts together with their cause; consumers are woken when it has been committed. */
    readonly publishedBy: <A, E, R>(statement: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
    /** Starts a consumer as a supervised reconciler; it is woken by facts published in this process. */
    readonly consume: <E, R>(spec: ConsumerSpec<E, R>) => Effect.Effect<Reconciler, never, R | Scope.Scope>
    /**
     * Runs after each commit in this process that published something, and on a notification of another replica, while
     * the Scope lives; it must not wait.
     */
    readonly onPublished: (wake: Effect.Effect<void>) => Effect.Effect<void, never, Scope.Scope>
    /** The journal's end, after every fact committed so far; begins a new epoch if the journal went back. */
    readonly end: Effect.Effect<JournalEnd, SqlError.SqlError>
    /**
     * In the caller's transaction: the consumer reads the journal again from its beginning. Waits for a batch that is
     * being read.
     */
    readonly rewind: (consumer: string) => Effect.Effect<void, SqlError.SqlError>
    /**
     * Whether a fact of a type became visible after `mark`, by any replica, and the mark for the next time; without a
     * mark it did. For caches: a value read after one mark is valid as long as nothing is published by the next. It may
     * report a publication that did not happen, but never misses one. `subjects`: the subjects of those facts;
     * undefined if any subject is possible, without a mark or after very many facts.
     */
    readonly publishedSince: (
      type: string,
      mark: string | undefined
    ) => Effect.Effect<
      { readonly published: boolean; readonly mark: string; readonly subjects: ReadonlyArray<string> | undefined },
      SqlError.SqlError
    >
  }
>()("tollkeeper/kernel/Facts") {
  static readonly layer = Layer.effect(
    Facts,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const supervisor = yield* Supervisor
      const consumers = new Set<string>()
      const { bell, onPublished, wakeAll, whenPublished } = yield* makeWakes
      // Begins an epoch if another server process, database or timeline now serves, before anything is leased or read.
      if (yield* ServesFacts)
        yield* Effect.catch(placeFacts(sql), (error) => Effect.logWarning("the journal could not be read yet", error))

      const publish = Effect.fnUntraced(function* (fact: NewFact) {
        const transaction = yield* Effect.serviceOption(sql.transactionService)
        if (transaction._tag === "None") return yield* Effect.die(new FactOutsideTransaction({ type: fact.type }))
        yield* sql`insert into kernel_facts ${sql.insert(factRow(fact))}`
        yield* sql.afterCommit(wakeAll)
      }, withSpanIfSampled("Facts.publish"))

      const committed = Effect.flatMap(Effect.serviceOption(sql.transactionService), (transaction) =>
        transaction._tag === "None" ? wakeAll : sql.afterCommit(wakeAll)
      )

      const consume = Effect.fnUntraced(function* <E, R>(spec: ConsumerSpec<E, R>) {
        const { consumer, gather } = spec
        const started = yield* reconciler({
          id: `facts-${consumer}`,
          ...paced(consumerTurn(sql, spec), bell),
          ...(gather === undefined ? {} : { gather })
        }).pipe(Effect.provideService(Supervisor, supervisor))
        yield* whenPublished(started.wake)
        yield* whileScoped(
          () => consumers.add(consumer),
          () => consumers.delete(consumer)
        )
        return started
      })

      const rewind = Effect.fnUntraced(function* (consumer: string) {
        yield* sql`update kernel_fact_cursors set position = 0, updated_at = clock_timestamp()
          where consumer = ${consumer}`
        yield* sql.afterCommit(wakeAll)
      }, withSpanIfSampled("Facts.rewind"))

      const watch = watchConsumers(sql)
      yield* reconciler({
        id: "facts-watch",
        every: watchEvery,
        turn: Effect.suspend(() =>
          consumers.size === 0 ? Effect.void : Effect.andThen(placeFacts(sql), watch([...consumers]))
        )
      }).pipe(Effect.provideService(Supervisor, supervisor))

      return Facts.of({
        publish,
        publishedBy: (statement) => Effect.tap(statement, () => committed),
        consume,
        onPublished,
        rewind,
        end: makeEnd(sql),
        publishedSince: (type, mark) => publishedSince(sql, type, mark)
      })
    })
  )
}

/** The facts on the database; a plugin that publishes or consumes needs this contract. */
export const factsContract = contract("kernel", Facts)
