// The operator's overview: volume and outcomes over a window of days, by time and by kind. Amounts of different assets
// are shown side by side and never added.
import { h, type VNode } from "preact"
import { useMemo, useState } from "preact/hooks"
import { useAsked } from "./ask.ts"
import { Chart } from "./Chart.ts"
import { amount, count, counted, decimal, percent, stroops } from "./format.ts"
import { Figures, Moment, Panel, SaveCsv, SettlementState, Shown, Table } from "./parts.ts"
import type { Session } from "./session.ts"
import { type FacilitatorStatus, StatusFigures } from "./StatusView.ts"
import { sentenceOf } from "./reasons.ts"
import type { Breakdown, Breakdowns, Overview, Point, Reason, Timeseries } from "./reports.ts"

const windows: ReadonlyArray<readonly [days: string, label: string]> = [
  ["1", "Since yesterday"],
  ["7", "7 days"],
  ["30", "30 days"],
  ["0", "All history"]
]

export const Days = (props: { readonly days: string; readonly change: (days: string) => void }): VNode<any> =>
  h(
    "label",
    { class: "row quiet" },
    "Window",
    h(
      "select",
      { value: props.days, onChange: (event: Event) => props.change((event.target as HTMLSelectElement).value) },
      windows.map(([days, label]) => h("option", { key: days, value: days }, label))
    )
  )

const OverviewFigures = ({ of }: { readonly of: Overview }): VNode<any> => {
  const ended = BigInt(of.successful_transactions) + BigInt(of.failed_transactions)
  return h(Figures, {
    items: [
      ...(of.amounts.length === 0 ? [{ label: "Volume", value: "None yet" }] : []),
      ...of.amounts.map((one) => ({
        label: `Volume in ${one.asset_symbol ?? "another asset"}`,
        value: amount(one.amount, one),
        note: counted(one.transactions, "settlement")
      })),
      {
        label: "Settled",
        value: count(of.successful_transactions),
        note: `${percent(of.successful_transactions, ended.toString())} of ended settlements`
      },
      { label: "Failed", value: count(of.failed_transactions) },
      { label: "Pending", value: count(of.unknown_transactions) },
      {
        label: "Verified",
        value: count(of.total_verifications),
        note: `${percent(of.valid_verifications, of.total_verifications)} valid`
      },
      { label: "Sponsored fees", value: stroops(of.total_sponsored_fee_stroops) },
      {
        label: "Organic",
        value: percent(of.organic.successful_transactions, of.successful_transactions),
        note: "seller had not paid the buyer before"
      },
      { label: "Buyers", value: count(of.unique_buyers) },
      { label: "Sellers", value: count(of.unique_sellers) }
    ]
  })
}

const bucketMillis = { hour: 3_600_000, day: 86_400_000 }

/** Every bucket of the window in order, empty ones included: a plot must not skip them. */
const bucketsOf = ({
  bucket,
  days,
  series
}: Timeseries): ReadonlyArray<readonly [at: number, point: Point | undefined]> => {
  const width = bucketMillis[bucket]
  const known = new Map(series.map((point) => [Date.parse(point.bucket_start), point]))
  const last = Math.max(Math.floor(Date.now() / width) * width, ...known.keys())
  const today = Math.floor(last / bucketMillis.day) * bucketMillis.day
  const first = days === 0 ? Math.min(...known.keys()) : Math.min(today - days * bucketMillis.day, ...known.keys())
  return Array.from({ length: Math.round((last - first) / width) + 1 }, (_, index) => {
    const at = first + index * width
    return [at, known.get(at)]
  })
}

const SeriesChart = ({ of }: { readonly of: Timeseries }): VNode<any> => {
  const figure = (units: string) => (of.asset_decimals === null ? count(units) : decimal(units, of.asset_decimals))
  const { at, lines } = useMemo(() => {
    const scale = 10 ** (of.asset_decimals ?? 0)
    const symbol = of.asset_symbol ?? "units"
    const buckets = of.series.length === 0 ? [] : bucketsOf(of)
    const unitsOf = (point: Point | undefined) => point?.total_amount ?? "0"
    return {
      at: buckets.map(([at]) => at),
      lines: [
        {
          label: `Volume (${symbol})`,
          color: "--brand",
          values: buckets.map(([, point]) => Number(unitsOf(point)) / scale),
          text: (value: number) => String(Number(value.toPrecision(4))),
          exact: (index: number) => figure(unitsOf(buckets[index]?.[1]))
        }
      ]
    }
  }, [of])
  if (of.series.length === 0) return h("p", { class: "quiet" }, "No settlements in this window.")
  return h(
    "div",
    null,
    h(Chart, {
      at,
      lines,
      bucket: of.bucket,
      label: `Volume over time in ${of.asset_symbol ?? "atomic units"}; the figures are in the table below`
    }),
    h(
      "details",
      null,
      h("summary", null, "Show as a table"),
      h(Table<Point>, {
        label: "Volume over time",
        rows: of.series,
        keyOf: ({ bucket_start }) => bucket_start,
        empty: "No settlements in this window.",
        columns: [
          { head: "From", cell: ({ bucket_start }) => h(Moment, { at: bucket_start }) },
          {
            head: `Volume (${of.asset_symbol ?? "units"})`,
            numeric: true,
            cell: (point) => figure(point.total_amount)
          },
          { head: "Settlements", numeric: true, cell: (point) => count(point.total_transactions) },
          { head: "Failed", numeric: true, cell: (point) => count(point.failed_transactions) },
          { head: "Buyers", numeric: true, cell: (point) => count(point.unique_buyers) },
          { head: "Sellers", numeric: true, cell: (point) => count(point.unique_sellers) }
        ]
      })
    )
  )
}

