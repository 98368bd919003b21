// Settlements as a list: filters and order in the URL, pages by cursor, new rows at the top as they arrive, cards on a
// phone. The page of an account, asset or listing shows the same list, narrowed to it.
import { h, type VNode } from "preact"
import { useFacts } from "./about.ts"
import { CursorList } from "./CursorList.ts"
import { Filters, routeQuery } from "./filters.ts"
import { count } from "./format.ts"
import { bareUrl } from "./listings.ts"
import { Moment, SettlementState } from "./parts.ts"
import { hrefOf, pageOf, usePlace } from "./place.ts"
import { Reason } from "./reasons.ts"
import type { Listed, Settlement } from "./reports.ts"
import { Amount, type Column } from "./Table.ts"
import { tag } from "./tag.ts"
import { Thing } from "./things.ts"

/** `leave` lists the columns that are redundant on a page about one account, asset or listing. */
const settlementColumns = (leave: ReadonlyArray<string> = []): ReadonlyArray<Column<Settlement>> =>
  columns.filter(({ head }) => !leave.includes(head))

/** A phone's card leaves out this line. */
const absent = tag("span.quiet.absent", "–")

const columns: ReadonlyArray<Column<Settlement>> = [
  {
    head: "Amount",
    numeric: true,
    card: "first",
    cell: (row) =>
      h(Amount, { units: row.amount === null || row.status === "failed" ? row.max_amount : row.amount, of: row })
  },
  {
    head: "State",
    card: "last",
    cell: ({ error_reason, status }) => [
      h(SettlementState, { word: status }),
      error_reason === null ? null : h(Reason, { word: error_reason, isShort: true })
    ]
  },
  {
    head: "Payer",
    card: "under",
    cell: ({ payer }) => h(Thing, { kind: "account", id: payer })
  },
  { head: "Recipient", isSpare: true, cell: ({ pay_to }) => h(Thing, { kind: "account", id: pay_to }) },
  {
    head: "Resource",
    card: "under",
    cell: ({ resource_id, resource_url }) =>
      resource_url === null
        ? absent
        : resource_id === null
          ? h("span", { class: "clip", title: resource_url }, bareUrl(resource_url))
          : h(Thing, {
              kind: "resource",
              id: resource_id,
              text: bareUrl(resource_url),
              copies: resource_url
            })
  },
  {
    head: "Key",
    isMiddle: true,
    cell: ({ key }) => (key == null ? absent : h(Thing, { kind: "key", id: key }))
  },
  {
    head: "Time",
    card: "aside",
    cell: ({ occurred_at, transaction_hash }) =>
      h(
        "a",
        { class: "when", href: pageOf("settlement", transaction_hash) },
        h(Moment, { at: occurred_at, inLink: true })
      )
  },
  {
    head: "Transaction",
    isMiddle: true,
    cell: ({ transaction_hash }) => h(Thing, { kind: "settlement", id: transaction_hash })
  }
]

const Empty = (props: { readonly isFiltered: boolean; readonly isOfThing: boolean }): VNode<any> =>
  props.isFiltered
    ? tag("span", "No settlement matches these filters. Take one away, or choose a longer time.")
    : props.isOfThing
      ? tag("span", "No settlements here yet. New ones appear at the top.")
      : tag(
          "span",
          "No settlements yet. Point a seller at this facilitator, or make a test payment with ",
          tag("code", "npm run pay"),
          "."
        )

/** A list of settlements. The page that contains it sets the `fixed` members of the query. */
export const SettlementList = (props: {
  readonly title: string
  readonly fixed?: Readonly<Record<string, string>>
  readonly leave?: ReadonlyArray<string>
  readonly isPage?: boolean
}): VNode<any> => {
  const { fixed = {}, isPage = false, leave = [], title } = props
  const place = usePlace()
  const query = routeQuery(place, useFacts(), fixed)
  return h(CursorList<Settlement>, {
    title,
    isPage,
    name: "settlements",
    path: `/analytics/v1/settlements?${query}`,
    keyOf: ({ id }) => id,
    columns: settlementColumns(leave),
    filters: h(Filters, { place, fixed }),
    empty: h(Empty, {
      isFiltered: [...query.keys()].some((name) => name !== "sort" && !(name in fixed)),
      isOfThing: Object.keys(fixed).length > 0
    })
  })
}

export const SettlementsView = (): VNode<any> => h(SettlementList, { title: "All settlements", isPage: true })

/** Position in a list by offset, and buttons to page through it. */
export const Paging = (props: { readonly of: Listed<unknown>; readonly go: (offset: number) => void }): VNode<any> => {
  const { items, pagination } = props.of
  const { limit, offset, total } = pagination
  const shown = total === 0 ? "None" : `${count(offset + 1)} to ${count(offset + items.length)} of ${count(total)}`
  const button = (label: string, disabled: boolean, to: number) =>
    h("button", { type: "button", disabled, onClick: () => props.go(to) }, label)
  return tag(
    "p.row",
    tag("span.quiet", shown),
    total <= limit
      ? null
      : [
          button("Newer", offset === 0, Math.max(0, offset - limit)),
          button("Older", offset + limit >= total, offset + limit)
        ]
  )
}

export const listHref = (query: Readonly<Record<string, string | undefined>>): string =>
  hrefOf("settlements", "", query)
