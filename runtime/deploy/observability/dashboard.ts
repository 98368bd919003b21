// The Grafana dashboard, generated from the metrics registry: a row for each group, a panel for each metric by its kind
// and unit. So every metric has a panel, and no panel shows an unknown metric.
import type { Measure, Unit } from "../../../kernel/telemetry/Measure.ts"
import {
  caches,
  host,
  ledger,
  money,
  reconciling,
  rotating,
  settling,
  storage,
  traffic
} from "../../../kernel/telemetry/metrics.ts"
import { all } from "./registry.ts"

type Panel = Readonly<Record<string, unknown>>

const datasource = { type: "prometheus", uid: "${datasource}" }
const columns = 24
const [width, height] = [8, 7]

/** Units as Grafana names them. */
const units: Readonly<Record<Unit, string>> = {
  count: "short",
  seconds: "s",
  stroops: "short",
  bytes: "bytes",
  ledger: "none",
  "yes or no": "bool_yes_no"
}

const here = '{instance=~"$instance"}'
const byOf = (labels: ReadonlyArray<string>) => ["instance", ...labels].join(", ")
const legendOf = (labels: ReadonlyArray<string>) => labels.map((label) => `{{${label}}}`).join(" ") || "{{instance}}"

/** A panel's PromQL. */
const targetsOf = ({
  kind,
  labels,
  name
}: Measure): ReadonlyArray<{ readonly expr: string; readonly legend: string }> => {
  switch (kind) {
    case "gauge":
      return [{ expr: `${name}${here}`, legend: legendOf(labels) }]
    case "counter":
      return [{ expr: `sum by (${byOf(labels)}) (rate(${name}${here}[$__rate_interval]))`, legend: legendOf(labels) }]
    case "histogram":
      return [0.5, 0.95, 0.99].map((quantile) => ({
        expr:
          `histogram_quantile(${quantile}, sum by (${[...labels, "le"].join(", ")}) ` +
          `(rate(${name}_bucket${here}[$__rate_interval])))`,
        legend: `p${quantile * 100} ${legendOf(labels)}`
      }))
  }
}

const titleOf = ({ kind, name }: Measure): string => {
  const words = name
    .replace(/^(tollkeeper|process)_/, "")
    .replace(/_(total|info)$/, "")
    .replaceAll("_", " ")
  return kind === "counter" ? `${words} a second` : words
}

const panelOf = (measure: Measure, id: number, x: number, y: number): Panel => ({
  id,
  type: measure.kind === "gauge" && measure.unit === "yes or no" ? "stat" : "timeseries",
  title: titleOf(measure),
  description: measure.help,
  datasource,
  gridPos: { x, y, w: width, h: height },
  fieldConfig: {
    defaults: {
      unit: measure.kind === "counter" && measure.unit === "count" ? "cps" : units[measure.unit],
      ...(measure.kind === "gauge" ? {} : { min: 0 })
    },
    overrides: []
  },
  options: { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi", sort: "desc" } },
  targets: targetsOf(measure).map(({ expr, legend }, index) => ({
    refId: String.fromCharCode(65 + index),
    datasource,
    expr,
    legendFormat: legend,
    range: true
  }))
})

const kernel: ReadonlyArray<readonly [title: string, group: Readonly<Record<string, Measure>>]> = [
  ["Requests and payments", traffic],
  ["Settlements and channels", settling],
  ["Signing keys", rotating],
  ["Sponsor and budget", money],
  ["Ledger", ledger],
  ["Database and journal", storage],
  ["Caches", caches],
  ["Reconcilers", reconciling],
  ["Process", host]
]

const rowsOf = (): ReadonlyArray<readonly [title: string, measures: ReadonlyArray<Measure>]> => {
  const rows = kernel.map(([title, group]) => [title, Object.values(group)] as const)
  const shown = new Set(rows.flatMap(([, measures]) => measures))
  return [...rows, ["Plugins", all.filter((measure) => !shown.has(measure))]]
}

const panels = (): ReadonlyArray<Panel> => {
  const made: Array<Panel> = []
  let y = 0
  for (const [title, measures] of rowsOf()) {
    made.push({ id: made.length + 1, type: "row", title, collapsed: false, gridPos: { x: 0, y, w: columns, h: 1 } })
    y += 1
    measures.forEach((measure, index) => {
      const place = index % (columns / width)
      made.push(panelOf(measure, made.length + 1, place * width, y + Math.floor(index / (columns / width)) * height))
    })
    y += Math.ceil(measures.length / (columns / width)) * height
  }
  return made
}

const variables = [
  { name: "datasource", type: "datasource", query: "prometheus", label: "Data source" },
  {
    name: "instance",
    type: "query",
    label: "Instance",
    datasource,
    query: "label_values(tollkeeper_build_info, instance)",
    refresh: 2,
    multi: true,
    includeAll: true,
    current: { text: "All", value: "$__all" }
  }
]

export const dashboard = {
  uid: "tollkeeper",
  title: "Tollkeeper",
  description: "Generated from the program's metrics registry; each panel has a description.",
  tags: ["tollkeeper"],
  schemaVersion: 39,
  version: 1,
  editable: true,
  refresh: "30s",
  time: { from: "now-6h", to: "now" },
  timezone: "utc",
  templating: { list: variables },
  panels: panels()
}
