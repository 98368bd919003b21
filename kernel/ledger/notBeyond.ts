// An answer of the RPC names the ledger it is of, and a node may name one that is far ahead of the network's. What an
// answer proves depends on that ledger: that a bound has passed, that a number is newer than another. So no answer
// counts for more than the ledger that is believed, and one that must be taken as it is waits until the clock has come
// as far.
import { Effect } from "effect"
import { LedgerClock } from "./LedgerClock.ts"

/** The ledger an answer may count for: the one it names, the believed one at most. */
export const notBeyond = Effect.fnUntraced(function* (latestLedger: number) {
  const { sequence } = yield* (yield* LedgerClock).now
  return Math.min(latestLedger, sequence)
})

/** Whether the ledger an answer names is believed, after a second look if need be. */
export const isReached = Effect.fnUntraced(function* (latestLedger: number) {
  const clock = yield* LedgerClock
  return latestLedger <= (yield* clock.now).sequence || latestLedger <= (yield* clock.fresh).sequence
})
