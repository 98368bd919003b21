// Webhook deliveries: sent and pending events of each receiver, with the last response. Pending deliveries are a panel
// of "Operation". All deliveries, with filters, have a separate view.
import { h, type VNode } from "preact"
import { CursorList } from "./CursorList.ts"
import { FilterBar } from "./FilterBar.ts"
import { count } from "./format.ts"
import { Moment, State, written } from "./parts.ts"
import { hrefOf, pageOf, picked, usePlace } from "./place.ts"
import type { Delivery } from "./reports.ts"
import type { Column } from "./Table.ts"
import { tag } from "./tag.ts"

const path = "/webhooks/v1/deliveries"
const panelRows = 10

const stateWords: Readonly<Record<string, string>> = { due: "pending", given_up: "given up" }

/** `settlement.settled` → `Settled`. */
const eventText = (type: string): string => {
  const word = type.replace(/^settlement[.]/, "")
  return `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`
}

const columns: ReadonlyArray<Column<Delivery>> = [
  { head: "Receiver", card: "first", cell: ({ receiver }) => written(receiver) },
  { head: "State", card: "last", cell: ({ state }) => h(State, { word: stateWords[state] ?? state }) },
  {
    head: "Event",
    card: "under",
    cell: ({ settlement, type }) => h("a", { href: pageOf("settlement", settlement) }, eventText(type))
  },
  { head: "Last answer", card: "rest", cell: ({ last_answer }) => (last_answer === null ? "–" : written(last_answer)) },
  { head: "Attempts", numeric: true, cell: ({ attempts }) => count(attempts) },
  { head: "Happened", isMiddle: true, cell: ({ event_at }) => h(Moment, { at: event_at }) },
  {
    head: "Sent or due",
    card: "aside",
    cell: ({ ended_at, next_at }) => h(Moment, { at: ended_at ?? next_at })
  }
]

const list = { name: "deliveries", keyOf: ({ id }: Delivery) => id, columns }

/** Pending deliveries, as a panel of "Operation". */
export const WaitingDeliveries = (): VNode<any> =>
  h(CursorList<Delivery>, {
    ...list,
    title: "Pending webhook deliveries",
    path: `${path}?state=due`,
    limit: panelRows,
    empty: "None. Every receiver accepted its events.",
    actions: h("a", { href: hrefOf("deliveries") }, "All deliveries"),
    absent: null
  })

export const DeliveriesView = (): VNode<any> => {
  const { query } = usePlace()
  const asked = picked(query, ["state", "type", "receiver", "settlement", "from", "to"])
  return h(CursorList<Delivery>, {
    ...list,
    title: "Webhook deliveries",
    path: `${path}?${asked}`,
    isPage: true,
    empty:
      asked.size === 0
        ? "No deliveries yet. Name a receiver under webhooks.receivers in the profile."
        : "No delivery matches these filters. Take one away.",
    filters: h(FilterBar, {
      query,
      choices: [
        {
          name: "state",
          label: "State",
          choices: [
            ["", "All states"],
            ["due", "Pending"],
            ["delivered", "Delivered"],
            ["given_up", "Given up"]
          ]
        },
        {
          name: "type",
          label: "Event",
          choices: [
            ["", "All events"],
            ...["recorded", "settled", "failed", "expired", "unresolved"].map(
              (word) => [`settlement.${word}`, eventText(word)] as const
            )
          ]
        }
      ],
      fields: [
        { name: "receiver", label: "Receiver" },
        { name: "settlement", label: "Settlement id" },
        { name: "from", label: "From (UTC)", kind: "date" },
        { name: "to", label: "Before (UTC)", kind: "date" }
      ]
    }),
    absent: tag("p.empty", "Webhooks are off. Enable the plugin webhooks to see deliveries here.")
  })
}
