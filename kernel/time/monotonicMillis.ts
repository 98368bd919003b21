// Time that elapses, for waits, rests, ages and rates in the memory of one process. A clock that is set, by whomever,
// does not move it, so nothing rests for an hour because the machine's clock was put back by one, and nothing is over
// because it was put forward. It means nothing to another process or a later run: what is stored or told bears
// `Clock.currentTimeMillis`, and what decides about money the ledger's time.
import { Clock, Effect } from "effect"

/** Whole milliseconds since a moment that is the process's own. */
export const monotonicMillis: Effect.Effect<number> = Effect.map(Clock.monotonicTimeNanos, (nanos) =>
  Number(nanos / 1_000_000n)
)
