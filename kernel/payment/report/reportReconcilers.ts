// The reconcilers' last runs, for readiness and for operators: time, cause, duration and outcome. The log has the
// causes of a failure, because readiness is public.
import { Effect } from "effect"
import { type ActorState, type LastRun, Supervisor } from "../../actor/Supervisor.ts"
import { Health, type HealthReport } from "../../health/Health.ts"
import { monotonicMillis } from "../../time/monotonicMillis.ts"

/** Maximum number of reconcilers in a report. */
const shownMax = 64

/** One run as text, such as `succeeded 2 s ago by timer in 12 ms`. */
const sentenceOf = ({ cause, durationMillis, endedMonotonicMillis, outcome }: LastRun, now: number): string => {
  const ageSeconds = Math.max(0, Math.round((now - endedMonotonicMillis) / 1_000))
  return `${outcome} ${ageSeconds} s ago by ${cause} in ${durationMillis} ms`
}

interface ReconcilerRun {
  readonly actor: string
  readonly isFailing: boolean
  readonly sentence: string
}

/** Each reconciler's last run, failed ones first. */
export const lastRunsOf = (actors: ReadonlyArray<ActorState>, now: number): ReadonlyArray<ReconcilerRun> =>
  actors
    .flatMap(({ actor, lastRun }) =>
      lastRun === undefined
        ? []
        : [{ actor, isFailing: lastRun.outcome === "failed", sentence: sentenceOf(lastRun, now) }]
    )
    .toSorted((a, b) => Number(b.isFailing) - Number(a.isFailing) || (a.actor < b.actor ? -1 : 1))

const reportOf = (runs: ReadonlyArray<ReconcilerRun>): HealthReport => {
  const failing = runs.filter(({ isFailing }) => isFailing).map(({ actor }) => actor)
  return {
    state: failing.length === 0 ? "ready" : "degraded",
    ...(failing.length === 0 ? {} : { detail: `the last run failed: ${failing.join(", ")}` }),
    figures: Object.fromEntries(runs.slice(0, shownMax).map(({ actor, sentence }) => [actor, sentence]))
  }
}

/** Registers the readiness report `reconcilers` while the Scope lives. */
export const reportReconcilers = Effect.gen(function* () {
  const { actors } = yield* Supervisor
  const report = Effect.gen(function* () {
    return reportOf(lastRunsOf(yield* actors, yield* monotonicMillis))
  })
  yield* (yield* Health).register("reconcilers", report)
})
