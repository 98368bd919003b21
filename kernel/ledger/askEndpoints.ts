// Retries and failover of repeatable calls among endpoints of providers. We call them in turn, the next one as soon as
// one fails or is slow. After a pause we call all of them again, while they refuse to work just now (429, 5xx). A
// provider that requests a pause (`Retry-After`) is not called before its end. Everything ends within the timeout of
// one call, so a caller waits no longer than for a silent endpoint.
import { Clock, Data, Duration, Effect, Exit, Fiber, Option, Random, Schedule } from "effect"
import type { LedgerUnavailable } from "./LedgerRpc.ts"

/** Rounds after the first. */
const retriesMax = 3
/** Maximum first pause; each later one is twice as long. */
const firstPauseMillis = 150
/**
 * The next endpoint is called in addition to a silent one after this fraction (one in four) of a call's timeout, at
 * most this long.
 */
const slowShare = 4
const slowMillisMax = 1_000

/** The reason why a request to one endpoint failed. */
export class CallError extends Data.TaggedError("CallError")<{
  readonly unavailable: LedgerUnavailable
  /** The endpoint refused to work just now: it may answer the same request a moment later. */
  readonly isPassing: boolean
  /** The requested pause. */
  readonly retryAfterMillis: number
}> {}

interface EndpointCall<A> {
  readonly ask: Effect.Effect<A, CallError>
  /** Called when an endpoint had not answered yet and the next one was called. */
  readonly slow: Effect.Effect<void>
}

/** Calls one after another until one answers; a slow endpoint may still win. */
const inTurn = <A>(calls: ReadonlyArray<EndpointCall<A>>, patience: Duration.Duration): Effect.Effect<A, CallError> => {
  const [first, ...others] = calls
  if (others.length === 0) return first!.ask
  return Effect.scoped(firstOr(first!, inTurn(others, patience), patience))
}

const firstOr = Effect.fnUntraced(function* <A>(
  first: EndpointCall<A>,
  next: Effect.Effect<A, CallError>,
  patience: Duration.Duration
) {
  const fiber = yield* Effect.forkScoped(first.ask)
  const exit = yield* Effect.timeoutOption(Fiber.await(fiber), patience)
  if (Option.isSome(exit)) return Exit.isSuccess(exit.value) ? exit.value.value : yield* next
  yield* first.slow
  return yield* Effect.raceAll([Fiber.join(fiber), next])
})

const doubled = Schedule.setInputType<CallError>()(Schedule.exponential(firstPauseMillis))

/** Between half and all of each pause, and no shorter than the provider requests. */
const jittered = Schedule.modifyDelay(doubled, ({ duration, input: { retryAfterMillis } }) =>
  Effect.map(Random.next, (random) => Math.max(Duration.toMillis(duration) * (0.5 + random / 2), retryAfterMillis))
)

/** The pauses before later rounds; each ends within `millis` after `startedAt`. */
const pauses = (startedAt: bigint, millis: number) =>
  Schedule.while(jittered, ({ attempt, duration, input: { isPassing } }) =>
    Effect.map(Clock.monotonicTimeNanos, (now) => {
      const elapsed = Number(now - startedAt) / 1_000_000
      return isPassing && attempt <= retriesMax && elapsed + Duration.toMillis(duration) < millis
    })
  )

/**
 * The first answer of any endpoint. `round` names the endpoints in the current order. The schedule begins with the
 * first failure, so a call without a failure, as nearly all are, costs nothing extra.
 */
export const askEndpoints = <A>(
  round: Effect.Effect<ReadonlyArray<EndpointCall<A>>>,
  timeout: Duration.Duration
): Effect.Effect<A, LedgerUnavailable> =>
  Effect.flatMap(Clock.monotonicTimeNanos, (startedAt) => {
    const millis = Duration.toMillis(timeout)
    const patience = Duration.millis(Math.min(millis / slowShare, slowMillisMax))
    const once = Effect.flatMap(round, (calls) => inTurn(calls, patience))
    const again = (error: CallError) => {
      let failed: CallError | undefined = error
      const next = Effect.suspend(() => {
        if (failed === undefined) return once
        const first = failed
        failed = undefined
        return Effect.fail(first)
      })
      return Effect.retry(next, pauses(startedAt, millis))
    }
    return Effect.catch(once, (error) => Effect.mapError(again(error), ({ unavailable }) => unavailable))
  })
