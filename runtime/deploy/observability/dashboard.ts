// The Grafana dashboard, generated from the metrics registry. The first row answers whether money moves, whether
// anything is stuck and which resources run out, with the alerts' own thresholds. A row for each group follows, with a
// panel for each metric by its kind and unit. So every metric has a panel, and no panel shows an unknown metric. Titles
// are the first words of each metric's help; stroops are shown as XLM.
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
  stroops: "suffix: XLM",
  bytes: "bytes",
  ledger: "none",
  "yes or no": "bool_yes_no"
}

const stroopsPerXlm = 10_000_000

const here = '{instance=~"$instance"}'
const byOf = (labels: ReadonlyArray<string>) => ["instance", ...labels].join(", ")
const legendOf = (labels: ReadonlyArray<string>) => labels.map((label) => `{{${label}}}`).join(" ") || "{{instance}}"

/** A panel's PromQL. */
const targetsOf = ({
  kind,
  labels,
  name,
  unit
}: Measure): ReadonlyArray<{ readonly expr: string; readonly legend: string }> => {
  switch (kind) {
    case "gauge":
      return [{ expr: `${name}${here}${unit === "stroops" ? ` / ${stroopsPerXlm}` : ""}`, legend: legendOf(labels) }]
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

const titleMax = 72

/** The first words of a metric's help, without its unit. */
const titleOf = ({ help, kind }: Measure): string => {
  const [first = ""] = help.split(/[;.:](?:\s|$)|, (?=stroops|seconds|bytes|by |1 )/)
  const words = first
    .replace(/^1 (?:if|while) (.)/, (_, letter: string) => letter.toUpperCase())
    .replace(/, else 0$/, "")
  const title = words.length <= titleMax ? words : `${words.slice(0, titleMax).replace(/\s\S*$/, "")} …`
  return kind === "counter" ? `${title}, a second` : title
}

/** A figure of the first row: green, and another color from each threshold on. */
interface Figure {
  readonly title: string
  readonly description: string
  readonly expr: string
  readonly unit: string
  /** Ascending values, each with the color from there on. The first value is null. */
  readonly steps: ReadonlyArray<readonly [value: number | null, color: "green" | "orange" | "red"]>
}

/** Does money move, is anything stuck, which resources run out? The thresholds are the same as in `alerts.ts`. */
const figures: ReadonlyArray<Figure> = [
  {
    title: "Payments settled a minute",
    description: "Is money moving: successful answers to settle, all replicas.",
    expr:
      '60 * sum(rate(tollkeeper_payment_answers_total{operation="settle", reason="ok", ' +
      'instance=~"$instance"}[$__rate_interval]))',
    unit: "short",
    steps: [[null, "green"]]
  },
  {
    title: "Payments refused a minute",
    description: "Refusals of verify and settle; `tollkeeper settlements list --which refused` names reasons and keys.",
    expr: `60 * sum(rate(tollkeeper_payment_refusals_total${here}[$__rate_interval]))`,
    unit: "short",
    steps: [[null, "green"]]
  },
  {
    title: "Settling possible",
    description: "0 while every settle is answered busy; see TollkeeperSettlingUnavailable.",
    expr: `min(tollkeeper_settling_available${here})`,
    unit: "bool_yes_no",
    steps: [
      [null, "red"],
      [1, "green"]
    ]
  },
  {
    title: "Oldest open settlement",
    description: "Is anything stuck; see TollkeeperSettlementOpenLong in the runbook.",
    expr: `max(tollkeeper_settlements_oldest_open_seconds${here})`,
    unit: "s",
    steps: [
      [null, "green"],
      [900, "red"]
    ]
  },
  {
    title: "Unresolved settlements",
    description: "Settlements that only an operator can resolve.",
    expr: `max(tollkeeper_settlements_unresolved${here})`,
    unit: "short",
    steps: [
      [null, "green"],
      [1, "red"]
    ]
  },
  {
    title: "Payments waiting for a channel",
    description: "On the replica with the longest queue.",
    expr: `max(sum by (instance) (tollkeeper_queue_waiting${here}))`,
    unit: "short",
    steps: [
      [null, "green"],
      [51, "orange"]
    ]
  },
  {
    title: "Payments the sponsor still pays for",
    description: "Remaining payments, each at its maximum cost.",
    expr: `min(tollkeeper_sponsor_payments_left${here})`,
    unit: "short",
    steps: [
      [null, "red"],
      [1, "orange"],
      [500, "green"]
    ]
  },
  {
    title: "Least budget left today",
    description: "Of the bound of fees that is used most, as a share.",
    expr: `min(tollkeeper_budget_left_stroops${here} / tollkeeper_budget_max_stroops${here})`,
    unit: "percentunit",
    steps: [
      [null, "red"],
      [0.000_001, "orange"],
      [0.2, "green"]
    ]
  }
]

const figuresAcross = 4

const figurePanel = ({ description, expr, steps, title, unit }: Figure, index: number, y: number): Panel => ({
  id: index + 2,
  type: "stat",
  title,
  description,
  datasource,
  gridPos: {
    x: (index % figuresAcross) * (columns / figuresAcross),
    y: y + Math.floor(index / figuresAcross) * 4,
    w: columns / figuresAcross,
    h: 4
  },
  fieldConfig: {
    defaults: { unit, thresholds: { mode: "absolute", steps: steps.map(([value, color]) => ({ value, color })) } },
    overrides: []
  },
  options: { colorMode: "background", graphMode: "area", reduceOptions: { calcs: ["lastNotNull"] } },
  targets: [{ refId: "A", datasource, expr, range: true }]
})

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
  const first = "Is money moving, is anything stuck, what is running out"
  const made: Array<Panel> = [
    { id: 1, type: "row", title: first, collapsed: false, gridPos: { x: 0, y: 0, w: columns, h: 1 } },
    ...figures.map((figure, index) => figurePanel(figure, index, 1))
  ]
  let y = 1 + Math.ceil(figures.length / figuresAcross) * 4
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
