// Keeps work that blocks the process to a share of its time, one piece after another, each after the requests of
// others: a short burst runs without a pause, then each piece waits until its predecessors are paid for. Nothing is
// lost, only delayed; the caller bounds the number of waiters.
import { Effect, Semaphore } from "effect"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"

interface CpuThrottle {
  /** Share of elapsed time, 0 to 1. */
  readonly share: number
  /** Milliseconds of work that may run without a pause after a rest. */
  readonly burstMillis: number
}

export const makeCpuThrottle = ({ burstMillis, share }: CpuThrottle) => {
  const turn = Semaphore.makeUnsafe(1)
  let credit = burstMillis
  let creditedAt = 0

  const settle = (now: number, spent: number): void => {
    credit = Math.min(burstMillis, credit + Math.max(0, now - creditedAt) * share) - spent
    creditedAt = now
  }

  return <A>(work: () => A): Effect.Effect<A> =>
    Effect.gen(function* () {
      settle(yield* monotonicMillis, 0)
      if (credit < 0) yield* Effect.sleep(Math.ceil(-credit / share))
      yield* Effect.yieldNow
      const from = yield* monotonicMillis
      const result = work()
      const to = yield* monotonicMillis
      settle(to, to - from)
      return result
    }).pipe(turn.withPermits(1))
}
