// The operator's overview, in the order of an operator's questions: does money move, is the service healthy, do
// resources run out; then the latest activity. The range is in the URL. Amounts of different assets are never added.
import { h, type VNode } from "preact"
import { useEffect, useState } from "preact/hooks"
import { useFacts } from "./about.ts"
import { useAsked } from "./ask.ts"
import { Bars } from "./Bars.ts"
import { CapacityPanel } from "./CapacityPanel.ts"
import { type Choices, Select } from "./FilterBar.ts"
import { assetChoices, ranges, spanOf } from "./filters.ts"
import { count, duration, percent, rounded } from "./format.ts"
import { type Figure, Figures, Moment, panel, SaveCsv, SettlementState, Shown, written } from "./parts.ts"
import { amend, hrefOf, pageOf, usePlace } from "./place.ts"
import { Change, endedOf, PulseChart, Spark, Volume } from "./PulseChart.ts"
import { reasonLabel, reasonText } from "./reasons.ts"
import type { Cataloged, FacilitatorStatus, Listed, Missed, Overview, Pulse, Refusals, Sums } from "./reports.ts"
import type { Session } from "./session.ts"
import { titleOf } from "./ResourceView.ts"
import { listHref } from "./SettlementsView.ts"
import { paceFigures } from "./StatusView.ts"
import { Table } from "./Table.ts"
import { tag } from "./tag.ts"
import { Thing } from "./things.ts"

/** Windows of the reports that count by days. */
export const windows: Choices = [
  ["1", "Since yesterday"],
  ["7", "Last 7 days"],
  ["30", "Last 30 days"],
  ["0", "All time"]
]

const rate = (sums: Sums): number => (endedOf(sums) === 0 ? 0 : (sums.settled / endedOf(sums)) * 100)

/** The bars of a rate start this many percentage points below its minimum, so that small differences stay visible. */
const rateMargin = 3

const MoneyFigures = ({ of }: { readonly of: Pulse }): VNode<any> => {
  const { before, now, series } = of
  const recorded = series.filter((point) => point.recorded)
  const rates = recorded.filter(endedOf).map(rate)
  return h(Figures, {
    items: [
      {
        label: of.asset_symbol === null ? "Volume" : `Volume in ${of.asset_symbol}`,
        value: [h(Volume, { of, sums: now }), h(Spark, { values: recorded.map(({ amount }) => Number(amount)) })],
        note: h(Change, { now: Number(now.amount), before: before === null ? undefined : Number(before.amount) })
      },
      {
        label: "Settled",
        value: [count(now.settled), h(Spark, { values: recorded.map(({ settled }) => settled) })],
        note: h(Change, { now: now.settled, before: before?.settled })
      },
      {
        label: "Success rate",
        value: [
          percent(now.settled, endedOf(now)),
          h(Spark, { values: rates, floor: Math.max(0, Math.min(...rates) - rateMargin) })
        ],
        note: h(Change, { now: rate(now), before: before === null ? undefined : rate(before), points: true })
      }
    ]
  })
}

const Range = ({ own, query }: { readonly own: string; readonly query: URLSearchParams }): VNode<any> => {
  const isChosen = query.has("from") || query.has("to")
  return tag(
    "span.row",
    assetChoices(useFacts()).map(({ choices, label, name }) =>
      h(Select, {
        key: name,
        label,
        value: query.get(name) ?? "",
        choices,
        change: (asset) => amend({ asset })
      })
    ),
    h(Select, {
      label: "Range",
      value: isChosen ? "chosen" : (query.get("range") ?? own),
      choices: [
        ...(isChosen ? ([["chosen", "Zoomed in"]] as const) : []),
        ...ranges.map(([value, label]) => [value, `Last ${label}`] as const)
      ],
      change: (range) => amend({ range, from: "", to: "" })
    }),
    isChosen
      ? h("button", { type: "button", class: "small", onClick: () => amend({ from: "", to: "" }) }, "Zoom out")
      : null
  )
}

