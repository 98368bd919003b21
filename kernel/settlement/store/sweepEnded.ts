// Deletes records that ended more than `retention.settlement_days` ago: settled, failed and expired settlements with
// their attempts, the days of the sponsor's budget, and the sponsor's own transactions. An open or unresolved
// settlement is kept. So is a settlement that holds a channel, or one with an authorization that the ledger might still
// accept: without its row the same authorization could be paid for again. Those of the sponsor's transactions are kept
// that decide about its next one. A sweep each hour, in bounded transactions, outside the payments' connection lane.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { reconciler } from "../../actor/Actor.ts"
import { oldBefore } from "../../time/trustedTime.ts"
import { Network } from "../../config/Network.ts"
import { Retention } from "../../config/Retention.ts"
import { inTransaction } from "../../database/Database.ts"
import { LedgerClock } from "../../ledger/LedgerClock.ts"
import { sweepFacts } from "../../facts/sweepFacts.ts"

/** Maximum settlements in one transaction, and maximum rows of the budget. */
const deletedMax = 500
/** Maximum transactions of one turn; the rest waits for the next hour. */
const batchesMax = 200

/** Deletes ended settlements of a network up to a ledger that has passed; true if there may be more. */
export const sweepSettlements = Effect.fnUntraced(function* (
  keepMillis: number,
  { network, sequence }: { readonly network: string; readonly sequence: number }
) {
  const sql = yield* SqlClient.SqlClient
  const before = yield* oldBefore(keepMillis)
  const deleted = yield* inTransaction(sql`with ended as (
      select s.id from kernel_settlements s
      where s.recorded_at < ${before} and s.resolved_at < ${before} and s.network = ${network}
        and s.state in ('settled', 'failed', 'expired') and s.authorization_expires_ledger < ${sequence}
        and not exists (select 1 from kernel_channels c where c.settlement = s.id)
      limit ${deletedMax} for update skip locked),
    attempts as (delete from kernel_attempts a using ended where a.settlement = ended.id)
    delete from kernel_settlements s using ended where s.id = ended.id returning 1`)
  return deleted.length === deletedMax
})

/** Deletes days of the budget that nothing counts against any more; true if there may be more. */
export const sweepBudget = Effect.fnUntraced(function* (keepMillis: number) {
  const sql = yield* SqlClient.SqlClient
  const before = (yield* oldBefore(keepMillis)).toISOString().slice(0, 10)
  yield* sql`delete from kernel_sponsor_budget_total where day < ${before}::date`
  const deleted = yield* sql`delete from kernel_sponsor_budget where (day, principal) in (
    select day, principal from kernel_sponsor_budget where day < ${before}::date order by day limit ${deletedMax})
    returning 1`
  return deleted.length === deletedMax
})

/**
 * Deletes a network's sponsor transactions; true if there may be more. It keeps the open one, the newest two of a
 * sponsor (the next one follows the last, and pauses after failures), and the one that landed last, because no account
 * is read as of an earlier ledger.
 */
export const sweepSponsorTransactions = Effect.fnUntraced(function* (keepMillis: number, network: string) {
  const sql = yield* SqlClient.SqlClient
  const before = yield* oldBefore(keepMillis)
  const deleted = yield* sql`delete from kernel_sponsor_transactions where hash in (
    select t.hash from kernel_sponsor_transactions t
    where t.network = ${network} and t.state <> 'open' and t.recorded_at < ${before}
      and exists (select 1 from kernel_sponsor_transactions n where n.network = t.network and n.sponsor = t.sponsor
        and n.recorded_at > t.recorded_at order by n.recorded_at offset 1 limit 1)
      and (t.ledger is null or t.ledger < (select max(l.ledger) from kernel_sponsor_transactions l
        where l.network = t.network and l.sponsor = t.sponsor))
    order by t.recorded_at limit ${deletedMax}) returning 1`
  return deleted.length === deletedMax
})

/** Repeats a step until it has nothing more to do, up to the limit of a turn. */
const drained = <E, R>(step: Effect.Effect<boolean, E, R>): Effect.Effect<void, E, R> =>
  Effect.gen(function* () {
    for (let batch = 0; batch < batchesMax && (yield* step); batch++) yield* Effect.yieldNow
  })

/** Starts the retention sweep; it runs while the Scope lives. */
export const startSweeps = Effect.gen(function* () {
  const { id } = yield* Network
  const { factMillis, settlementMillis } = yield* Retention
  const { status } = yield* LedgerClock
  yield* reconciler({
    id: "retention",
    every: "1 hour",
    turn: Effect.gen(function* () {
      const { isFresh, time } = yield* status
      // Without the ledger's time it is unknown which authorizations have expired.
      if (isFresh && time !== undefined)
        yield* drained(sweepSettlements(settlementMillis, { network: id, sequence: time.sequence }))
      yield* drained(sweepBudget(settlementMillis))
      yield* drained(sweepSponsorTransactions(settlementMillis, id))
      yield* drained(sweepFacts(factMillis))
    })
  })
})