const kinds: ReadonlyArray<readonly [Exclude<keyof Breakdowns, "reasons">, string]> = [
  ["statuses", "State"],
  ["schemes", "Scheme"],
  ["assets", "Asset"],
  ["networks", "Network"]
]

const ReasonTable = ({ of }: { readonly of: Breakdowns }): VNode<any> =>
  h(
    "div",
    { class: "even" },
    h("h3", null, "By reason"),
    h(Table<Reason>, {
      label: "By reason",
      rows: of.reasons,
      keyOf: ({ key }) => key,
      empty: "No failures in this window.",
      columns: [
        { head: "Reason", cell: ({ key }) => [sentenceOf(key), h("div", { class: "quiet" }, h("code", null, key))] },
        { head: "Failed", numeric: true, cell: (row) => count(row.failed_transactions) },
        { head: "Pending", numeric: true, cell: (row) => count(row.unknown_transactions) },
        { head: "Sponsored fees", numeric: true, cell: (row) => stroops(row.sponsored_fee_stroops) }
      ]
    })
  )

const BreakdownTables = ({ of }: { readonly of: Breakdowns }): VNode<any> =>
  h(
    "div",
    { class: "even" },
    kinds.map(([kind, head]) => [
      h("h3", { key: `${kind} title` }, `By ${head.toLowerCase()}`),
      h(Table<Breakdown>, {
        key: kind,
        label: `By ${head.toLowerCase()}`,
        rows: of[kind],
        keyOf: ({ key }) => key,
        empty: "No settlements in this window.",
        columns: [
          {
            head,
            cell: (row) =>
              kind === "statuses"
                ? h(SettlementState, { word: row.key })
                : kind === "assets"
                  ? (row.asset_symbol ?? row.key)
                  : row.key
          },
          { head: "Settlements", numeric: true, cell: (row) => count(row.total_transactions) },
          {
            head: "Volume",
            numeric: true,
            cell: (row) => row.amounts.map((one) => h("div", { key: one.asset }, amount(one.amount, one)))
          },
          { head: "Sponsored fees", numeric: true, cell: (row) => stroops(row.sponsored_fee_stroops) },
          {
            head: "Organic",
            numeric: true,
            cell: (row) => percent(row.organic.successful_transactions, row.successful_transactions)
          }
        ]
      })
    ]),
    h(ReasonTable, { of })
  )

export const OverviewView = ({ session }: { readonly session: Session }): VNode<any> => {
  const [days, change] = useState("30")
  const bucket = days === "1" || days === "7" ? "hour" : "day"
  const overview = useAsked<Overview>(`/analytics/v1/overview?days=${days}`, 5_000)
  const seriesPath = `/analytics/v1/overview/timeseries?days=${days}&bucket=${bucket}`
  const series = useAsked<Timeseries>(seriesPath, 30_000)
  const breakdowns = useAsked<Breakdowns>(`/analytics/v1/overview/breakdowns?days=${days}`, 15_000)
  const status = useAsked<FacilitatorStatus>(session.may_operate ? "/dashboard/v1/standing" : undefined, 5_000)
  return h(
    "div",
    { class: "grid" },
    session.may_operate
      ? h(
          Panel,
          { title: "Current status", wide: true },
          h(Shown<FacilitatorStatus>, { asked: status, show: (of) => h(StatusFigures, { of }) })
        )
      : null,
    h(
      Panel,
      { title: "Totals", wide: true, actions: h(Days, { days, change }) },
      h(Shown<Overview>, { asked: overview, show: (of) => h(OverviewFigures, { of }) })
    ),
    h(
      Panel,
      {
        title: "Volume over time",
        wide: true,
        actions: h(SaveCsv, { name: "volume over time", path: seriesPath })
      },
      h(Shown<Timeseries>, { asked: series, show: (of) => h(SeriesChart, { of }) })
    ),
    h(
      Panel,
      {
        title: "Breakdown",
        wide: true,
        actions: h(SaveCsv, { name: "breakdowns", path: `/analytics/v1/overview/breakdowns?days=${days}` })
      },
      h(Shown<Breakdowns>, { asked: breakdowns, show: (of) => h(BreakdownTables, { of }) })
    )
  )
}
