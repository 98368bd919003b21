// Batches the recording of settlements. A ledger close frees channels for many waiters at a time, and their payments
// are recorded together: payments of one principal share one statement, under one reservation of the budget. It stores
// all or nothing. If a lease is lost, a bound is reached or a payment already exists, each is recorded separately, with
// its own answer: no settlement depends on another's. After a lost connection or a statement timeout the result is
// unknown for all of them. Principals do not wait for each other: a locked row of the budget belongs to one principal.
// A single record is the repository's own statement: as a batch of one it takes 39 to 46 % longer on PostgreSQL and 27
// to 29 % on PGlite.
import { Cause, Effect, Exit, Option, Scope, Semaphore } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient, type SqlError } from "effect/sql"
import { Budget } from "../../budget/Budget.ts"
import { Limits } from "../../config/Limits.ts"
import { inStatement } from "../../database/Database.ts"
import { batched } from "../../database/batched.ts"
import { Lane } from "../../database/Connections.ts"
import { factRow, Facts } from "../../facts/Facts.ts"
import { counted } from "../../http/Authentication.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"
import { recordedFact } from "./facts.ts"
import { actionOf, attemptRow, bornRow, spreadOf } from "./SettlementRows.ts"
import type { NewSettlement, RecordAnswer, Settlements } from "./Settlements.ts"

/** Maximum settlements that one statement records. */
const callsMax = 50
/** Maximum number of principals that record concurrently. */
const concurrency = 8

type Rows = ReadonlyArray<Readonly<Record<string, unknown>>>

/** Rows in the form that their columns read. */
const jsonOf = (rows: Rows): string =>
  JSON.stringify(rows, (_, value: unknown) =>
    typeof value === "bigint" ? value.toString() : value instanceof Uint8Array ? `\\x${Hex.encode(value)}` : value
  )

/** Inserts the rows if `given`, a relation of the surrounding statement, has a row. */
const insertAll = (sql: SqlClient.SqlClient, table: string, rows: Rows, given: string) => {
  const columns = Object.keys(rows[0]!).join(", ")
  return sql`insert into ${sql.literal(`${table} (${columns})`)} select ${sql.literal(columns)}
    from jsonb_populate_recordset(null::${sql.literal(table)}, ${jsonOf(rows)}::jsonb)
    where exists (select 1 from ${sql.literal(given)})`
}

/** Whether all were recorded; they are of one principal, and on a channel each. Otherwise none was. */
const makeRecordAll = Effect.fnUntraced(function* (facilitator: string) {
  const sql = yield* SqlClient.SqlClient
  const budget = yield* Budget
  const facts = yield* Facts
  const limits = yield* Limits
  return Effect.fnUntraced(function* (settlements: ReadonlyArray<NewSettlement>) {
    const [first] = settlements
    const { part, reservation } = yield* budget.reserving(
      counted(first!.principal),
      settlements.reduce((sum, { budgetStroops }) => sum + budgetStroops, 0n),
      spreadOf(first!.id),
      "leased_all"
    )
    const born = settlements.map((one) => ({
      ...bornRow(one, { ...reservation, stroops: one.budgetStroops }),
      action: actionOf(one)
    }))
    const attempts = settlements.map(({ attempt, id }) => attemptRow(id, 1, attempt))
    const reported = settlements.map((one) => {
      const fact = recordedFact(one, facilitator)
      return { ...factRow(fact), data: fact.data }
    })
    const statement = sql<{ born: number }>`with given as (
      select * from unnest(${settlements.map(({ channel }) => channel.address)}::text[],
        ${settlements.map(({ channel }) => channel.fence.toString())}::int8[],
        ${settlements.map(({ id }) => id)}::uuid[]) as g (channel, leased_fence, held_by)),
    permit as (
      select count(*) + ${settlements.length}::int <= ${limits.pendingSettlementsMax}::int as may_open
      from kernel_settlements where state in ('prepared', 'submitted')),
    leased as (
      select 1 from kernel_channels as c join given on c.address = given.channel and c.fence = leased_fence
      where c.settlement is null and (select may_open from permit)
      order by c.address for update of c),
    leased_all as (select 1 from leased having count(*) = ${settlements.length}::int),
    ${part},
    born as (${insertAll(sql, "kernel_settlements", born, "budget_reserved")} returning 1),
    attempted as (${insertAll(sql, "kernel_attempts", attempts, "born")}),
    published as (${insertAll(sql, "kernel_facts", reported, "born")}),
    held as (
      update kernel_channels as c set settlement = held_by, leased_until = null, used_at = clock_timestamp() from given
      where c.address = given.channel and exists (select 1 from born))
    select count(*)::int as born from born`
    const [row] = yield* facts.publishedBy(inStatement(statement))
    return row!.born === settlements.length
  })
})

