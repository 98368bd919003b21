// Refused payments by reason and key, most frequent first, with the newest samples of each.
import { h, type VNode } from "preact"
import { CursorList } from "./CursorList.ts"
import { type Choices, FilterBar } from "./FilterBar.ts"
import { address, count } from "./format.ts"
import { windows } from "./OverviewView.ts"
import { Moment, written } from "./parts.ts"
import { amend, picked, usePlace } from "./place.ts"
import { Reason } from "./reasons.ts"
import type { Refusal } from "./reports.ts"
import type { Column } from "./Table.ts"
import { tag } from "./tag.ts"
import { Thing } from "./things.ts"

const Samples = ({ of }: { readonly of: Refusal }): VNode<any> | null =>
  of.samples.length === 0
    ? null
    : tag(
        "details",
        tag("summary", of.samples.length === 1 ? "Show it" : `Show ${count(of.samples.length)}`),
        of.samples.map((sample, index) =>
          h(
            "div",
            { key: index, class: "quiet" },
            h(Moment, { at: sample.at }),
            " ",
            sample.payer === null ? null : h(Thing, { kind: "account", id: sample.payer }),
            " ",
            sample.resource_url === null ? null : written(address(sample.resource_url)),
            " ",
            written(sample.message)
          )
        )
      )

const columns: ReadonlyArray<Column<Refusal>> = [
  { head: "Reason", card: "first", cell: ({ reason }) => h(Reason, { word: reason }) },
  { head: "Refused", numeric: true, card: "last", cell: ({ refused }) => count(refused) },
  { head: "Operation", isSpare: true, cell: ({ operation }) => operations[operation] ?? operation },
  {
    head: "Key",
    card: "under",
    cell: ({ principal }) => (principal === "none" ? "No listed key" : h(Thing, { kind: "key", id: principal }))
  },
  { head: "Last refused", card: "aside", cell: ({ last_at }) => h(Moment, { at: last_at }) },
  { head: "Newest", card: "rest", cell: (row) => h(Samples, { of: row }) }
]

const operations: Readonly<Record<string, string>> = { verify: "Verify", settle: "Settle" }

const daysAbsent = "7"

/** The route's query: a window of days, or the typed dates. */
const refusalQuery = (query: URLSearchParams): URLSearchParams => {
  const asked = picked(query, ["operation", "reason", "key", "payer", "from", "to"])
  if (!asked.has("from") && !asked.has("to")) asked.set("days", query.get("days") ?? daysAbsent)
  return asked
}

/** Only the samples contain a payer. With a payer filter, counts are those of the whole groups. */
export const RefusalsPage = (): VNode<any> => {
  const { query } = usePlace()
  const isChosen = query.has("from") || query.has("to")
  const times: Choices = [
    ...(isChosen ? ([["chosen", "Chosen days"]] as const) : []),
    ...windows.map(([value, label]) => [value === daysAbsent && !isChosen ? "" : value, label] as const)
  ]
  return h(CursorList<Refusal>, {
    title: "Refused payments",
    isPage: true,
    name: "refusals",
    path: `/analytics/v1/refusals?${refusalQuery(query)}`,
    keyOf: ({ operation, principal, reason }) => `${operation} ${reason} ${principal}`,
    columns,
    empty:
      [...query.keys()].length === 0
        ? "No payment was refused in the last 7 days."
        : "No refusal matches. Take a filter away, or choose a longer time.",
    filters: h(FilterBar, {
      query: isChosen ? withMember(query, "days", "chosen") : query,
      choices: [
        { name: "days", label: "Time", choices: times, change: (days) => amend({ days, from: "", to: "" }) },
        {
          name: "operation",
          label: "Operation",
          choices: [
            ["", "Verify and settle"],
            ["verify", "Verify"],
            ["settle", "Settle"]
          ]
        }
      ],
      fields: [
        { name: "reason", label: "Reason", kind: "reason" },
        { name: "key", label: "Key" },
        { name: "payer", label: "Payer" },
        { name: "from", label: "From (UTC)", kind: "date" },
        { name: "to", label: "Before (UTC)", kind: "date" }
      ]
    })
  })
}

const withMember = (query: URLSearchParams, name: string, value: string): URLSearchParams => {
  const changed = new URLSearchParams(query)
  changed.set(name, value)
  return changed
}
