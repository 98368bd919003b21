// What happened to settlements, for those who follow them: facts of the journal with the settlement's state as it is
// now, in the journal's order, of one principal. A position resumes it anywhere; an event may be told twice, and none
// is skipped. Who waits is woken by what this process publishes at once, and by other replicas' within a second; all
// who wait share one look at the journal.
import { Context, Duration, Effect, Layer, Queue, type Scope } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { reconciler } from "../Actor.ts"
import { Facts } from "../Facts.ts"
import { Supervisor } from "../Supervisor.ts"
import { recordColumns, type SettlementRow, toRecord } from "./SettlementRows.ts"
import type { SettlementRecord } from "./Settlements.ts"
import { spanned } from "../spanned.ts"

/** The longest another replica's facts wait to be noticed. */
const lookEvery = Duration.seconds(1)
/** Whoever begins to wait wakes it. */
const whileNobodyWaits = Duration.minutes(1)
/** Events looked at at once on the way back in time: a window costs what it holds, not what the journal holds. */
const lookBackMax = 1_000

export interface SettlementEvent {
  readonly position: bigint
  /** `settlement.recorded`, `settlement.settled`, and so on. */
  readonly type: string
  readonly at: Date
  /** As it is when it is read; never older than the event. */
  readonly settlement: SettlementRecord
}

interface EventRow extends SettlementRow {
  readonly position: bigint
  readonly type: string
  readonly told_at: Date
}

/** A stretch of the journal, read backwards. */
interface LookBack {
  readonly seen: number
  readonly lowest: bigint | null
  /** Of those that are not too old. */
  readonly recent: number
  readonly first: bigint | null
}

export interface Whose {
  /** Absent: everybody's, for an operator. */
  readonly principal?: string
}

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

/** The condition on facts that are theirs. */
const factsOf =
  (sql: SqlClient.SqlClient) =>
  ({ principal }: Whose) =>
    principal === undefined ? sql`principal is not null` : sql`principal = ${principal}`

/** Wakes those who wait for something of these principals. */
const wake = (attending: ReadonlyMap<Queue.Queue<void>, string | undefined>, principals: ReadonlySet<string> | "all") =>
  Effect.forEach(
    [...attending].filter(
      ([, principal]) => principal === undefined || principals === "all" || principals.has(principal)
    ),
    ([queue]) => Queue.offer(queue, undefined),
    { discard: true }
  )

export class SettlementEvents extends Context.Service<
  SettlementEvents,
  {
    /** Events after a position, in order, at most `limit`. */
    readonly after: (whose: Whose, position: bigint, limit: number) => Sql<ReadonlyArray<SettlementEvent>>
    /** The position before the first event that is not older than `at`; the journal's end when there is none. */
    readonly before: (whose: Whose, at: Date) => Sql<bigint>
    /** The position of the journal's last fact. */
    readonly end: Sql<bigint>
    /** Registers one who waits; the effect it gives ends when something of theirs was told since. */
    readonly attend: (whose: Whose) => Effect.Effect<Effect.Effect<void>, never, Scope.Scope>
  }
>()("tollkeeper/settlement/SettlementEvents") {
  static readonly layer = Layer.effect(
    SettlementEvents,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const facts = yield* Facts
      const attending = new Map<Queue.Queue<void>, string | undefined>()
      const columns = sql.literal(recordColumns)
      const own = factsOf(sql)

      const after = Effect.fnUntraced(function* (whose: Whose, position: bigint, limit: number) {
        const rows = yield* sql<EventRow>`select f.position, f.type, f.told_at, ${columns}
          from (select position, type, at as told_at, subject from kernel_facts
            where ${own(whose)} and position > ${position} order by position limit ${limit}) f
          join kernel_settlements on id = f.subject::uuid order by f.position`
        return rows.map((row) => ({
          position: row.position,
          type: row.type,
          at: row.told_at,
          settlement: toRecord(row)
        }))
      }, spanned("SettlementEvents.after"))

      const before = Effect.fnUntraced(function* (whose: Whose, at: Date) {
        let found = yield* facts.end
        let below = found + 1n
        while (true) {
          const [row] = yield* sql<LookBack>`select count(*)::int as seen, min(position) as lowest,
              count(*) filter (where at >= ${at})::int as recent, min(position) filter (where at >= ${at}) as first
            from (select position, at from kernel_facts where ${own(whose)} and position < ${below}
              order by position desc limit ${lookBackMax}) p`
          const { first, lowest, recent, seen } = row!
          if (first !== null) found = first - 1n
          if (seen < lookBackMax || recent < seen) return found
          below = lowest!
        }
      }, spanned("SettlementEvents.before"))

      /** Where the last look ended; undefined while nobody waits. */
      let seen: bigint | undefined
      const look = Effect.gen(function* () {
        if (attending.size === 0) return void (seen = undefined)
        const [from, end] = [seen, yield* facts.end]
        seen = end
        if (from === end) return
        if (from === undefined || from > end) return yield* wake(attending, "all")
        const told = yield* sql<{ principal: string }>`select distinct principal from kernel_facts
          where position > ${from} and position <= ${end} and principal is not null`
        yield* wake(attending, new Set(told.map(({ principal }) => principal)))
      })
      const looking = yield* reconciler({
        id: "settlement-events",
        every: Effect.sync(() => (attending.size === 0 ? whileNobodyWaits : lookEvery)),
        turn: look
      }).pipe(Effect.provideService(Supervisor, yield* Supervisor))
      yield* facts.onPublished(Effect.suspend(() => (attending.size === 0 ? Effect.void : looking.wake)))

      const attend = Effect.fnUntraced(function* ({ principal }: Whose) {
        const queue = yield* Effect.acquireRelease(
          Effect.tap(Queue.sliding<void>(1), (queue) => Effect.sync(() => attending.set(queue, principal))),
          (queue) => Effect.sync(() => attending.delete(queue))
        )
        if (attending.size === 1) yield* looking.wake
        return Effect.asVoid(Queue.take(queue))
      })

      return SettlementEvents.of({ after, before, end: facts.end, attend })
    })
  )
}
