// Monotonic time, for waits, rests, ages and rates in the memory of one process. Setting the system clock does not
// change it, so nothing rests for an hour because the machine's clock was put back by one, and nothing expires because
// it was put forward. It is meaningless to another process or a later run: what is stored or sent carries
// `Clock.currentTimeMillis`, and decisions about money use the ledger's time.
import { Clock, Effect } from "effect"

/** Whole milliseconds since a moment that is the process's own. */
export const monotonicMillis: Effect.Effect<number> = Effect.map(Clock.monotonicTimeNanos, (nanos) =>
  Number(nanos / 1_000_000n)
)
