// Buyers and sellers, the largest first, and the share of volume of the largest.
import { h, type VNode } from "preact"
import { useState } from "preact/hooks"
import { useAsked } from "./ask.ts"
import { amount, count, percent } from "./format.ts"
import { Days } from "./OverviewView.ts"
import { Figures, Moment, Panel, SaveCsv, Shown } from "./parts.ts"
import { Amount, Table } from "./Table.ts"
import { Thing } from "./things.ts"
import type { Leader, Leaderboard, Overview } from "./reports.ts"

const Share = ({ of, whole }: { readonly of: string; readonly whole: string }): VNode<any> => {
  const share = percent(of, whole)
  const width = Number(whole) === 0 ? 0 : Math.min(100, (Number(of) / Number(whole)) * 100)
  return h(
    "span",
    { class: "held" },
    h("span", { class: "share", "aria-hidden": true }, h("span", { style: { width: `${width}%` } })),
    share
  )
}

const Board = (props: { readonly role: "buyers" | "sellers"; readonly days: string }): VNode<any> => {
  const path = `/analytics/v1/${props.role}?days=${props.days}&limit=25`
  const asked = useAsked<Leaderboard>(path, 15_000)
  return h(
    Panel,
    {
      title: props.role === "buyers" ? "Buyers" : "Sellers",
      wide: true,
      actions: h(SaveCsv, { name: props.role, path })
    },
    h(Shown<Leaderboard>, {
      asked,
      show: ({ concentration, items }) => [
        h(Figures, {
          items: [
            { label: "Largest", value: percent(concentration.top1_share, 1), note: "of the volume" },
            { label: "Five largest", value: percent(concentration.top5_share, 1) },
            { label: "Ten largest", value: percent(concentration.top10_share, 1) },
            { label: "Total", value: amount(concentration.total_amount, concentration) }
          ]
        }),
        h(Table<Leader>, {
          label: props.role === "buyers" ? "Buyers" : "Sellers",
          rows: items,
          keyOf: ({ address }) => address,
          empty: "None in this window. Choose a longer one.",
          cards: true,
          columns: [
            { head: "Address", card: "first", cell: ({ address }) => h(Thing, { kind: "account", id: address }) },
            {
              head: "Volume",
              numeric: true,
              card: "last",
              cell: (row) => h(Amount, { units: row.total_amount, of: row })
            },
            { head: "Share", cell: (row) => h(Share, { of: row.total_amount, whole: concentration.total_amount }) },
            { head: "Settlements", numeric: true, cell: ({ tx_count }) => count(tx_count) },
            {
              head: props.role === "buyers" ? "Recipients" : "Payers",
              numeric: true,
              cell: (row) => count(row.unique_counterparties)
            },
            { head: "Last payment", cell: ({ latest_activity }) => h(Moment, { at: latest_activity }) }
          ]
        })
      ]
    })
  )
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
        note: `${amount(of.organic.total_amount, of)} of ${amount(of.total_amount, of)}`
      }
    ]
  })

export const ParticipantsView = (): VNode<any> => {
  const [days, change] = useState("30")
  const overview = useAsked<Overview>(`/analytics/v1/overview?days=${days}`, 15_000)
  return h(
    "div",
    { class: "grid" },
    h(
      Panel,
      { title: "Organic share", wide: true, actions: h(Days, { days, change }) },
      h(Shown<Overview>, { asked: overview, show: (of) => h(Organic, { of }) })
    ),
    h(Board, { role: "sellers", days }),
    h(Board, { role: "buyers", days })
  )
}
