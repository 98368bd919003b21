// Readiness of the ledger clock: the newest ledger, its age, this machine's clock skew, and the inclusion fee. Degraded
// while no ledger arrives, the clock is wrong, or endpoints contradict each other; readiness itself never depends on it
// (rules 2).
import { Effect } from "effect"
import { Health, type HealthReport } from "../health/Health.ts"
import { LedgerClock } from "./LedgerClock.ts"
import { LedgerRpc } from "./LedgerRpc.ts"

const oneDecimal = (value: number): number => Math.round(value * 10) / 10

/** Reports while the Scope lives. */
export const reportClock = Effect.gen(function* () {
  const health = yield* Health
  const clock = yield* LedgerClock
  const rpc = yield* LedgerRpc
  const report = Effect.gen(function* () {
    const { ageSeconds, isFresh, isSkewed, skewSeconds, time } = yield* clock.status
    const { asked } = yield* clock.fees
    const distrusted = yield* rpc.distrusted
    const errors = [
      ...distrusted.map((endpoint) => `endpoint ${endpoint + 1} contradicts another endpoint about settlements`),
      ...(time === undefined ? ["no ledger has been read yet"] : isFresh ? [] : ["the ledger does not advance"]),
      ...(isSkewed ? ["this machine's clock and the ledger's differ"] : [])
    ]
    return {
      state: errors.length === 0 ? "ready" : "degraded",
      ...(errors.length === 0 ? {} : { detail: errors.join("; ") }),
      figures: {
        sequence: time?.sequence ?? null,
        ageSeconds: time === undefined ? null : oneDecimal(ageSeconds),
        clockSkewSeconds: skewSeconds === undefined ? null : oneDecimal(skewSeconds),
        inclusionFeeStroops: asked.toString()
      }
    } satisfies HealthReport
  })
  yield* health.register("ledger", report)
})
