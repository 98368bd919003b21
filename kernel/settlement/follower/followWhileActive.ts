// A fact published here or by another replica may mean a new settlement: ledgers are followed closely from then on,
// also by the replica that holds the follower's lease, although no payment reaches it.
import { Effect } from "effect"
import { Facts } from "../../facts/Facts.ts"
import { LedgerClock } from "../../ledger/LedgerClock.ts"

/** Listens for as long as the Scope lives. */
export const followWhileActive = Effect.gen(function* () {
  const { attend } = yield* LedgerClock
  yield* (yield* Facts).onPublished(attend)
})
