// Evaluates the conditions of incidents over readings of the process's metrics, and returns the minutes during which
// each held. A condition counts once it has held for its required time, from the first reading that showed it. Pure,
// except for its state: the samples of one window, and the minutes that are not written yet, at most one day for each
// cause.
import type { Metric } from "effect"
import { type Condition, conditions, windowSeconds } from "./conditions.ts"

/** One row of the incident table. */
interface IncidentMinute {
  readonly cause: string
  /** Start of the minute in Unix milliseconds. */
  readonly minute: number
}

type Snapshots = ReadonlyArray<Metric.Metric.Snapshot>
type Labels = Readonly<Record<string, string>>

const minuteMillis = 60_000
/** Maximum number of minutes of one cause that wait for the database. */
const waitingMax = 1_440

const seriesOf = (snapshots: Snapshots, name: string, labels: Labels = {}): ReadonlyArray<number> =>
  snapshots.flatMap((one) => {
    if (one.id !== name || !Object.entries(labels).every(([key, value]) => one.attributes?.[key] === value)) return []
    if (one.type === "Gauge") return [Number(one.state.value)]
    return one.type === "Counter" ? [Number(one.state.count)] : []
  })

const sumOf = (snapshots: Snapshots, name: string, labels: Labels): number =>
  seriesOf(snapshots, name, labels).reduce((sum, one) => sum + one, 0)

/** The sums that the growth conditions compare, from one reading. */
interface Sample {
  readonly at: number
  readonly sums: ReadonlyMap<Condition, readonly [own: number, all: number]>
}

const sampleOf = (at: number, snapshots: Snapshots, watched: ReadonlyArray<Condition>): Sample => ({
  at,
  sums: new Map(
    watched.flatMap((condition) => {
      if (!("counter" in condition)) return []
      const { counter, labels, shareOf } = condition
      const all = shareOf === undefined ? 0 : sumOf(snapshots, counter.name, shareOf)
      return [[condition, [sumOf(snapshots, counter.name, labels), all]] as const]
    })
  )
})

const holds = (condition: Condition, snapshots: Snapshots, first: Sample, last: Sample): boolean => {
  if (!("counter" in condition)) {
    const { bound, is, labels, metric } = condition
    return seriesOf(snapshots, metric.name, labels).some((value) => (is === "above" ? value > bound : value < bound))
  }
  const [before, after] = [first.sums.get(condition)!, last.sums.get(condition)!]
  const [own, all] = [after[0] - before[0], after[1] - before[1]]
  return condition.shareOf === undefined ? own > condition.above : all > 0 && own / all > condition.above
}

/** Holds the state of one process, which starts empty. */
export const watchConditions = (watched: ReadonlyArray<Condition> = conditions) => {
  const since = new Map<Condition, number>()
  const waiting = new Map<string, IncidentMinute>()
  let samples: ReadonlyArray<Sample> = []

  const add = (cause: string, minute: number) => {
    const mine = [...waiting.values()].filter((one) => one.cause === cause)
    if (mine.length >= waitingMax) waiting.delete(`${cause} ${mine[0]!.minute}`)
    waiting.set(`${cause} ${minute}`, { cause, minute })
  }

  /** Processes one reading, taken at `now` in Unix milliseconds. */
  const read = (now: number, snapshots: Snapshots): void => {
    const last = sampleOf(now, snapshots, watched)
    samples = [...samples.filter(({ at }) => now - at <= windowSeconds * 1_000), last]
    for (const condition of watched) {
      if (!holds(condition, snapshots, samples[0]!, last)) {
        since.delete(condition)
        continue
      }
      const began = since.get(condition) ?? now
      since.set(condition, began)
      if (now - began < condition.forSeconds * 1_000) continue
      const floor = (at: number) => at - (at % minuteMillis)
      // Reports recent minutes again. Writing a minute twice has no effect.
      const from = Math.max(floor(began), floor(now) - (condition.forSeconds + 60) * 1_000)
      for (let minute = from; minute <= floor(now); minute += minuteMillis) add(condition.cause, minute)
    }
  }

  return {
    read,
    /** Minutes that are not written yet, oldest first. */
    waiting: (): ReadonlyArray<IncidentMinute> => [...waiting.values()],
    written: (minutes: ReadonlyArray<IncidentMinute>): void => {
      for (const { cause, minute } of minutes) waiting.delete(`${cause} ${minute}`)
    }
  }
}
