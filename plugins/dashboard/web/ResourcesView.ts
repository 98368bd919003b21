// The catalog as its operator sees it: every listing with its state, and the rejected declarations.
import { h, type VNode } from "preact"
import { useAsked } from "./ask.ts"
import { CursorList } from "./CursorList.ts"
import { type Choosing, FilterBar } from "./FilterBar.ts"
import { address, count } from "./format.ts"
import { bareUrl, grades } from "./listings.ts"
import { Moment, panel, SaveCsv, Shown, State, written } from "./parts.ts"
import { amend, pageOf, usePlace } from "./place.ts"
import { reasonText } from "./reasons.ts"
import type { Cataloged, Listed, Rejected } from "./reports.ts"
import { titleOf } from "./ResourceView.ts"
import { Paging } from "./SettlementsView.ts"
import { type Column, Table } from "./Table.ts"
import { tag } from "./tag.ts"
import { Thing } from "./things.ts"

const pageSize = 25

export const listingColumns: ReadonlyArray<Column<Cataloged>> = [
  {
    head: "Listing",
    card: "first",
    cell: (row) => [
      h("a", { href: pageOf("resource", row.id) }, written(titleOf(row))),
      titleOf(row) === bareUrl(row.resource) ? null : tag("div.url", written(address(row.resource)))
    ]
  },
  {
    head: "State",
    card: "last",
    cell: ({ status, status_reason }) => [
      h(State, { word: status }),
      status_reason === null || status === "active"
        ? null
        : h("div", { class: "quiet reason", title: status_reason }, reasonText(status_reason))
    ]
  },
  { head: "Terms", card: "under", cell: ({ grade }) => grades[grade] ?? grade },
  {
    head: "Recipient",
    cell: ({ pay_tos }) => (pay_tos?.[0] === undefined ? "–" : h(Thing, { kind: "account", id: pay_tos[0] }))
  },
  { head: "Version", numeric: true, isMiddle: true, cell: ({ version }) => count(version) },
  { head: "Listed", isMiddle: true, cell: ({ created_at, updated_at }) => h(Moment, { at: created_at ?? updated_at }) },
  { head: "Last paid", card: "aside", cell: ({ last_seen_paid_at }) => h(Moment, { at: last_seen_paid_at }) }
]

const choices: ReadonlyArray<Choosing> = [
  {
    name: "state",
    label: "State",
    choices: [
      ["", "All states"],
      ["active", "Active"],
      ["stale", "Stale"],
      ["quarantined", "Quarantined"],
      ["removed", "Removed"]
    ]
  },
  { name: "grade", label: "Terms", choices: [["", "Terms of any source"], ...Object.entries(grades)] },
  {
    name: "type",
    label: "Kind",
    choices: [
      ["", "HTTP and tools"],
      ["http", "HTTP"],
      ["mcp", "MCP tools"]
    ]
  }
]

const filterNames = ["state", "grade", "type", "q", "origin", "payTo"]

const Listings = ({ query }: { readonly query: URLSearchParams }): VNode<any> => {
  const given = filterNames.flatMap((name) => {
    const value = query.get(name) ?? ""
    return value === "" ? [] : [[name, value] as const]
  })
  return h(CursorList<Cataloged>, {
    title: "All listings",
    name: "listings",
    path: `/analytics/v1/resources?${new URLSearchParams(Object.fromEntries(given))}`,
    limit: pageSize,
    keyOf: ({ id }) => id,
    columns: listingColumns,
    empty:
      given.length > 0
        ? "No listing matches these filters. Take one away."
        : "No listings yet. A resource is listed when a payment that declares it is verified.",
    filters: h(FilterBar, {
      query,
      choices,
      fields: [
        { name: "q", label: "Name or URL holds" },
        { name: "origin", label: "Origin" },
        { name: "payTo", label: "Recipient" }
      ]
    })
  })
}

const Rejections = ({ query }: { readonly query: URLSearchParams }): VNode<any> => {
  const offset = Math.max(0, Math.trunc(Number(query.get("rejected") ?? 0)) || 0)
  const go = (to: number) => amend({ rejected: to === 0 ? "" : String(to) })
  const path = `/analytics/v1/rejections?limit=${pageSize}&offset=${offset}`
  return panel(
    { title: "Rejected declarations", wide: true, actions: h(SaveCsv, { name: "rejected declarations", path }) },
    h(Shown<Listed<Rejected>>, {
      asked: useAsked<Listed<Rejected>>(path, 30_000),
      show: (of) => [
        h(Table<Rejected>, {
          label: "Rejected declarations",
          rows: of.items,
          keyOf: (row) => String(of.items.indexOf(row)),
          cards: true,
          empty: "Every declaration was taken.",
          columns: [
            { head: "URL", card: "first", cell: ({ url }) => written(address(url)) },
            {
              head: "Reason",
              card: "under",
              cell: ({ detail, reason }) => [
                reason === null ? "–" : reasonText(reason),
                detail === null ? null : tag("div.quiet", written(detail))
              ]
            },
            { head: "Recipient", cell: ({ pay_to }) => h(Thing, { kind: "account", id: pay_to }) },
            { head: "Times", numeric: true, cell: ({ times }) => count(times) },
            { head: "Last seen", card: "aside", cell: ({ last_at }) => h(Moment, { at: last_at }) }
          ]
        }),
        of.items.length === 0 ? null : h(Paging, { of, go })
      ]
    })
  )
}

export const ResourcesView = (): VNode<any> => {
  const { query } = usePlace()
  return tag("div.grid", h(Listings, { query }), h(Rejections, { query }))
}
