// Detects a test network that was reset: its ledgers have lower numbers and close later than the recorded ones.
// Recorded states of channels and of the sponsor's transactions belong to the old network, and would be waited for
// until the new one has grown as old. They are deleted, so that accounts are created and numbers read anew. A node that
// lags is not mistaken for a reset: its ledgers closed earlier. Open settlements keep their channels: an operator
// decides how they ended.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Network } from "../../config/Network.ts"
import { LedgerClock } from "../../ledger/LedgerClock.ts"

/** Ledgers by which a node may be behind another's report of a channel, before a reset is suspected. */
const lagMax = 12

/** True when the recorded state of an earlier network was deleted. */
export const handleNetworkReset = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { id } = yield* Network
  const { closedAtSeconds, sequence } = yield* (yield* LedgerClock).now
  const [known] = yield* sql<{ ledger: bigint | null }>`select max(sequence_ledger) as ledger
    from kernel_channels where network = ${id}`
  if (Number(known?.ledger ?? 0n) <= sequence + lagMax) return false
  const [last] = yield* sql<{ closed: number }>`select extract(epoch from closed_at)::float8 as closed
    from kernel_settlements where network = ${id} and ledger > ${sequence} and closed_at is not null
    order by ledger desc limit 1`
  if (last === undefined || closedAtSeconds <= last.closed) return false
  yield* Effect.logWarning(
    "the network was reset: channels are made anew, and open settlements are an operator's to end"
  )
  yield* sql`update kernel_sponsor_transactions set ledger = null,
    state = case when state = 'open' then 'expired' else state end
    where network = ${id} and (ledger > ${sequence} or state = 'open')`
  yield* sql`update kernel_channels set sequence = null, sequence_ledger = 0, fence = fence + 1, leased_until = null
    where network = ${id} and settlement is null and state <> 'retired'`
  return true
})