/** Open and unresolved settlements from the status, with the age of the oldest. */
const openFigures = ({ without_end }: FacilitatorStatus): ReadonlyArray<Figure> =>
  (
    [
      ["Pending", ["prepared", "submitted"]],
      ["Unresolved", ["unresolved"]]
    ] as const
  ).map(([label, words]) => {
    const own = without_end.filter(({ state }) => (words as ReadonlyArray<string>).includes(state))
    const oldest = Math.max(0, ...own.map(({ age_seconds }) => age_seconds))
    return {
      label,
      value: own.length === 0 ? "0" : h("a", { href: "#standing" }, count(own.length)),
      note: own.length === 0 ? "nothing waits" : `the oldest since ${duration(oldest)}`
    }
  })

/** Refused payments by reason, all keys together; each leads to the list by key. */
const RefusalBars = ({ of: { from, to } }: { readonly of: Pulse }): VNode<any> | null => {
  const span = { from, to }
  const asked = useAsked<Refusals>(`/analytics/v1/refusals?${new URLSearchParams(span)}`, 15_000)
  if (asked.state !== "ready" || asked.body.items.length === 0) return null
  const counts = new Map<string, number>()
  for (const { reason, refused } of asked.body.items) counts.set(reason, (counts.get(reason) ?? 0) + Number(refused))
  return h(Bars, {
    title: "Refused before settlement",
    always: true,
    rows: [...counts]
      .sort(([, a], [, b]) => b - a)
      .map(([reason, value]) => ({
        key: reason,
        label: h("span", { title: reasonText(reason) }, reasonLabel(reason)),
        value,
        href: hrefOf("refusals", "", { reason, ...span }),
        tone: "warn" as const
      }))
  })
}

const HealthPanel = (props: {
  readonly of: Pulse
  readonly asset: string
  readonly status: FacilitatorStatus | undefined
}): VNode<any> => {
  const { asset, of, status } = props
  const span = { from: of.from, to: of.to, asset }
  return panel(
    { title: "Health" },
    status === undefined
      ? null
      : h(Figures, {
          items: [...paceFigures(status), ...openFigures(status)]
        }),
    of.reasons.length === 0
      ? tag("p.empty", "No settlement failed in this range.")
      : h(Bars, {
          title: "Failures by reason",
          always: true,
          rows: of.reasons.map(({ failed, pending, reason }) => ({
            key: reason,
            label: h("span", { title: reasonText(reason) }, reasonLabel(reason)),
            value: failed + pending,
            href: listHref({ reason, ...span }),
            tone: failed > 0 ? ("bad" as const) : ("warn" as const)
          }))
        }),
    h(RefusalBars, { of }),
    of.bucket === "hour" && of.reasons.length > 0 ? tag("p.note", "Reasons are counted by whole UTC days.") : null
  )
}

const NewListings = (): VNode<any> =>
  h(Shown<Listed<Cataloged>>, {
    asked: useAsked<Listed<Cataloged>>("/analytics/v1/resources?limit=5", 30_000),
    show: ({ items }) =>
      h(Table<Cataloged>, {
        label: "Newest listings",
        rows: items,
        keyOf: ({ id }) => id,
        cards: true,
        empty: "No listings yet. A resource is listed when a payment that declares it is verified.",
        columns: [
          {
            head: "Newest listing",
            card: "first",
            cell: (row) => h("a", { href: pageOf("resource", row.id) }, written(titleOf(row)))
          },
          {
            head: "Seller",
            card: "under",
            cell: ({ pay_tos }) => (pay_tos?.[0] === undefined ? "–" : h(Thing, { kind: "account", id: pay_tos[0] }))
          },
          {
            head: "Listed",
            card: "aside",
            cell: ({ created_at, updated_at }) => h(Moment, { at: created_at ?? updated_at })
          }
        ]
      })
  })

const MissedSearches = (): VNode<any> =>
  h(Shown<Listed<Missed>>, {
    asked: useAsked<Listed<Missed>>("/analytics/v1/search/missed?hours=168", 60_000),
    show: ({ items }) =>
      items.length === 0
        ? tag("p.empty", "Every search of the last 7 days had a result.")
        : h(Bars, {
            title: "Searches without a result, 7 days",
            always: true,
            rows: items.map(({ sessions, words }) => ({
              key: words,
              label: written(words),
              value: Number(sessions),
              href: hrefOf("search")
            }))
          })
  })

