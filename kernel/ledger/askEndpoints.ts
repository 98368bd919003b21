// Retries and failover of repeatable calls among endpoints as providers run them: in turn, the next one as soon as one
// fails or is slow, and all of them again, after a pause, while their answer was a refusal to work just now (429, 5xx).
// A provider that names its pause (`Retry-After`) is not called before. All of it ends within the timeout of one call,
// so a caller waits no longer than for a silent endpoint.
import { Clock, Data, Duration, Effect, Exit, Fiber, Option, Random } from "effect"
import type { LedgerUnavailable } from "./LedgerUnavailable.ts"

/** Rounds after the first. */
const retriesMax = 3
/** The first pause at most; each later one is twice as long. */
const firstPauseMillis = 150
/** The next endpoint is called beside a silent one after this share of a call's timeout, at most this long. */
const slowShare = 4
const slowMillisMax = 1_000

/** Why a question to one endpoint has no answer. */
export class CallError extends Data.TaggedError("CallError")<{
  readonly unavailable: LedgerUnavailable
  /** The endpoint refused to work just now: the same question may be answered a moment later. */
  readonly isPassing: boolean
  /** The pause it requests. */
  readonly retryAfterMillis: number
}> {}

export interface Asked<A> {
  readonly ask: Effect.Effect<A, CallError>
  /** Called when an endpoint had not answered and the next was called. */
  readonly slow: Effect.Effect<void>
}

/** One after another until one answers; one that is slow may still win. */
const inTurn = <A>(asked: ReadonlyArray<Asked<A>>, patience: Duration.Duration): Effect.Effect<A, CallError> => {
  const [first, ...others] = asked
  if (others.length === 0) return first!.ask
  return Effect.scoped(firstOr(first!, inTurn(others, patience), patience))
}

const firstOr = Effect.fnUntraced(function* <A>(
  first: Asked<A>,
  next: Effect.Effect<A, CallError>,
  patience: Duration.Duration
) {
  const fiber = yield* Effect.forkScoped(first.ask)
  const exit = yield* Effect.timeoutOption(Fiber.await(fiber), patience)
  if (Option.isSome(exit)) return Exit.isSuccess(exit.value) ? exit.value.value : yield* next
  yield* first.slow
  return yield* Effect.raceAll([Fiber.join(fiber), next])
})

/** Waits before another attempt; fails with the last error when there is to be none. */
const pauseAfter = Effect.fnUntraced(function* (
  { isPassing, retryAfterMillis, unavailable }: CallError,
  retry: number,
  startedAt: bigint,
  millis: number
) {
  const jittered = firstPauseMillis * 2 ** retry * (0.5 + (yield* Random.next) / 2)
  const pause = Math.max(jittered, retryAfterMillis)
  const elapsed = Number((yield* Clock.monotonicTimeNanos) - startedAt) / 1_000_000
  if (!isPassing || retry === retriesMax || elapsed + pause >= millis) return yield* unavailable
  yield* Effect.sleep(pause)
})

/** The first answer of any endpoint. `round` names the endpoints in the current order. */
export const askEndpoints = <A>(
  round: Effect.Effect<ReadonlyArray<Asked<A>>>,
  timeout: Duration.Duration
): Effect.Effect<A, LedgerUnavailable> =>
  Effect.flatMap(Clock.monotonicTimeNanos, (startedAt) => {
    const millis = Duration.toMillis(timeout)
    const patience = Duration.millis(Math.min(millis / slowShare, slowMillisMax))
    const attempt = (retry: number): Effect.Effect<A, LedgerUnavailable> =>
      Effect.catch(
        Effect.flatMap(round, (asked) => inTurn(asked, patience)),
        (error) => again(error, retry)
      )
    const again = (failure: CallError, retry: number) =>
      Effect.andThen(
        pauseAfter(failure, retry, startedAt, millis),
        Effect.suspend(() => attempt(retry + 1))
      )
    return attempt(0)
  })
