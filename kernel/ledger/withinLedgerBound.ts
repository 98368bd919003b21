// An answer of the RPC names the ledger that it describes, and a node may name a ledger far ahead of the network's. The
// answer proves something only relative to that ledger: a bound has passed, or a number is newer than another. So an
// answer counts at most up to the selected head, and not before the head is confirmed. An answer that we must use
// unchanged waits until the clock has reached its ledger.
import { Effect } from "effect"
import type { LedgerClock, LedgerTime } from "./LedgerClock.ts"

const provenLedger = ({ isFirstWord, sequence }: LedgerTime): number => (isFirstWord ? 0 : sequence)

/**
 * The last ledger for which an answer counts: the answer's own ledger, at most the selected head; 0 before any head is
 * confirmed.
 */
export const withinLedgerBound = ({ now }: Pick<LedgerClock["Service"], "now">, latestLedger: number) =>
  Effect.map(now, (time) => Math.min(latestLedger, provenLedger(time)))

/** Whether the ledger that an answer names is confirmed, after a second poll if needed. */
export const isReached = Effect.fnUntraced(function* (clock: LedgerClock["Service"], latestLedger: number) {
  return latestLedger <= provenLedger(yield* clock.now) || latestLedger <= provenLedger(yield* clock.fresh)
})