type Answer = Exit.Exit<RecordAnswer, SqlError.SqlError>
type RecordOne = (settlement: NewSettlement) => Effect.Effect<RecordAnswer, SqlError.SqlError>
type RecordAll = (settlements: ReadonlyArray<NewSettlement>) => Effect.Effect<boolean, SqlError.SqlError>

/** The statement's result is unknown: repeating it in parts would take as long for each of them. */
const isUnknown = (cause: Cause.Cause<SqlError.SqlError>): boolean =>
  Option.exists(
    Cause.findErrorOption(cause),
    ({ reason }) => reason._tag === "ConnectionError" || reason._tag === "StatementTimeoutError"
  )

/** All in one statement, or each separately if that fails. */
const recordGroup = (
  group: ReadonlyArray<NewSettlement>,
  recordAll: RecordAll,
  recordOne: RecordOne
): Effect.Effect<ReadonlyArray<Answer>> => {
  const alone = Effect.forEach(group, (one) => Effect.exit(recordOne(one)))
  if (group.length === 1) return alone
  return Effect.matchCauseEffect(recordAll(group), {
    onSuccess: (areBorn) =>
      areBorn ? Effect.succeed(group.map((): Answer => Exit.succeed({ _tag: "Recorded" }))) : alone,
    onFailure: (cause) =>
      Cause.hasInterrupts(cause) || isUnknown(cause)
        ? Effect.succeed(group.map((): Answer => Exit.failCause(cause)))
        : alone
  })
}

type RecordSettlement = (settlement: NewSettlement) => Effect.Effect<Answer>

/** One batcher per principal, since the budget's row is locked by principal; kept while any of its payments waits. */
const makeRecorders = Effect.fnUntraced(function* (facilitator: string, recordOne: RecordOne) {
  const scope = yield* Effect.scope
  const recordAll = yield* makeRecordAll(facilitator)
  const permits = Semaphore.makeUnsafe(concurrency)
  const run = (settlements: ReadonlyArray<NewSettlement>) =>
    recordGroup(settlements, recordAll, recordOne).pipe(
      Semaphore.withPermit(permits),
      Effect.provideService(Lane, "payments")
    )
  const made = batched({
    maxBatchSize: callsMax,
    keyOf: ({ channel }: NewSettlement) => channel.address,
    runBatch: run
  }).pipe(Effect.provideService(Scope.Scope, scope))
  const recorders = new Map<string, { readonly recording: RecordSettlement; calls: number }>()
  const enter = (name: string) =>
    Effect.suspend(() => {
      const existing = recorders.get(name)
      if (existing !== undefined) return Effect.succeed(existing)
      return Effect.map(made, (recording) => {
        const recorder = { recording, calls: 0 }
        recorders.set(name, recorder)
        return recorder
      })
    }).pipe(Effect.tap((recorder) => Effect.sync(() => void (recorder.calls += 1))))
  return (settlement: NewSettlement): Effect.Effect<Answer> => {
    const { keyed, source } = settlement.principal
    const name = `${keyed} ${source}`
    return Effect.acquireUseRelease(
      enter(name),
      ({ recording }) => recording(settlement),
      (recorder) =>
        Effect.sync(() => {
          recorder.calls -= 1
          if (recorder.calls === 0) recorders.delete(name)
        })
    )
  }
})

/** The batched call; `recordOne` records one settlement. Its statements end with the Scope. */
export const batchRecords = Effect.fnUntraced(function* (facilitator: string, recordOne: RecordOne) {
  const recording = yield* makeRecorders(facilitator, recordOne)
  return {
    record: (settlement) =>
      Effect.flatMap(recording(settlement), (answer) => answer).pipe(withSpanIfSampled("Settlements.record"))
  } satisfies Pick<Settlements["Service"], "record">
})
