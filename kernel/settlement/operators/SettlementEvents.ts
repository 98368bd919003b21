// The event stream of settlements: facts of the journal with the settlement's current state, in the journal's order, of
// one principal. A cursor resumes it anywhere, also after the journal lost its last facts: delivery is at least once. A
// stream is woken immediately by facts of this process, and within a second by those of other replicas; all streams
// share one poll of the journal.
import { Context, Duration, Effect, Layer, Queue, type Scope } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { reconciler } from "../../actor/Actor.ts"
import { Facts } from "../../facts/Facts.ts"
import { commonPosition, type JournalCursor, type JournalEnd, newestEpoch } from "../../facts/FactsEpoch.ts"
import { Supervisor } from "../../actor/Supervisor.ts"
import type { Row } from "../../database/table.ts"
import { recordColumns } from "../store/recordColumns.ts"
import type { SettlementRecord } from "../store/Settlements.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"

/** Maximum delay before we notice another replica's facts. */
const pollEvery = Duration.seconds(1)
/** The first waiter wakes the poll. */
const idleInterval = Duration.minutes(1)
/** Batch size when reading back in time: the cost depends on the window's facts, not on the journal's. */
const pollBackMax = 1_000

export interface EventPage {
  readonly events: ReadonlyArray<SettlementEvent>
  readonly next: JournalCursor
  /**
   * There is nothing after this page yet. A page may have fewer events than facts: old settlements are deleted first.
   */
  readonly isEnd: boolean
  /**
   * The journal went back since the cursor was issued: this page begins here, at the last position that its epoch and
   * the journal have in common.
   */
  readonly rewoundTo: JournalCursor | undefined
}

export interface SettlementEvent extends JournalCursor {
  /** `settlement.recorded`, `settlement.settled`, and so on. */
  readonly type: string
  readonly at: Date
  /** Its state at the read; never older than the event. */
  readonly settlement: SettlementRecord
}

interface EventRow extends Row {
  readonly epoch: bigint
  readonly resumes_at: bigint
  /** Null without a fact, like the following fields. */
  readonly position: bigint | null
  readonly type: string
  readonly told_at: Date
  /** Null if the fact's settlement was deleted by age. */
  readonly id: string | null
}

/** A stretch of the journal, read backwards. */
interface PollBack {
  readonly seen: number
  readonly lowest: bigint | null
  /** Number of facts that are not too old. */
  readonly recent: number
  readonly first: bigint | null
}

export interface Whose {
  /** Absent: of all principals, for an operator. */
  readonly principal?: string
}

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

/** The condition that selects their facts. */
const factsOf =
  (sql: SqlClient.SqlClient) =>
  ({ principal }: Whose) =>
    principal === undefined ? sql`principal is not null` : sql`principal = ${principal}`

const wake = (attending: ReadonlyMap<Queue.Queue<void>, string | undefined>, principals: ReadonlySet<string> | "all") =>
  Effect.forEach(
    [...attending].filter(
      ([, principal]) => principal === undefined || principals === "all" || principals.has(principal)
    ),
    ([queue]) => Queue.offer(queue, undefined),
    { discard: true }
  )

const pageOf = (rows: ReadonlyArray<EventRow>, cursor: JournalCursor, limit: number): EventPage => {
  const { epoch, resumes_at: resumesAt } = rows[0]!
  // Without an epoch the journal is being restored: keep the cursor until its facts are readable.
  if (epoch === 0n) return { events: [], next: cursor, isEnd: true, rewoundTo: undefined }
  const facts = rows.filter(({ position }) => position !== null)
  const events = facts.flatMap(({ id, position, told_at: at, type, ...row }) =>
    id === null ? [] : [{ position: position!, epoch, type, at, settlement: recordColumns.decode({ ...row, id }) }]
  )
  return {
    events,
    next: { epoch, position: facts.at(-1)?.position ?? resumesAt },
    isEnd: facts.length < limit,
    rewoundTo: resumesAt < cursor.position ? { epoch, position: resumesAt } : undefined
  }
}

