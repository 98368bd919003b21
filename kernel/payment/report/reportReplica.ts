// Polls the configured read replica, if any, and reports its lag in readiness and metrics. An unavailable replica does
// not degrade the service: reads go to the primary until it is back.
import { Effect } from "effect"
import { reconciler } from "../../actor/Actor.ts"
import { ReadReplica } from "../../database/ReadReplica.ts"
import { Health, type HealthReport } from "../../health/Health.ts"
import { measure } from "../../telemetry/Measure.ts"
import { storage } from "../../telemetry/metrics.ts"

const every = "2 seconds"

/** Watches and reports while the Scope lives. */
export const reportReplica = Effect.gen(function* () {
  const { poll: read, status } = yield* ReadReplica
  if (read === undefined) return
  const health = yield* Health
  yield* health.register(
    "readReplica",
    Effect.sync((): HealthReport => {
      const { detail, isFit, lagMillis } = status()
      return {
        state: isFit ? "ready" : "degraded",
        ...(detail === undefined ? {} : { detail }),
        figures: { lagMillis: lagMillis ?? null }
      }
    })
  )
  yield* reconciler({
    id: "read-replica",
    every,
    turn: Effect.gen(function* () {
      yield* read
      const { isFit, lagMillis } = status()
      yield* measure(storage.replicaUsed, isFit ? 1 : 0)
      if (lagMillis !== undefined) yield* measure(storage.replicaLag, lagMillis / 1_000)
    })
  })
})
