// Batches the outcomes of settlements. A ledger closes for all at the same time, so the follower's decisions of one
// moment are written in one statement: outcomes, budget, channels and facts of all of them, in one transaction. Each
// outcome expects the state that its decision was based on; only one outcome of a settlement is written. A failure of
// the statement (a transaction that has ended another settlement, a defect of one of them) must not affect the others:
// each is then written separately. After a lost connection the result is unknown for all of them.
import { Cause, Effect, Exit, Option } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { committing } from "../../budget/budgetStatements.ts"
import { inStatement, isUniqueViolation } from "../../database/Database.ts"
import { batched } from "../../database/batched.ts"
import { Lane } from "../../database/Connections.ts"
import { Facts } from "../../facts/Facts.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"
import { endedFact } from "./facts.ts"
import type { Outcome } from "../state/Settlement.ts"
import type { Row } from "../../database/table.ts"
import { recordColumns } from "./recordColumns.ts"
import type { ResolveAnswer, Settlements } from "./Settlements.ts"

/** Maximum settlements that one statement ends. */
const callsMax = 100

/** One transaction of the ledger ends one settlement. */
export const isResolvedBy = "kernel_settlements_ended_by"

interface End {
  readonly id: string
  readonly outcome: Outcome
  readonly attemptsKnown: number | undefined
}

/** The input of an end, under names that no column has. The row adds the parts of the fact that only it has. */
const givenOf = ({ attemptsKnown, id, outcome }: End) => {
  const { channel, closedAtSeconds } = outcome
  const { data, type, version } = endedFact({ id, principal: "", innerHash: "" }, outcome)
  return {
    end_of: id,
    attempts_known: attemptsKnown ?? null,
    to_state: outcome.state,
    by_transaction: outcome.transaction ?? null,
    in_ledger: outcome.ledger ?? null,
    closed: closedAtSeconds === undefined ? null : new Date(closedAtSeconds * 1_000).toISOString(),
    did_move: outcome.amountTransferred?.toString() ?? null,
    fee: outcome.feeChargedStroops.toString(),
    fee_unknown: outcome.feeUnknown,
    confirmed_by: outcome.confirmations ?? null,
    watched_after: outcome.watchAfter ?? null,
    why: outcome.reason ?? null,
    reason_text: outcome.message ?? null,
    fact_type: type,
    fact_version: version,
    fact_data: data,
    gives_back: channel !== undefined,
    number_used: channel?.sequenceUsed ?? null,
    as_of_ledger: channel?.ledger ?? null
  }
}

const givenColumns = `end_of uuid, attempts_known int, to_state text, by_transaction text, in_ledger int8,
  closed timestamptz, did_move numeric, fee int8, fee_unknown bool, confirmed_by int,
  watched_after int8, why text, reason_text text, fact_type text,
  fact_version int, fact_data jsonb, gives_back bool, number_used bool, as_of_ledger int8`

/** Values of an ended row for the budget, its channel and its fact, in addition to the record. */
const endedColumns = `${recordColumns.selected}, budget_day,
  coalesce(budget_principal, principal) as budget_of, budget_keyed,
  budget_shard, budget_stroops, channel_sequence, fee_charged_stroops as charged`

/** One statement: outcomes, budget, channels and facts. Returns the rows that it ended. */
const makeResolveAll = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const facts = yield* Facts
  return Effect.fnUntraced(function* (ends: ReadonlyArray<End>) {
    const statement = sql`with given as (
      select * from jsonb_to_recordset(${JSON.stringify(ends.map(givenOf))}::jsonb)
        as g (${sql.literal(givenColumns)})),
    ended as (
      update kernel_settlements set state = to_state, resolved_at = clock_timestamp(), ended_by = by_transaction,
        ledger = in_ledger, closed_at = closed, moved = did_move,
        fee_charged_stroops = fee + case when fee_unknown then budget_stroops else 0 end,
        reason = why, reason_message = reason_text, confirmations = confirmed_by,
        watch_after = watched_after
      from given where id = end_of and state in ('prepared', 'submitted')
        and (attempts_known is null or attempt_count = attempts_known)
      returning ${sql.literal(endedColumns)}),
    freed as (
      update kernel_channels as c set settlement = null, used_at = clock_timestamp(),
        sequence = e.channel_sequence + case when g.number_used then 0 when not g.number_used then -1 end,
        sequence_ledger = greatest(c.sequence_ledger, g.as_of_ledger)
      from ended as e join given as g on g.end_of = e.id::uuid
      where g.gives_back and c.address = e.channel and c.settlement = g.end_of),
    published as (
      insert into kernel_facts (type, version, subject, principal, data)
      select g.fact_type, g.fact_version, e.id, e.principal, g.fact_data || jsonb_build_object(
        'transaction', case when e.state = 'settled' then e.transaction else e.inner_hash end,
        'feeChargedStroops', e.charged::text)
      from ended as e join given as g on g.end_of = e.id::uuid),
    ${committing(sql, "ended")}
    select * from ended`
    return yield* facts.publishedBy(inStatement(statement))
  })
})

type Answer = Exit.Exit<ResolveAnswer, SqlError.SqlError>

const answersOf = (ends: ReadonlyArray<End>, rows: ReadonlyArray<Row>): ReadonlyArray<Answer> => {
  const ended = new Map(rows.map((row) => [row.id, row]))
  return ends.map(({ id }) => {
    const row = ended.get(id)
    return Exit.succeed<ResolveAnswer>(
      row === undefined ? { _tag: "Changed" } : { _tag: "Resolved", record: recordColumns.decode(row) }
    )
  })
}

/** The next statement would fail too, because the connection is lost. */
const isConnectionError = (cause: Cause.Cause<SqlError.SqlError>): boolean =>
  Option.exists(Cause.findErrorOption(cause), ({ reason }) => reason._tag === "ConnectionError")

/** All in one statement, or each separately if that fails. */
const makeResolve = Effect.map(makeResolveAll, (resolveAll) => {
  const resolveOne = (end: End): Effect.Effect<Answer> =>
    Effect.exit(
      Effect.catchIf(
        Effect.flatMap(resolveAll([end]), (rows) => answersOf([end], rows)[0]!),
        (error) => isUniqueViolation(error, isResolvedBy),
        () => Effect.succeed<ResolveAnswer>({ _tag: "TransactionTaken" })
      )
    )
  return (ends: ReadonlyArray<End>) =>
    ends.length === 1
      ? Effect.map(resolveOne(ends[0]!), (answer) => [answer])
      : Effect.matchCauseEffect(resolveAll(ends), {
          onSuccess: (rows) => Effect.succeed(answersOf(ends, rows)),
          onFailure: (cause) =>
            Cause.hasInterrupts(cause) || isConnectionError(cause)
              ? Effect.failCause(cause)
              : Effect.forEach(ends, resolveOne)
        })
})

/** The batched call; its statements end with the Scope. */
export const batchOutcomes = Effect.gen(function* () {
  const resolve = yield* makeResolve
  const asPayment = Effect.provideService(Lane, "payments")
  const ending = yield* batched({
    maxBatchSize: callsMax,
    keyOf: ({ id }: End) => id,
    runBatch: (ends) => asPayment(resolve(ends))
  })
  return {
    resolve: (id, outcome, attemptsKnown) =>
      Effect.flatMap(ending({ id, outcome, attemptsKnown }), (answer) => answer).pipe(
        withSpanIfSampled("Settlements.resolve")
      )
  } satisfies Pick<Settlements["Service"], "resolve">
})
