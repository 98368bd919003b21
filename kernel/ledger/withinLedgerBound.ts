// An answer of the RPC names the ledger it is of, and a node may name one that is far ahead of the network's. What an
// answer proves depends on that ledger: that a bound has passed, that a number is newer than another. So no answer
// counts for more than the selected head, none for anything while that is unconfirmed, and one that must be taken as it
// is waits until the clock has reached its ledger.
import { Effect } from "effect"
import type { LedgerClock, LedgerTime } from "./LedgerClock.ts"

const provenLedger = ({ isFirstWord, sequence }: LedgerTime): number => (isFirstWord ? 0 : sequence)

/** The ledger an answer may count for: the one it names, at most the selected head; 0 before anything is confirmed. */
export const withinLedgerBound = ({ now }: Pick<LedgerClock["Service"], "now">, latestLedger: number) =>
  Effect.map(now, (time) => Math.min(latestLedger, provenLedger(time)))

/** Whether the ledger that an answer names is confirmed, after a second poll if needed. */
export const isReached = Effect.fnUntraced(function* (clock: LedgerClock["Service"], latestLedger: number) {
  return latestLedger <= provenLedger(yield* clock.now) || latestLedger <= provenLedger(yield* clock.fresh)
})