const NewPanel = ({
  session,
  totals
}: {
  readonly session: Session
  readonly totals: Overview | undefined
}): VNode<any> =>
  panel(
    { title: "New" },
    totals === undefined
      ? null
      : h(Figures, {
          items: [
            {
              label: "Listings",
              value: count(totals.active_resources),
              note: `${count(totals.stale_resources)} stale`
            },
            { label: "Sellers", value: count(totals.unique_sellers), note: "paid in 30 days" },
            { label: "Buyers", value: count(totals.unique_buyers), note: "paid in 30 days" }
          ]
        }),
    h(NewListings, {}),
    session.may_operate ? h(MissedSearches, {}) : null
  )

const kinds = { scheme: "By scheme", asset: "By asset", network: "By network" } as const

const Breakdown = ({ asset, of }: { readonly asset: string; readonly of: Pulse }): VNode<any> | null => {
  const bars = (Object.keys(kinds) as ReadonlyArray<keyof typeof kinds>).map((kind) => ({
    kind,
    rows: of.shares.filter((share) => share.kind === kind)
  }))
  const states = [
    ["success", of.now.settled],
    ["failed", of.now.failed],
    ["unknown", of.now.pending]
  ] as const
  const byState = states.filter(([, value]) => value > 0)
  if (byState.length < 2 && bars.every(({ rows }) => rows.length < 2)) return null
  const span = { from: of.from, to: of.to, asset }
  return panel(
    { title: "Breakdown" },
    h(Bars, {
      title: "By state",
      rows: byState.map(([status, value]) => ({
        key: status,
        label: h(SettlementState, { word: status }),
        value,
        href: listHref({ status, ...span })
      }))
    }),
    bars.map(({ kind, rows }) =>
      h(Bars, {
        key: kind,
        title: kinds[kind],
        rows: rows.map((row) => ({
          key: row.key,
          label: kind === "asset" ? (row.asset_symbol ?? row.key) : row.key,
          value: row.settlements,
          ...(row.asset_decimals === null
            ? {}
            : { note: `${rounded(row.amount, row.asset_decimals)} ${row.asset_symbol ?? ""}` }),
          ...(kind === "network" ? {} : { href: listHref({ ...span, [kind]: row.key }) })
        }))
      })
    )
  )
}

/**
 * The shortest range that covers everything since the first settlement, so that a new facilitator does not show empty
 * weeks.
 */
const youngRange = ({ series }: Pulse): string => {
  const first = series.find(({ recorded }) => recorded)
  const age = first === undefined ? Infinity : (Date.now() - Date.parse(first.at)) / 3_600_000
  return age <= 24 ? "24h" : age <= 168 ? "7d" : "30d"
}

export const OverviewView = ({ session }: { readonly session: Session }): VNode<any> => {
  const { query } = usePlace()
  const [own, setOwn] = useState("30d")
  const { from, to } = spanOf(query, own)
  const asset = query.get("asset") ?? ""
  const asked = new URLSearchParams({
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
    ...(asset === "" ? {} : { asset })
  })
  const path = `/analytics/v1/pulse?${asked}`
  const pulse = useAsked<Pulse>(path, 5_000)
  const isOwn = !["range", "from", "to", "asset"].some((name) => query.has(name))
  useEffect(() => {
    if (isOwn && own === "30d" && pulse.state === "ready") setOwn(youngRange(pulse.body))
  }, [isOwn, own, pulse])
  const status = useAsked<FacilitatorStatus>(session.may_operate ? "/dashboard/v1/standing" : undefined, 5_000)
  const totals = useAsked<Overview>("/analytics/v1/overview?days=30", 30_000)
  const operating = status.state === "ready" ? status.body : undefined
  return tag(
    "div.grid",
    panel(
      {
        title: "Money",
        wide: true,
        actions: tag("span.row", h(Range, { own, query }), h(SaveCsv, { name: "money over time", path }))
      },
      h(Shown<Pulse>, {
        asked: pulse,
        show: (of) => [h(MoneyFigures, { of }), h(PulseChart, { of })]
      })
    ),
    tag(
      "div.stack",
      pulse.state === "ready" ? h(HealthPanel, { of: pulse.body, asset, status: operating }) : null,
      pulse.state === "ready" ? h(Breakdown, { of: pulse.body, asset }) : null
    ),
    tag(
      "div.stack",
      operating === undefined ? null : h(CapacityPanel, { of: operating }),
      h(NewPanel, { session, totals: totals.state === "ready" ? totals.body : undefined })
    )
  )
}
