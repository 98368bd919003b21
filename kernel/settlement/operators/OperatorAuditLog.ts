// The audit trail of operators' acts: person, action, way, reason, and the values before and after. Pages, API,
// commands (in a running facilitator or without one) and signals all use it. Rows are only added: one before the act
// and one after it. An act that cannot be recorded is not done; one without a known result (the database was lost, the
// process died) keeps the outcome `asked`.
import { Context, Effect, Layer } from "effect"
import { SqlClient, SqlError } from "effect/sql"

export interface AuditEntry {
  /** An operator's key label, or the user of the machine. */
  readonly person: string
  readonly via: "page" | "api" | "command line" | "signal"
  readonly action: string
  /** The subject of the act; at most 100 characters are kept. */
  readonly subject: string
  /** The operator's reason. */
  readonly reason: string
}

/** Values as text; absent without a value. */
export interface AuditChange {
  readonly before?: string | undefined
  readonly after?: string | undefined
}

/** An act with its end. */
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

/** The trail of one database, also for a command next to the serving process. */
export const makeAuditLog = (sql: SqlClient.SqlClient): OperatorAuditLog["Service"] => ({
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
  list: ({ before, limit }) =>
    sql<Act>`select a.id, a.at, a.person, a.via, a.action, a.subject, a.reason, e.before, e.after,
        coalesce(e.outcome, a.outcome) as outcome
      from kernel_operator_acts a left join kernel_operator_acts e on e.asked = a.id
      where a.asked is null ${before === undefined ? sql`` : sql`and a.id < ${before}::int8`}
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
    /** The newest first; those before an id. */
    readonly list: (page: { readonly before?: bigint | undefined; readonly limit: number }) => Sql<ReadonlyArray<Act>>
  }
>()("tollkeeper/settlement/OperatorAuditLog") {
  static readonly layer = Layer.effect(OperatorAuditLog, Effect.map(SqlClient.SqlClient, makeAuditLog))
}
