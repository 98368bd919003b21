// Refused payments by reason and key, the most frequent first, with the newest ones of each.
import { h, type VNode } from "preact"
import { useAsked } from "./ask.ts"
import { address, count } from "./format.ts"
import { Moment, Panel, SaveCsv, Shown, written } from "./parts.ts"
import { Days } from "./OverviewView.ts"
import { amend, usePlace } from "./place.ts"
import { Reason } from "./reasons.ts"
import type { Refusal, Refusals } from "./reports.ts"
import { Table } from "./Table.ts"
import { Thing } from "./things.ts"

const Samples = ({ of }: { readonly of: Refusal }): VNode<any> =>
  h(
    "details",
    null,
    h("summary", null, `newest ${count(of.samples.length)}`),
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

/** `days` as the reports have it. */
export const RefusalsView = ({ days }: { readonly days: string }): VNode<any> => {
  const path = `/analytics/v1/refusals?days=${days}`
  const asked = useAsked<Refusals>(path, 10_000)
  return h(
    Panel,
    {
      title: "Refused payments",
      wide: true,
      actions: h(
        "span",
        { class: "row" },
        h(Days, { days, change: (to) => amend({ days: to }) }),
        h(SaveCsv, { name: "refusals", path })
      )
    },
    h(Shown<Refusals>, {
      asked,
      show: (of) =>
        h(Table<Refusal>, {
          label: "Refused payments",
          rows: of.items,
          keyOf: ({ operation, principal, reason }) => `${operation} ${reason} ${principal}`,
          columns: [
            { head: "Refused", numeric: true, card: "last", cell: ({ refused }) => count(refused) },
            { head: "Operation", cell: ({ operation }) => operation },
            { head: "Reason", card: "first", cell: ({ reason }) => h(Reason, { word: reason }) },
            {
              head: "Key",
              cell: ({ principal }) =>
                principal === "none" ? "no listed key" : h(Thing, { kind: "key", id: principal })
            },
            { head: "Last seen", cell: ({ last_at }) => h(Moment, { at: last_at }) },
            { head: "Samples", cell: (row) => h(Samples, { of: row }) }
          ],
          empty: "No payment was refused in this window.",
          cards: true
        })
    })
  )
}

/** The same with the window in the address. */
export const RefusalsPage = (): VNode<any> => {
  const { query } = usePlace()
  return h(RefusalsView, { days: query.get("days") ?? "7" })
}
