// Detects a reset test network by the network's own history: the last ledger that we saw has another hash now, or
// ledgers have lower numbers and close later than it. The last ledger and its hash are recorded once a minute. Recorded
// states of channels and of the sponsor's transactions belong to the old network; we would wait for them until the new
// network is equally old. So they are cleared, and accounts are created and sequence numbers read again. A node that
// lags is not mistaken for a reset: its ledgers closed earlier. Open settlements keep their channels: an operator
// decides how they ended.
import { Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { Network } from "../../config/Network.ts"
import { LedgerClock } from "../../ledger/LedgerClock.ts"
import { LedgerRpc } from "../../ledger/LedgerRpc.ts"

/** Maximum lag of a node behind the last recorded ledger, before we suspect a reset. */
const lagMax = 12

interface KnownLedger {
  readonly ledger: number
  readonly hash: string
  /** Unix seconds. */
  readonly closed: number
}

/** The last ledger that we saw; in a database of an earlier version, the last ledger of a settlement. */
const readKnown = Effect.fnUntraced(function* () {
  const sql = yield* SqlClient.SqlClient
  const { id, passphrase } = yield* Network
  const [known] = yield* sql<KnownLedger>`select ledger::int as ledger, hash,
      extract(epoch from closed_at)::float8 as closed from kernel_known_ledgers
    where network = ${id} and passphrase = ${passphrase}
    union all (select ledger::int, '', extract(epoch from closed_at)::float8 from kernel_settlements
      where network = ${id} and ledger is not null and closed_at is not null
        and not exists (select 1 from kernel_known_ledgers where network = ${id})
      order by ledger desc limit 1) limit 1`
  return known
})

/** Records the newest ledger with its hash, if a node shows it. */
const noteLedger = Effect.fnUntraced(function* () {
  const sql = yield* SqlClient.SqlClient
  const { id, passphrase } = yield* Network
  const { closedAtSeconds, isFirstWord, sequence } = yield* (yield* LedgerClock).now
  if (isFirstWord) return
  const header = yield* Effect.option((yield* LedgerRpc).header(sequence))
  if (Option.isNone(header)) return
  yield* sql`insert into kernel_known_ledgers as k (network, passphrase, ledger, hash, closed_at)
    values (${id}, ${passphrase}, ${sequence}, ${header.value.hash}, ${new Date(closedAtSeconds * 1_000)})
    on conflict (network) do update set passphrase = excluded.passphrase, ledger = excluded.ledger,
      hash = excluded.hash, closed_at = excluded.closed_at, noted_at = clock_timestamp()`
})

/** Whether the network's history differs from the recorded one. `compare`: also reads the hash. */
const isOther = Effect.fnUntraced(function* ({ closed, hash, ledger }: KnownLedger, compare: boolean) {
  const { closedAtSeconds, sequence } = yield* (yield* LedgerClock).now
  if (sequence + lagMax < ledger) return closedAtSeconds > closed
  if (!compare || hash === "" || sequence < ledger) return false
  const header = yield* Effect.option((yield* LedgerRpc).header(ledger))
  return Option.exists(header, (found) => found.hash !== hash)
})

/** True if the recorded state of an earlier network was cleared. `compare`: also compares and records hashes. */
export const handleNetworkReset = Effect.fnUntraced(function* (compare: boolean) {
  const sql = yield* SqlClient.SqlClient
  const { id } = yield* Network
  const known = yield* readKnown()
  const isReset = known !== undefined && (yield* isOther(known, compare))
  if (isReset || compare) yield* noteLedger()
  if (!isReset) return false
  yield* Effect.logWarning("the network was reset: recreating channel accounts; open settlements need an operator")
  yield* sql`update kernel_sponsor_transactions set ledger = null,
    state = case when state = 'open' then 'expired' else state end
    where network = ${id} and (ledger is not null or state = 'open')`
  yield* sql`update kernel_channels set sequence = null, sequence_ledger = 0, fence = fence + 1, leased_until = null
    where network = ${id} and settlement is null and state <> 'retired'`
  return true
})
