// Waits for a delayed effect: a buffered write, a message to another replica, the ledger's close. A test waits for the
// condition itself and never for a time. The timeout only reports a condition that never came true; a loaded machine
// takes ten times as long as an idle one.
import { Effect } from "effect"
import { inspect } from "node:util"

const seconds = 100

/** The first polls follow quickly; a long wait polls four times a second, because each may be a request. */
const pauseMillis = (polls: number): number => Math.min(250, 20 + 5 * polls)

/** Polls until the value satisfies the predicate (default: until it is true), and returns it. */
export const eventually = <A, E, R>(
  read: Effect.Effect<A, E, R>,
  holds: (seen: A) => boolean = (seen) => seen === true
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    let seen: A | undefined
    const reads = Effect.gen(function* () {
      for (let polls = 0; !holds((seen = yield* read)); polls++) yield* Effect.sleep(pauseMillis(polls))
      return seen
    })
    return Effect.timeoutOrElse(reads, {
      duration: `${seconds} seconds`,
      orElse: () => Effect.die(new Error(`not so within ${seconds} seconds; last seen: ${inspect(seen, { depth: 6 })}`))
    })
  })
