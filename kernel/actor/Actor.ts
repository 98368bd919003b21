// A reconciler is an actor that converges: a tick or a signal wakes it. It takes no input, reads the state and does the
// missing work. The same turn runs after a crash and on the happy path, so no recovery path can rot. A typed failure of
// a turn is an external condition (a lost database, a silent ledger): it is logged as a warning, and the next tick
// retries; a repeated failure is logged once a minute, and so is its end; a dependency's outage is one line for all
// actors (`outages.ts`). A defect is a bug and goes to the supervisor. Wake-ups that arrive during a turn are kept:
// exactly one more turn follows. Long rests end together, so that an idle process wakes once for many turns. The last
// turn is published with the actor's state: when, why, how long, outcome.
import { Clock, Duration, Effect, Exit, Option, Queue, type Scope } from "effect"
import { type LastRun, Supervisor } from "./Supervisor.ts"
import { beginOutage, endOutage, type Outage, outageOf } from "./outages.ts"
import { monotonicMillis } from "../time/monotonicMillis.ts"

interface ReconcilerSpec<E, R> {
  readonly id: string
  /**
   * Longest time between two turns; from ten seconds on, a turn comes up to five seconds sooner. An Effect may decide
   * it before each wait.
   */
  readonly every: Duration.Input | Effect.Effect<Duration.Duration, never, R>
  /** Debounce: how long wake-ups are collected into one turn; absent, the turn runs immediately. */
  readonly gather?: Duration.Input
  /** Bounded, idempotent work. */
  readonly turn: Effect.Effect<void, E, R>
}

export interface Reconciler {
  /** Requests a turn soon. Never waits, never fails, may be called from anywhere. */
  readonly wake: Effect.Effect<void>
}

/** A repeated failure is logged again after this long. */
const repeatMillis = 60_000

/** Rests of at least this long end together: waking an idle process for each costs more than their turns do. */
const restTogetherMin = 10_000
/** Sleeps end at a multiple of this elapsed time. */
const restTogetherStep = 5_000

/** The rest before the next turn, at most `every`. */
const restOf = (every: Duration.Duration) =>
  Effect.map(monotonicMillis, (now) => {
    const millis = Duration.toMillis(every)
    if (millis < restTogetherMin || millis === Infinity) return every
    return Duration.millis(millis - ((now + millis) % restTogetherStep))
  })

const errorMessage = (error: unknown): string =>
  typeof error === "object" && error !== null && "message" in error ? String(error.message) : String(error)

/** Publishes each run of a turn; an interrupted run is published without an outcome. */
const makePublished = () => {
  let lastRun: LastRun | undefined
  const publish = <E, R>(cause: LastRun["cause"], turn: Effect.Effect<void, E, R>): Effect.Effect<void, E, R> =>
    Effect.flatMap(monotonicMillis, (begun) =>
      Effect.onExit(turn, (exit) =>
        Effect.gen(function* () {
          if (Exit.hasInterrupts(exit)) return
          const [endedAtMillis, ended] = [yield* Clock.currentTimeMillis, yield* monotonicMillis]
          const outcome = Exit.isSuccess(exit) ? "succeeded" : "failed"
          lastRun = { endedAtMillis, endedMonotonicMillis: ended, durationMillis: ended - begun, cause, outcome }
        })
      )
    )
  return { publish, lastRun: () => lastRun }
}

/** Starts a permanent, supervised reconciler in the current Scope. Its first turn runs immediately. */
export const reconciler = Effect.fnUntraced(function* <E, R>(
  spec: ReconcilerSpec<E, R>
): Effect.fn.Return<Reconciler, never, R | Supervisor | Scope.Scope> {
  const supervisor = yield* Supervisor
  const wakes = yield* Queue.sliding<void>(1)
  const every = Effect.isEffect(spec.every) ? spec.every : Effect.succeed(Duration.fromInputUnsafe(spec.every))
  let failing: { readonly why: string; readonly saidAt: number } | undefined
  let stoppedBy: Outage["subject"] | undefined
  const failed = Effect.fnUntraced(function* (error: E) {
    const outage = outageOf(error)
    if (outage !== undefined) {
      stoppedBy = outage.subject
      return yield* beginOutage(supervisor, outage)
    }
    const [why, now] = [errorMessage(error), yield* monotonicMillis]
    if (failing?.why === why && now - failing.saidAt < repeatMillis) return
    failing = { why, saidAt: now }
    yield* Effect.logWarning(`turn of ${spec.id} failed; the next one retries`, error)
  })
  const succeeded = Effect.gen(function* () {
    if (stoppedBy !== undefined && (yield* endOutage(supervisor, stoppedBy))) stoppedBy = undefined
    if (failing === undefined) return
    failing = undefined
    yield* Effect.logInfo(`turn of ${spec.id} succeeds again`)
  })
  const { lastRun, publish } = makePublished()
  const turn = (cause: LastRun["cause"]) =>
    publish(cause, spec.turn).pipe(
      Effect.matchEffect({ onFailure: failed, onSuccess: () => succeeded }),
      // An idle turn would send spans forever. Work for a payment continues that payment's trace.
      Effect.withTracerEnabled(false)
    )
  const { gather } = spec
  const debounced = gather === undefined ? Effect.void : Effect.andThen(Effect.sleep(gather), Queue.clear(wakes))
  const run = Effect.gen(function* () {
    yield* turn("start")
    while (true) {
      const woken = yield* Effect.timeoutOption(Queue.take(wakes), yield* Effect.flatMap(every, restOf))
      if (Option.isSome(woken)) yield* debounced
      yield* turn(Option.isSome(woken) ? "wake" : "timer")
    }
  })
  yield* supervisor.start({ id: spec.id, restart: "permanent", run, lastRun })
  return { wake: Effect.asVoid(Queue.offer(wakes, undefined)) }
})
