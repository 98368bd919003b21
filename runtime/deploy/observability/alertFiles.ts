// The alerts as the files that Prometheus and promtool read, as data.
import type { Alert, Series } from "./Alert.ts"
import { alerts } from "./alerts.ts"

/** Target of a pager's links: set the address of your copy of `examples/guides/runbook.md` here, and write again. */
const runbook = "https://tollkeeper.example/guides/runbook.md"

const annotationsOf = ({ name, summary }: Alert) => ({ summary, runbook_url: `${runbook}#${name.toLowerCase()}` })

/** The file of rules, as data. */
export const rulesFile = {
  groups: [
    {
      name: "tollkeeper",
      rules: alerts.map((alert) => ({
        alert: alert.name,
        expr: alert.expr,
        for: alert.for,
        labels: { severity: alert.severity },
        annotations: annotationsOf(alert)
      }))
    }
  ]
}

/** When every case is evaluated: half an hour after its series begins. */
const readAt = "30m"

const caseOf = (
  alert: Alert,
  name: string,
  series: ReadonlyArray<Series>,
  expected: ReadonlyArray<object>,
  time = readAt
) => ({
  name,
  interval: "1m",
  input_series: series.map(([one, values]) => ({ series: one, values })),
  alert_rule_test: [{ eval_time: time, alertname: alert.name, exp_alerts: expected }]
})

/** A ramp of events from the first sample on, as the cases of counters have it. */
const ramp = "0+1x60"

/**
 * The same series with only its first event: before it, the counter is 0 or absent. It happens ten minutes before the
 * evaluation.
 */
const firstEvents = (alert: Alert) =>
  alert.expr.includes("increase(")
    ? (["0x20 1x40", "_x20 1x40"] as const).map((values) =>
        caseOf(
          alert,
          `${alert.name} fires at the first event, ${values.startsWith("_") ? "absent" : "at 0"} before it`,
          alert.fires.series.map(([series, sent]) => [series, sent === ramp ? values : sent]),
          [expected(alert)],
          "29m"
        )
      )
    : []

const expected = (alert: Alert) => ({
  exp_labels: { severity: alert.severity, ...alert.fires.labels },
  exp_annotations: annotationsOf(alert)
})

/**
 * The cases of `promtool test rules`, as data: each alert fires in its first case and is silent in the other, and an
 * alert on a counter fires at its first event.
 */
export const casesFile = {
  rule_files: ["alerts.yml"],
  evaluation_interval: "1m",
  tests: alerts.flatMap((alert) => [
    caseOf(alert, `${alert.name} fires`, alert.fires.series, [expected(alert)]),
    ...firstEvents(alert),
    caseOf(alert, `${alert.name} is silent`, alert.calm, [])
  ])
}
