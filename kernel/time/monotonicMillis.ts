// Monotonic time, for waits, rests, ages and rates in the memory of one process. Setting the system clock does not
// change it: nothing rests for an hour because the machine's clock was put back, and nothing expires because it was put
// forward. It is meaningless to another process or a later run: stored or sent values carry `Clock.currentTimeMillis`,
// and decisions about money use the ledger's time.
import { Clock, Effect } from "effect"

/** Whole milliseconds since an arbitrary moment of this process. */
export const monotonicMillis: Effect.Effect<number> = Effect.map(Clock.monotonicTimeNanos, (nanos) =>
  Number(nanos / 1_000_000n)
)
