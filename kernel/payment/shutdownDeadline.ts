// No request is waited for much longer than the process lives: once it is asked to stop, what was begun may go on for
// so long, which is longer than an outcome is waited for then, and shorter than the listener waits.
import { Duration, Effect } from "effect"
import { ListenAt } from "../http/ListenAt.ts"

const stoppingWait = Duration.millis(2_500)

/** Ends when the process is asked to stop and what was begun has had its time. */
export const shutdownDeadline = Effect.map(ListenAt, ({ closing }) =>
  Effect.andThen(closing, Effect.sleep(stoppingWait))
)
