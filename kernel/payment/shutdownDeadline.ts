// The shutdown deadline of requests: once the process is asked to stop, work in flight may continue for this long,
// which is longer than an outcome is waited for then, and shorter than the listener waits.
import { Duration, Effect } from "effect"
import { ListenAt } from "../http/ListenAt.ts"

const stoppingWait = Duration.millis(2_500)

/** Ends when the process is asked to stop and work in flight has had its time. */
export const shutdownDeadline = Effect.map(ListenAt, ({ closing }) =>
  Effect.andThen(closing, Effect.sleep(stoppingWait))
)
