// Failed settlements with an authorization that may still be used, and their correction after a use: outcome and fact
// in one statement. A correction expects the failed state, so it is stored once.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Network } from "../../config/Network.ts"
import { inStatement, isUniqueViolation } from "../../database/Database.ts"
import { Facts } from "../../facts/Facts.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"
import { isResolvedBy } from "./batchOutcomes.ts"
import { correctedFact } from "./facts.ts"
import type { Row } from "../../database/table.ts"
import { recordColumns } from "./recordColumns.ts"
import type { Correction, ResolveAnswer, Settlements, WatchedRecord } from "./Settlements.ts"

interface WatchedRow extends Row {
  readonly watch_after: bigint
}

export const corrections = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const facts = yield* Facts
  const network = yield* Network
  const columns = sql.literal(recordColumns.selected)

  const watched = Effect.fnUntraced(function* (limit: number) {
    const rows = yield* sql<WatchedRow>`select ${columns}, watch_after from kernel_settlements
      where network = ${network.id} and watch_after is not null order by authorization_expires_ledger limit ${limit}`
    return rows.map((row): WatchedRecord => ({ ...recordColumns.decode(row), watchAfter: Number(row.watch_after) }))
  }, withSpanIfSampled("Settlements.watched"))

  const unwatch = Effect.fnUntraced(function* (id: string, isDead: boolean) {
    yield* sql`update kernel_settlements set watch_after = null, reason_message = case when ${isDead}
        then regexp_replace(reason_message, 'the authorization lives until ledger [0-9]+$',
          'the authorization was never used and is dead') else reason_message end
      where id = ${id} and watch_after is not null`
  }, withSpanIfSampled("Settlements.unwatch"))

  const correct = Effect.fnUntraced(
    function* (id: string, correction: Correction) {
      const { closedAtSeconds, confirmations, ledger, message, moved, reason, state, transaction } = correction
      const { data, type, version } = correctedFact(correction)
      const isSettled = state === "settled"
      const statement = sql`with corrected as (
        update kernel_settlements set state = ${state}, resolved_at = clock_timestamp(), watch_after = null,
          ended_by = case when ${isSettled} then ${transaction} else ended_by end,
          ledger = case when ${isSettled} then ${ledger}::int8 else ledger end,
          closed_at = case when ${isSettled} then ${new Date(closedAtSeconds * 1_000)}::timestamptz else closed_at end,
          moved = ${moved?.toString() ?? null}::numeric,
          reason = ${reason ?? null}, reason_message = ${message ?? null},
          confirmations = ${confirmations}::smallint
        where id = ${id} and state = 'failed' and watch_after is not null
        returning ${columns}),
      published as (
        insert into kernel_facts (type, version, subject, principal, data)
        select ${type}, ${version}::int, id, principal, ${JSON.stringify(data)}::jsonb || jsonb_build_object(
          'transaction', coalesce(transaction, inner_hash), 'feeChargedStroops', coalesce(fee_charged_stroops, 0)::text)
        from corrected)
      select * from corrected`
      const [row] = yield* facts.publishedBy(inStatement(statement))
      const answer: ResolveAnswer =
        row === undefined ? { _tag: "Changed" } : { _tag: "Resolved", record: recordColumns.decode(row) }
      return answer
    },
    Effect.catchIf(
      (error) => isUniqueViolation(error, isResolvedBy),
      () => Effect.succeed<ResolveAnswer>({ _tag: "TransactionTaken" })
    ),
    withSpanIfSampled("Settlements.correct")
  )

  return { watched, unwatch, correct } satisfies Pick<Settlements["Service"], "watched" | "unwatch" | "correct">
})
