// A circuit breaker of one endpoint: effect's, with its store in memory. It opens after failures in a row; once its
// time has passed, the next call is the probe, and others are refused until the probe ends. An interrupted call does
// not count. The store reads the monotonic clock instead of the machine's, so a corrected clock neither keeps a circuit
// open nor closes it.
import { Clock, Duration, Effect, Exit, Option } from "effect"
import * as Breaker from "effect/persistence/CircuitBreaker"

interface CircuitBreakerOptions<E> {
  /** Consecutive failures after which it opens. */
  readonly failures: number
  readonly openMillis: number
  /** The error of a call while it is open. */
  readonly refused: () => E
  /** Whether an error is unrelated to the endpoint's health. Default: no error is. */
  readonly isIgnored?: (error: E) => boolean
}

const key = "endpoint"

/** Inside, Effect's `currentTimeMillis` is the monotonic time. */
const byMonotonicClock = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Clock.clockWith((clock) => {
    const monotonic: Clock.Clock = Object.create(clock, {
      currentTimeMillis: { value: Effect.map(clock.monotonicTimeNanos, (nanos) => Number(nanos / 1_000_000n)) }
    })
    return Effect.provideService(effect, Clock.Clock, monotonic)
  })

const makeStore = Effect.map(Breaker.CircuitBreakerStore, (store) =>
  Breaker.CircuitBreakerStore.of({
    admit: (name) => byMonotonicClock(store.admit(name)),
    record: (outcome) => byMonotonicClock(store.record(outcome)),
    state: (name) => byMonotonicClock(store.state(name))
  })
).pipe(Effect.provide(Breaker.layerStoreMemory()))

/** A closed circuit, usable while the Scope lives. */
export const makeCircuitBreaker = Effect.fnUntraced(function* <E>({
  failures,
  isIgnored = () => false,
  openMillis,
  refused
}: CircuitBreakerOptions<E>) {
  const breaker = yield* Breaker.make({
    tripPolicy: Breaker.consecutive(failures),
    openDuration: Duration.millis(openMillis)
  }).pipe(Effect.provideServiceEffect(Breaker.CircuitBreakerStore, makeStore))
  const classify = <A>(exit: Exit.Exit<A, E>): Breaker.Outcome => {
    if (Exit.isSuccess(exit)) return Breaker.success
    return Option.exists(Exit.findErrorOption(exit), isIgnored) ? Breaker.ignored : Breaker.failure()
  }
  return {
    run: <A>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
      Effect.catch(breaker.execute(effect, { key, classify }), (error) =>
        Effect.fail(error instanceof Breaker.CircuitBreakerError ? refused() : error)
      ),
    isOpen: Effect.map(Effect.orDie(breaker.state(key)), (state) =>
      state._tag === "Open" ? Duration.toMillis(state.retryAfter) > 0 : state._tag === "HalfOpen" && state.probing
    )
  }
})
