// Payment channels of batch-settlement: each channel's balance, the charged and claimed amounts, its age, and the
// deadline of a started withdrawal. Channels with a withdrawal come first. If the channel store is not enabled, the
// panel in "Operation" is hidden, and the separate view shows a message.
import { h, type VNode } from "preact"
import { useFacts } from "./about.ts"
import { CursorList } from "./CursorList.ts"
import { FilterBar } from "./FilterBar.ts"
import { assetChoices } from "./filters.ts"
import { Moment } from "./parts.ts"
import { hrefOf, picked, usePlace } from "./place.ts"
import type { ChannelReported } from "./reports.ts"
import { Amount, type Column } from "./Table.ts"
import { tag } from "./tag.ts"
import { Thing } from "./things.ts"

const path = "/batch/v1/operator/channels"
const panelRows = 10

const columns: ReadonlyArray<Column<ChannelReported>> = [
  { head: "Recipient", card: "first", cell: (row) => h(Thing, { kind: "account", id: row.pay_to }) },
  { head: "Payer", card: "under", cell: (row) => h(Thing, { kind: "account", id: row.payer }) },
  {
    head: "Key",
    isMiddle: true,
    cell: ({ principal }) => (principal === null ? "Own store" : h(Thing, { kind: "key", id: principal }))
  },
  { head: "Held", numeric: true, card: "last", cell: (row) => h(Amount, { units: row.held, of: row }) },
  {
    head: "Charged",
    numeric: true,
    isSpare: true,
    cell: (row) => (row.charged === null ? "–" : h(Amount, { units: row.charged, of: row }))
  },
  { head: "Claimed", numeric: true, card: "rest", cell: (row) => h(Amount, { units: row.claimed, of: row }) },
  {
    head: "Lost",
    numeric: true,
    isSpare: true,
    cell: (row) => (row.lost === null ? "–" : h(Amount, { units: row.lost, of: row }))
  },
  { head: "Opened", isMiddle: true, cell: ({ opened_at }) => h(Moment, { at: opened_at }) },
  { head: "Withdrawal ends", card: "aside", cell: ({ withdrawal_ends_at }) => h(Moment, { at: withdrawal_ends_at }) }
]

const keyOf = ({ channel_id, principal }: ChannelReported): string => `${channel_id} ${principal ?? ""}`

const list = { title: "Payment channels", name: "payment channels", keyOf, columns }

/** The most urgent channels, as a panel of "Operation". */
export const BatchView = (): VNode<any> =>
  h(CursorList<ChannelReported>, {
    ...list,
    path: `${path}?`,
    limit: panelRows,
    empty: none,
    actions: h("a", { href: hrefOf("channels") }, "All payment channels"),
    absent: null
  })

const none = "No payment channels yet. The first deposit of a buyer opens one."

export const ChannelsView = (): VNode<any> => {
  const { query } = usePlace()
  const facts = useFacts()
  const asked = picked(query, ["state", "asset", "payer", "payTo", "key"])
  return h(CursorList<ChannelReported>, {
    ...list,
    path: `${path}?${asked}`,
    isPage: true,
    empty: asked.size === 0 ? none : "No payment channel matches these filters. Take one away.",
    filters: h(FilterBar, {
      query,
      choices: [
        {
          name: "state",
          label: "State",
          choices: [
            ["", "All channels"],
            ["withdrawing", "Withdrawal started"],
            ["open", "Open"]
          ]
        },
        ...assetChoices(facts)
      ],
      fields: [
        { name: "payTo", label: "Recipient" },
        { name: "payer", label: "Payer" },
        { name: "key", label: "Key" }
      ]
    }),
    absent: tag("p.empty", "Payment channels are off. Enable the plugin batch-store to see them here.")
  })
}
