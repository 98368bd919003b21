// Compares each condition of the status page with its alert: the same metric, the same time, and the alert's own cases,
// minute by minute. Stored data is bounded.
import type { Metric } from "effect"
import { describe, expect, it } from "vitest"
import type { Series } from "../../../../runtime/deploy/observability/Alert.ts"
import { metricsIn } from "../../../support/metricsIn.ts"
import { alerts } from "../../../../runtime/deploy/observability/alerts.ts"
import { all } from "../../../../runtime/deploy/observability/registry.ts"
import { type Condition, conditions, summaryOf } from "../../../../plugins/dashboard/status/conditions.ts"
import { watchConditions } from "../../../../plugins/dashboard/status/watchConditions.ts"

type Snapshot = Metric.Metric.Snapshot

const minuteMillis = 60_000
/** When promtool reads its cases: half an hour into them. */
const minutes = 30

/** The value of a series at a minute: `start+stepxCOUNT` or `valuexCOUNT`. */
const valueAt = (values: string, minute: number): number => {
  const [, start = "0", step = "0"] = /^(-?\d+)([+-]\d+)?x\d+$/.exec(values)!
  return Number(start) + Number(step) * minute
}

const snapshotsAt = (series: ReadonlyArray<Series>, minute: number, labels: Readonly<Record<string, string>>) =>
  series.map(([text, values]) => {
    const [, id = "", inner = ""] = /^(\w+)\{(.*)\}$/.exec(text)!
    const attributes = Object.fromEntries([...inner.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key, value]))
    const isCounter = all.find(({ name }) => name === id)?.kind === "counter"
    const value = valueAt(values, minute)
    return {
      id,
      type: isCounter ? "Counter" : "Gauge",
      attributes: { ...attributes, ...labels },
      state: isCounter ? { count: value } : { value }
    } as unknown as Snapshot
  })

/** Whether the condition holds at the end of half an hour of these series, a reading every half minute. */
const holdsAfter = (condition: Condition, series: ReadonlyArray<Series>): boolean => {
  const watch = watchConditions([condition])
  const labels = "metric" in condition ? (condition.labels ?? {}) : {}
  for (let half = 0; half <= minutes * 2; half++)
    watch.read(half * 30_000, snapshotsAt(series, Math.floor(half / 2), labels))
  return watch.waiting().some(({ minute }) => minute === minutes * minuteMillis)
}

const secondsOf = (text: string): number => Number.parseInt(text) * 60

describe("a condition of the status page", () => {
  it.each(conditions.map((condition) => [condition.alert, condition] as const))(
    "is that of the alert %s, in both of its cases",
    (name, condition) => {
      const alert = alerts.find((one) => one.name === name)!
      const { name: metric } = "metric" in condition ? condition.metric : condition.counter
      expect(metricsIn(alert.expr)).toEqual([metric])
      expect(condition.forSeconds).toBe(secondsOf(alert.for))
      expect(holdsAfter(condition, alert.fires.series)).toBe(true)
      expect(holdsAfter(condition, alert.calm)).toBe(false)
    }
  )

  it("has a cause of its own and a sentence without figures, keys or addresses", () => {
    expect(new Set(conditions.map(({ cause }) => cause)).size).toBe(conditions.length)
    for (const { cause, summary } of conditions) {
      expect(cause).toMatch(/^[a-z_]{4,32}$/)
      expect(summary).toMatch(/^[A-Z][a-z' ,;:-]+\.$/i)
      expect(summaryOf(cause)).toBe(summary)
    }
  })
})

const level = (bound: number, forSeconds: number): Condition => ({
  ...(conditions.find(({ cause }) => cause === "settlements_unresolved") as Condition & { readonly is: "above" }),
  bound,
  forSeconds
})
const reading = (value: number) => snapshotsAt([["tollkeeper_settlements_unresolved{}", `${value}x1`]], 0, {})

describe("watching conditions", () => {
  it("gives the minutes from the first reading that showed it, once it has held for its time", () => {
    const watch = watchConditions([level(0, 120)])
    for (let half = 0; half < 4; half++) watch.read(half * 30_000, reading(1))
    expect(watch.waiting()).toEqual([])
    watch.read(120_000, reading(1))
    expect(watch.waiting().map(({ minute }) => minute)).toEqual([0, 60_000, 120_000])
  })

  it("begins anew after a reading that does not show it", () => {
    const watch = watchConditions([level(0, 120)])
    for (let half = 0; half < 20; half++) watch.read(half * 30_000, reading(half % 4 === 3 ? 0 : 1))
    expect(watch.waiting()).toEqual([])
  })

  it("keeps what was not written, a day of it at most, and forgets what was", () => {
    const watch = watchConditions([level(0, 0)])
    for (let minute = 0; minute < 2_000; minute++) watch.read(minute * minuteMillis, reading(1))
    const waiting = watch.waiting()
    expect(waiting).toHaveLength(1_440)
    expect(waiting.at(-1)!.minute).toBe(1_999 * minuteMillis)
    watch.written(waiting)
    expect(watch.waiting()).toEqual([])
  })

  it("counts what a counter grew by in ten minutes, and not before", () => {
    const [errors] = conditions.filter(({ cause }) => cause === "internal_errors")
    const watch = watchConditions([errors!])
    const series = (count: number) =>
      snapshotsAt([['tollkeeper_http_requests_total{status="500"}', `${count}x1`]], 0, {})
    for (let minute = 0; minute < 5; minute++) watch.read(minute * minuteMillis, series(3))
    expect(watch.waiting()).toEqual([])
    for (let minute = 5; minute < 40; minute++) watch.read(minute * minuteMillis, series(4))
    const held = watch.waiting().map(({ minute }) => minute / minuteMillis)
    expect([held[0], held.at(-1)]).toEqual([5, 14])
  })
})
