// How far ahead an honest authorization may reach (rules 3), for every scheme of this ledger: its timeout by the
// fastest clock a client may have, and a tolerance.
import type { LedgerTime } from "./LedgerClock.ts"

/** A client reads close times in whole seconds; its clock may run faster by this factor. */
const paceTolerance = 0.95

/** Clients compute with 5 s a ledger, or with the measured interval in whole seconds, rounded up, at least one. */
const secondsPerLedgerOfClients = (measured: number): number => Math.min(5, Math.max(1, measured * paceTolerance))

/** The last ledger that an honest authorization may name. `maxTimeoutSeconds` is from its payment terms. */
export const latestExpiry = (
  { fastestSecondsPerLedger, sequence }: Pick<LedgerTime, "fastestSecondsPerLedger" | "sequence">,
  maxTimeoutSeconds: number,
  toleranceLedgers: number
): number =>
  sequence + Math.ceil(maxTimeoutSeconds / secondsPerLedgerOfClients(fastestSecondsPerLedger)) + toleranceLedgers
