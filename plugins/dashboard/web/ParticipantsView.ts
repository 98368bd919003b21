// Buyers and sellers, largest first, and the share of volume of the largest.
import { h, type VNode } from "preact"
import { useFacts } from "./about.ts"
import { useAsked } from "./ask.ts"
import { CursorList } from "./CursorList.ts"
import { FilterBar } from "./FilterBar.ts"
import { amountIssue, assetChoices } from "./filters.ts"
import { amount, atomic, count, percent, roundedAmount } from "./format.ts"
import { windows } from "./OverviewView.ts"
import { Exactly, Figures, Moment, panel, Shown } from "./parts.ts"
import { type Place, usePlace } from "./place.ts"
import type { About, Leader, Leaderboard, Overview } from "./reports.ts"
import { Amount, type Column } from "./Table.ts"
import { tag } from "./tag.ts"
import { Thing } from "./things.ts"

const boardRows = 25
const daysAbsent = "30"

const Share = ({ of, whole }: { readonly of: string; readonly whole: string }): VNode<any> => {
  const share = percent(of, whole)
  const width = Number(whole) === 0 ? 0 : Math.min(100, (Number(of) / Number(whole)) * 100)
  return tag(
    "span.held",
    h("span", { class: "share", "aria-hidden": true }, h("span", { style: { width: `${width}%` } })),
    share
  )
}

/** The share of volume of the largest. */
const Concentration = ({ of }: { readonly of: Leaderboard["concentration"] }): VNode<any> =>
  h(Figures, {
    items: [
      {
        label: "Total volume",
        value: h(Exactly, { shown: roundedAmount(of.total_amount, of), exact: amount(of.total_amount, of) })
      },
      { label: "Largest", value: percent(of.top1_share, 1), note: "of the volume" },
      { label: "Five largest", value: percent(of.top5_share, 1), note: "of the volume" },
      { label: "Ten largest", value: percent(of.top10_share, 1), note: "of the volume" }
    ]
  })

const columnsOf = (role: "buyers" | "sellers", whole: string): ReadonlyArray<Column<Leader>> => [
  {
    head: role === "buyers" ? "Payer" : "Recipient",
    card: "first",
    cell: ({ address }) => h(Thing, { kind: "account", id: address })
  },
  { head: "Volume", numeric: true, card: "last", cell: (row) => h(Amount, { units: row.total_amount, of: row }) },
  { head: "Share", isSpare: true, cell: (row) => h(Share, { of: row.total_amount, whole }) },
  { head: "Settlements", numeric: true, card: "under", cell: ({ tx_count }) => count(tx_count) },
  {
    head: "Success rate",
    numeric: true,
    isMiddle: true,
    cell: ({ successful_transactions, tx_count }) => percent(successful_transactions, tx_count)
  },
  {
    head: role === "buyers" ? "Recipients" : "Payers",
    numeric: true,
    cell: (row) => count(row.unique_counterparties)
  },
  { head: "Last payment", card: "aside", cell: ({ latest_activity }) => h(Moment, { at: latest_activity }) }
]

const Board = (props: { readonly role: "buyers" | "sellers"; readonly query: URLSearchParams }): VNode<any> => {
  const { query, role } = props
  const isBuyers = role === "buyers"
  return h(CursorList<Leader>, {
    title: isBuyers ? "Buyers" : "Sellers",
    name: role,
    path: `/analytics/v1/${role}?${query}`,
    limit: boardRows,
    keyOf: ({ address }) => address,
    columns: ({ concentration }: Leaderboard) => columnsOf(role, concentration.total_amount),
    empty: query.has("min")
      ? "None with that volume. Lower it, or choose a longer time."
      : isBuyers
        ? "No payer in this time. Choose a longer one."
        : "No recipient in this time. Choose a longer one.",
    above: ({ concentration }: Leaderboard) => h(Concentration, { of: concentration })
  })
}

/** The share paid to recipients that had not paid the payer before. */
const Organic = ({ of }: { readonly of: Overview }): VNode<any> =>
  h(Figures, {
    items: [
      {
        label: "Organic settlements",
        value: percent(of.organic.successful_transactions, of.successful_transactions),
        note: `${count(of.organic.successful_transactions)} of ${count(of.successful_transactions)} settled`
      },
      {
        label: "Organic volume",
        value: percent(of.organic.total_amount, of.total_amount),
        note: `${roundedAmount(of.organic.total_amount, of)} of ${roundedAmount(of.total_amount, of)}`
      }
    ]
  })

const assetOf = ({ query }: Place, facts: About | undefined) =>
  facts?.assets.find(({ asset }) => asset === query.get("asset")) ?? facts?.assets[0]

/** Query of the boards: days, asset and minimum volume, which is written in units of the asset. */
const boardQuery = (place: Place, facts: About | undefined): URLSearchParams => {
  const { query } = place
  const asked = new URLSearchParams({ days: query.get("days") ?? daysAbsent })
  const min = query.get("min") ?? ""
  const known = assetOf(place, facts)
  const asset = query.get("asset") ?? (min === "" ? undefined : known?.asset)
  if (asset === undefined) return asked
  asked.set("asset", asset)
  const units = known === undefined || min === "" ? undefined : atomic(min, known.decimals)
  if (units !== undefined) asked.set("min", units)
  return asked
}

export const ParticipantsView = (): VNode<any> => {
  const place = usePlace()
  const facts = useFacts()
  const days = place.query.get("days") ?? daysAbsent
  const query = boardQuery(place, facts)
  const overview = useAsked<Overview>(`/analytics/v1/overview?${new URLSearchParams({ days })}`, 15_000)
  return tag(
    "div.grid",
    panel(
      { title: "Organic share", wide: true, isPage: true },
      h(FilterBar, {
        query: place.query,
        choices: [
          {
            name: "days",
            label: "Time",
            choices: windows.map(([value, label]) => [value === daysAbsent ? "" : value, label] as const)
          },
          ...assetChoices(facts)
        ],
        fields: [
          { name: "min", label: "Volume of at least", kind: "amount", issueOf: amountIssue(assetOf(place, facts)) }
        ]
      }),
      h(Shown<Overview>, { asked: overview, show: (of) => h(Organic, { of }) })
    ),
    h(Board, { role: "sellers", query }),
    h(Board, { role: "buyers", query })
  )
}
