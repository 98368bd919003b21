// Money over time: sums next to those of the previous period, bars by hour or day with zoom by dragging, and the same
// figures as a table.
import { h, type VNode } from "preact"
import { useMemo, useState } from "preact/hooks"
import { Chart } from "./Chart.ts"
import { amount, count, decimal, percent, roundedAmount } from "./format.ts"
import { Exactly, Moment } from "./parts.ts"
import { amend } from "./place.ts"
import type { Pulse, Sums } from "./reports.ts"
import { Amount, Table } from "./Table.ts"
import { tag } from "./tag.ts"

export const endedOf = ({ failed, settled }: Sums): number => settled + failed

/** The change from the previous period, in words and a sign. Empty if there was no previous period. */
export const Change = (props: {
  readonly now: number
  readonly before: number | undefined
  readonly points?: boolean
}): VNode<any> | null => {
  const { before, now, points } = props
  if (before === undefined) return tag("span.note", "no earlier period")
  if (points !== true && before === 0) return tag("span.note", now === 0 ? "as before" : "none before")
  const change = points === true ? now - before : ((now - before) / before) * 100
  const size = Math.abs(change)
    .toFixed(Math.abs(change) < 10 ? 1 : 0)
    .replace(/\.0$/, "")
  const sign = size === "0" ? "=" : change > 0 ? "▲" : "▼"
  return h(
    "span",
    { class: `note ${size === "0" ? "" : change > 0 ? "up" : "down"}` },
    size === "0" ? "as before" : `${sign} ${size} ${points === true ? "points" : "%"}`,
    size === "0" ? null : tag("span.quiet", " on the period before")
  )
}

const sparkHeight = 28

/**
 * A line of small bars, without labels: the chart's table has the figures. `floor` is the value of a bar with no
 * height.
 */
export const Spark = (props: {
  readonly values: ReadonlyArray<number>
  readonly floor?: number
}): VNode<any> | null => {
  const { floor = 0 } = props
  const values = props.values.map((value) => value - floor)
  const most = Math.max(...values)
  if (values.length < 2 || most <= 0) return null
  return h(
    "svg",
    {
      class: "spark",
      viewBox: `0 0 ${values.length} ${sparkHeight}`,
      preserveAspectRatio: "none",
      "aria-hidden": true
    },
    values.map((value, index) => {
      const height = value === 0 ? 0.5 : Math.max(1.5, (value / most) * sparkHeight)
      return h("rect", { key: index, x: index + 0.1, width: 0.8, y: sparkHeight - height, height })
    })
  )
}

const axis = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 4 })

type Shown = "amount" | "settled" | "failed"

const linesOf = (of: Pulse, shown: Shown) => {
  const scale = 10 ** (of.asset_decimals ?? 0)
  const isAmount = shown === "amount"
  return [
    {
      label: isAmount ? `Volume (${of.asset_symbol ?? "units"})` : shown === "settled" ? "Settled" : "Failed",
      color: shown === "failed" ? "--bad" : "--brand",
      values: of.series.map((point) =>
        point.recorded ? (isAmount ? Number(point.amount) / scale : point[shown]) : null
      ),
      text: (value: number) => axis.format(value),
      exact: (index: number) => {
        const point = of.series[index]
        if (point === undefined || !point.recorded) return "no record"
        return isAmount ? decimal(point.amount, of.asset_decimals ?? 0) : count(point[shown])
      }
    }
  ]
}

const tabs: ReadonlyArray<readonly [Shown, string]> = [
  ["amount", "Volume"],
  ["settled", "Settled"],
  ["failed", "Failed"]
]

const Figures = ({ of }: { readonly of: Pulse }): VNode<any> =>
  tag(
    "details",
    tag("summary", "Show as a table"),
    h(Table<Pulse["series"][number]>, {
      label: "Money over time",
      rows: of.series.filter(({ recorded }) => recorded).toReversed(),
      keyOf: ({ at }) => at,
      empty: "Nothing was recorded in this range.",
      columns: [
        {
          head: of.bucket === "day" ? "Day (UTC)" : "Hour from",
          // Zooms like a drag over one bar, for the keyboard.
          cell: ({ at }) =>
            of.bucket === "day"
              ? h("button", { type: "button", class: "plain", onClick: () => zoomDay(at) }, at.slice(0, 10))
              : h(Moment, { at })
        },
        { head: "Volume", numeric: true, cell: (point) => h(Amount, { units: point.amount, of }) },
        { head: "Settled", numeric: true, cell: ({ settled }) => count(settled) },
        { head: "Failed", numeric: true, cell: ({ failed }) => count(failed) },
        { head: "Pending", numeric: true, cell: ({ pending }) => count(pending) },
        { head: "Success rate", numeric: true, cell: (point) => percent(point.settled, endedOf(point)) }
      ]
    })
  )

const dayMillis = 86_400_000

const zoomTo = (from: number, to: number): void =>
  amend({ range: "", from: new Date(from).toISOString(), to: new Date(to).toISOString() })

const zoomDay = (at: string): void => zoomTo(Date.parse(at), Date.parse(at) + dayMillis)

/** Buckets that a chart has at least. */
const bucketsMin = 6

/** Without the buckets before the first record: a young facilitator's chart begins with its own age. */
const sinceFirst = (of: Pulse): Pulse => {
  const first = of.series.findIndex(({ recorded }) => recorded)
  return { ...of, series: of.series.slice(Math.max(0, Math.min(first, of.series.length - bucketsMin))) }
}

export const PulseChart = ({ of }: { readonly of: Pulse }): VNode<any> => {
  const [shown, show] = useState<Shown>("amount")
  const { at, lines } = useMemo(() => {
    const plotted = sinceFirst(of)
    return { at: plotted.series.map(({ at }) => Date.parse(at)), lines: linesOf(plotted, shown) }
  }, [of, shown])
  const title = tabs.find(([value]) => value === shown)![1]
  const unit = shown === "amount" ? (of.asset_symbol ?? "atomic units") : "settlements"
  return tag(
    "div",
    tag(
      "div.row.chart-head",
      h(
        "div",
        { class: "switch", role: "group", "aria-label": "Figure" },
        tabs.map(([value, label]) =>
          h(
            "button",
            { key: value, type: "button", "aria-pressed": value === shown, onClick: () => show(value) },
            label
          )
        )
      ),
      tag("span.quiet", `${unit} a ${of.bucket}; drag over the bars to zoom in`)
    ),
    h(Chart, {
      at,
      lines,
      bucket: of.bucket,
      brushed: zoomTo,
      label: `${title} a ${of.bucket}, in ${unit}; the figures are in the table below`
    }),
    h(Figures, { of })
  )
}

/** A volume, rounded; its title is exact. */
export const Volume = ({ of, sums }: { readonly of: Pulse; readonly sums: Sums }): VNode<any> =>
  h(Exactly, { shown: roundedAmount(sums.amount, of), exact: amount(sums.amount, of) })