export class SettlementEvents extends Context.Service<
  SettlementEvents,
  {
    /** Events after a cursor, in order, of at most `limit` facts. */
    readonly after: (whose: Whose, cursor: JournalCursor, limit: number) => Sql<EventPage>
    /** The cursor before the first event at or after `at`; the journal's end without one. */
    readonly before: (whose: Whose, at: Date) => Sql<JournalCursor>
    readonly end: Sql<JournalEnd>
    /**
     * Registers a waiter. The returned effect ends as soon as a fact of one of its principals has been published since.
     */
    readonly attend: (whose: Whose) => Effect.Effect<Effect.Effect<void>, never, Scope.Scope>
  }
>()("tollkeeper/settlement/SettlementEvents") {
  static readonly layer = Layer.effect(
    SettlementEvents,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const facts = yield* Facts
      const attending = new Map<Queue.Queue<void>, string | undefined>()
      const columns = sql.literal(recordColumns.selected)
      const own = factsOf(sql)

      const after = Effect.fnUntraced(function* (whose: Whose, cursor: JournalCursor, limit: number) {
        const rows = yield* sql<EventRow>`select j.epoch, j.resumes_at, f.position, f.type, f.told_at, ${columns}
          from (select ${sql.literal(newestEpoch)} as epoch, ${commonPosition(sql, cursor)} as resumes_at) j
          left join lateral (select position, type, at as told_at, subject from kernel_facts
            where ${own(whose)} and position > j.resumes_at order by position limit ${limit}) f on true
          left join kernel_settlements on id = f.subject::uuid order by f.position`
        return pageOf(rows, cursor, limit)
      }, withSpanIfSampled("SettlementEvents.after"))

      const before = Effect.fnUntraced(function* (whose: Whose, at: Date) {
        const { end, epoch } = yield* facts.end
        let found = end
        let below = found + 1n
        while (true) {
          const [row] = yield* sql<PollBack>`select count(*)::int as seen, min(position) as lowest,
              count(*) filter (where at >= ${at})::int as recent, min(position) filter (where at >= ${at}) as first
            from (select position, at from kernel_facts where ${own(whose)} and position < ${below}
              order by position desc limit ${pollBackMax}) p`
          const { first, lowest, recent, seen } = row!
          if (first !== null) found = first - 1n
          if (seen < pollBackMax || recent < seen) return { epoch, position: found } satisfies JournalCursor
          below = lowest!
        }
      }, withSpanIfSampled("SettlementEvents.before"))

      /** Position of the last poll; undefined without a waiter. */
      let seen: JournalEnd | undefined
      const poll = Effect.gen(function* () {
        if (attending.size === 0) return void (seen = undefined)
        const [from, now] = [seen, yield* facts.end]
        seen = now
        // In another epoch every stream reads again, because the facts that it read may have been removed.
        if (from === undefined || from.epoch !== now.epoch || from.end > now.end) return yield* wake(attending, "all")
        if (from.end === now.end) return
        const reported = yield* sql<{ principal: string }>`select distinct principal from kernel_facts
          where position > ${from.end} and position <= ${now.end} and principal is not null`
        yield* wake(attending, new Set(reported.map(({ principal }) => principal)))
      })
      const polling = yield* reconciler({
        id: "settlement-events",
        every: Effect.sync(() => (attending.size === 0 ? idleInterval : pollEvery)),
        turn: poll
      }).pipe(Effect.provideService(Supervisor, yield* Supervisor))
      yield* facts.onPublished(Effect.suspend(() => (attending.size === 0 ? Effect.void : polling.wake)))

      const attend = Effect.fnUntraced(function* ({ principal }: Whose) {
        const queue = yield* Effect.acquireRelease(
          Effect.tap(Queue.sliding<void>(1), (queue) => Effect.sync(() => attending.set(queue, principal))),
          (queue) => Effect.sync(() => attending.delete(queue))
        )
        if (attending.size === 1) yield* polling.wake
        return Effect.asVoid(Queue.take(queue))
      })

      return SettlementEvents.of({ after, before, end: facts.end, attend })
    })
  )
}
