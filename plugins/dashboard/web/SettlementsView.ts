// Settlements as a list with filters, the newest first, page by page.
import { Fragment, h, type VNode } from "preact"
import { useState } from "preact/hooks"
import { useAsked } from "./ask.ts"
import { address, amount, count, stroops } from "./format.ts"
import { type Column, Moment, Name, Panel, SaveCsv, SettlementState, Shown, Table, written } from "./parts.ts"
import { RefusalsView } from "./RefusalsView.ts"
import type { Listed, Settlement } from "./reports.ts"

const pageSize = 25

export const settlementColumns: ReadonlyArray<Column<Settlement>> = [
  { head: "When", cell: ({ occurred_at }) => h(Moment, { at: occurred_at }) },
  {
    head: "State",
    cell: ({ error_reason, status }) => [
      h(SettlementState, { word: status }),
      error_reason === null ? null : h("div", { class: "quiet reason" }, error_reason)
    ]
  },
  { head: "Amount", numeric: true, cell: (row) => amount(row.amount, row) },
  { head: "Payer", cell: ({ payer }) => h(Name, { text: payer }) },
  { head: "Paid to", cell: ({ pay_to }) => h(Name, { text: pay_to }) },
  { head: "Resource", cell: ({ resource_url }) => (resource_url === null ? "–" : written(address(resource_url))) },
  { head: "Scheme", cell: ({ scheme }) => scheme },
  { head: "Fee", numeric: true, cell: ({ fee_stroops }) => stroops(fee_stroops) },
  {
    head: "Transaction",
    cell: ({ transaction_hash }) => h(Name, { text: transaction_hash, href: `#settlement/${transaction_hash}` })
  }
]

const Choice = (props: {
  readonly label: string
  readonly values: ReadonlyArray<readonly [value: string, label: string]>
  readonly change: (value: string) => void
}): VNode<any> =>
  h(
    "label",
    null,
    props.label,
    h(
      "select",
      { onChange: (event: Event) => props.change((event.target as HTMLSelectElement).value) },
      props.values.map(([value, label]) => h("option", { key: value, value }, label))
    )
  )

interface Filter {
  readonly status: string
  readonly days: string
  readonly payer: string
  readonly payTo: string
  readonly offset: number
}

const Filters = (props: { readonly filter: Filter; readonly change: (filter: Filter) => void }): VNode<any> => {
  const { change, filter } = props
  const address = (name: "payer" | "payTo", label: string) =>
    h(
      "label",
      null,
      label,
      h("input", {
        type: "text",
        spellcheck: false,
        maxLength: 128,
        onChange: ({ target }: Event) =>
          change({ ...filter, [name]: (target as HTMLInputElement).value.trim(), offset: 0 })
      })
    )
  return h(
    "form",
    { class: "line", onSubmit: (event: Event) => event.preventDefault() },
    h(Choice, { label: "State", values: statuses, change: (status) => change({ ...filter, status, offset: 0 }) }),
    h(Choice, { label: "Since", values: spans, change: (days) => change({ ...filter, days, offset: 0 }) }),
    address("payer", "Payer"),
    address("payTo", "Paid to")
  )
}

const statuses = [
  ["", "All"],
  ["success", "Settled"],
  ["failed", "Failed"],
  ["unknown", "Pending"]
] as const
const spans = [
  ["0", "All history"],
  ["1", "Today"],
  ["7", "7 days"],
  ["30", "30 days"]
] as const

/** Position in a list, and buttons to page through it. */
export const Paging = (props: { readonly of: Listed<unknown>; readonly go: (offset: number) => void }): VNode<any> => {
  const { items, pagination } = props.of
  const { limit, offset, total } = pagination
  const shown = total === 0 ? "None" : `${count(offset + 1)} to ${count(offset + items.length)} of ${count(total)}`
  const button = (label: string, disabled: boolean, to: number) =>
    h("button", { type: "button", disabled, onClick: () => props.go(to) }, label)
  return h(
    "p",
    { class: "row" },
    h("span", { class: "quiet" }, shown),
    button("Newer", offset === 0, Math.max(0, offset - limit)),
    button("Older", offset + limit >= total, offset + limit)
  )
}

export const SettlementsView = (): VNode<any> => {
  const [filter, change] = useState<Filter>({ status: "", days: "0", payer: "", payTo: "", offset: 0 })
  const query = new URLSearchParams({ limit: String(pageSize), offset: String(filter.offset), days: filter.days })
  for (const name of ["status", "payer", "payTo"] as const) if (filter[name] !== "") query.set(name, filter[name])
  const path = `/analytics/v1/transactions?${query}`
  const asked = useAsked<Listed<Settlement>>(path, 10_000)
  const list = h(
    Panel,
    { title: "Settlements", wide: true, actions: h(SaveCsv, { name: "settlements", path }) },
    h(Filters, { filter, change }),
    h(Shown<Listed<Settlement>>, {
      asked,
      show: (of) => [
        h(Table<Settlement>, {
          label: "Settlements",
          rows: of.items,
          keyOf: ({ id }) => id,
          columns: settlementColumns,
          empty: "No matching settlements."
        }),
        h(Paging, { of, go: (offset) => change({ ...filter, offset }) })
      ]
    })
  )
  return h(Fragment, null, list, h(RefusalsView, { days: filter.days }))
}
