// Contains failures of analytics: a failure, even a defect, is counted, shown in readiness' detail and retried by the
// next turn; it never counts against the process (S143).
import { Cause, Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Health } from "../../../kernel/health/Health.ts"
import { measure } from "../../../kernel/telemetry/Measure.ts"
import { metrics } from "../metrics.ts"

/** Recording failed; the next turn retries. */
class RecordingFailed extends Schema.TaggedError<RecordingFailed>()("RecordingFailed", {
  cause: Schema.Defect()
}) {}

export class Containment extends Context.Service<
  Containment,
  {
    /** Maps every failure to `RecordingFailed`; readiness shows `what` until it succeeds. */
    readonly contained: <A, E, R>(what: string, work: Effect.Effect<A, E, R>) => Effect.Effect<A, RecordingFailed, R>
  }
>()("tollkeeper/analytics/Containment") {
  static readonly layer = Layer.effect(
    Containment,
    Effect.gen(function* () {
      const failing = new Set<string>()
      // Creates the series, so that an alert detects the first failure.
      yield* measure(metrics.failures, 0)
      yield* (yield* Health).register(
        "analytics",
        Effect.sync(() =>
          failing.size === 0
            ? { state: "ready" as const }
            : { state: "degraded" as const, detail: `recording fails and is retried: ${[...failing].join(", ")}` }
        )
      )
      return Containment.of({
        contained: (what, work) =>
          work.pipe(
            Effect.tap(() => Effect.sync(() => failing.delete(what))),
            Effect.catchCause((cause) => {
              if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause as Cause.Cause<never>)
              failing.add(what)
              return Effect.andThen(
                measure(metrics.failures, 1),
                Effect.fail(new RecordingFailed({ cause: Cause.squash(cause) }))
              )
            })
          )
      })
    })
  )
}

/**
 * Ensures one writer of analytics at a time over all replicas: an advisory lock that ends with the caller's
 * transaction.
 */
export const acquireAnalyticsLock = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`select pg_advisory_xact_lock(724402403)`
)
