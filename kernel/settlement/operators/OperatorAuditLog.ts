// The audit trail of operators' acts: person, action, way, reason, and the values before and after. Pages, API,
// commands (in a running facilitator or without one) and signals all use it. Rows are only added: one before the act
// and one after it. An act that cannot be recorded is not done; one without a known result (the database was lost, the
// process died) keeps the outcome `asked`.
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { BoundedMap } from "../../cache/BoundedMap.ts"

export interface AuditEntry {
  /** An operator's key label, or the user of the machine. */
  readonly person: string
  readonly via: "page" | "api" | "command line" | "signal"
  readonly action: string
  /** The subject of the act; at most 100 characters are kept. */
  readonly subject: string
  readonly reason: string
}

/** Values as text; absent without a value. */
export interface AuditChange {
  readonly before?: string | undefined
  readonly after?: string | undefined
}

export interface Act extends AuditEntry {
  readonly id: bigint
  readonly at: Date
  readonly before: string | null
  readonly after: string | null
  /** `asked`, `done`, or the reason for a refusal. */
  readonly outcome: string
}

const subjectMax = 100
const changeMax = 2_000

/** Actions that change nothing; the list omits them unless asked. */
const quiet = ["read", "sign in"]

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

const addedRow = (
  sql: SqlClient.SqlClient,
  { action, person, reason, subject, via }: AuditEntry,
  {
    after,
    asked,
    at,
    before,
    outcome
  }: AuditChange & {
    readonly outcome: string
    readonly asked: bigint | null
    readonly at?: Date | undefined
  }
): Sql<bigint> =>
  Effect.map(
    sql<{ readonly id: bigint }>`insert into kernel_operator_acts
        (at, asked, person, via, action, subject, reason, before, after, outcome)
      values (coalesce(${at ?? null}::timestamptz, clock_timestamp()), ${asked}::int8, ${person}, ${via}, ${action},
        ${subject.slice(0, subjectMax)}, ${reason},
        ${before?.slice(0, changeMax) ?? null}, ${after?.slice(0, changeMax) ?? null}, ${outcome})
      returning id`,
    ([row]) => row!.id
  )

/** Capacity of the cache of each act's last period. */
const repeatedMax = 10_000

const makeRecordOnce = (sql: SqlClient.SqlClient): OperatorAuditLog["Service"]["recordOnce"] => {
  const periods = new BoundedMap<string, number>(repeatedMax)
  return Effect.fnUntraced(function* (entry, periodMillis) {
    const name = `${entry.action} ${entry.person} ${entry.subject}`
    const period = Math.floor((yield* Clock.currentTimeMillis) / periodMillis)
    if (periods.get(name) === period) return
    periods.set(name, period)
    yield* Effect.catch(addedRow(sql, entry, { asked: null, outcome: "done" }), (error) => {
      periods.set(name, -1)
      return Effect.logWarning("a read or sign-in is not in the audit trail", error)
    })
  })
}

/** The trail of one database, also for a command next to the serving process. */
export const makeAuditLog = (sql: SqlClient.SqlClient): OperatorAuditLog["Service"] => ({
  recordOnce: makeRecordOnce(sql),
  record: Effect.fnUntraced(function* (entry, act, changed) {
    const asked = yield* addedRow(sql, entry, { asked: null, outcome: "asked" })
    const end = (outcome: string, change: AuditChange = {}) => addedRow(sql, entry, { asked, outcome, ...change })
    const done = yield* Effect.tapError(act, (error) =>
      error instanceof SqlError.SqlError ? Effect.void : end(error.message)
    )
    yield* end("done", changed?.(done))
    return done
  }),
  recordDone: Effect.fnUntraced(function* (entry, outcome, change, at) {
    const asked = yield* addedRow(sql, entry, { asked: null, outcome: "asked", at })
    yield* addedRow(sql, entry, { asked, outcome, at, ...change })
  }),
  list: ({ before, limit, withReads = false }) =>
    sql<Act>`select a.id, a.at, a.person, a.via, a.action, a.subject, a.reason, e.before, e.after,
        coalesce(e.outcome, a.outcome) as outcome
      from kernel_operator_acts a left join kernel_operator_acts e on e.asked = a.id
      where a.asked is null and (${withReads} or not a.action = any(${quiet}))
        ${before === undefined ? sql`` : sql`and a.id < ${before}::int8`}
      order by a.id desc limit ${limit}`
})

export class OperatorAuditLog extends Context.Service<
  OperatorAuditLog,
  {
    /** Runs an act between its two rows; `changed` derives the change from its result. */
    readonly record: <A, E extends { readonly message: string }, R>(
      entry: AuditEntry,
      act: Effect.Effect<A, E, R>,
      changed?: (result: A) => AuditChange
    ) => Effect.Effect<A, E | SqlError.SqlError, R>
    /**
     * For an act that must not wait for the database: a key that is to lose its access loses it first. `at`: when it
     * was done, if not now.
     */
    readonly recordDone: (entry: AuditEntry, outcome: string, change: AuditChange, at?: Date) => Sql<void>
    /**
     * For an act that changes nothing and may repeat: a row for each period, person, action and subject in a process.
     * It never fails; without a database, the next act writes the row.
     */
    readonly recordOnce: (entry: AuditEntry, periodMillis: number) => Effect.Effect<void>
    /** The newest first; those before an id. `withReads`: also reads and sign-ins. */
    readonly list: (page: {
      readonly before?: bigint | undefined
      readonly limit: number
      readonly withReads?: boolean
    }) => Sql<ReadonlyArray<Act>>
  }
>()("tollkeeper/settlement/OperatorAuditLog") {
  static readonly layer = Layer.effect(OperatorAuditLog, Effect.map(SqlClient.SqlClient, makeAuditLog))
}
