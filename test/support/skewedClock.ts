// Skewed clocks: a test provides one as the `Clock` of the program that it starts.
import { Clock, Effect } from "effect"

/**
 * The clock of a machine that can be set: `set` shifts it by this many additional milliseconds, without elapsed time.
 */
export const settableClock: Effect.Effect<{ readonly clock: Clock.Clock; readonly set: (millis: number) => void }> =
  Effect.clockWith((clock) => {
    let off = 0
    const own = Object.assign(Object.create(clock), {
      currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + off,
      currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now + off)
    }) as Clock.Clock
    return Effect.succeed({ clock: own, set: (millis: number) => void (off += millis) })
  })

/** A machine with a time that is off by `millis` milliseconds; elapsed time is correct. */
export const skewedClock = (millis: number): Effect.Effect<Clock.Clock> =>
  Effect.map(settableClock, ({ clock, set }) => {
    set(millis)
    return clock
  })
