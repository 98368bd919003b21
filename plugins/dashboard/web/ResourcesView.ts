// The catalog as its operator sees it: every listing with its state, and the declarations that were not taken.
import { h, type VNode } from "preact"
import { useState } from "preact/hooks"
import { useAsked } from "./ask.ts"
import { address, count } from "./format.ts"
import { Moment, Panel, SaveCsv, Shown, State, written } from "./parts.ts"
import { pageOf } from "./place.ts"
import { reasonText } from "./reasons.ts"
import type { Cataloged, Listed } from "./reports.ts"
import { titleOf } from "./ResourceView.ts"
import { Paging } from "./SettlementsView.ts"
import { Table } from "./Table.ts"
import { Thing } from "./things.ts"

const pageSize = 25

const Listings = (): VNode<any> => {
  const [offset, go] = useState(0)
  const path = `/analytics/v1/resources?limit=${pageSize}&offset=${offset}`
  return h(
    Panel,
    { title: "All listings", wide: true, actions: h(SaveCsv, { name: "listings", path }) },
    h(Shown<Listed<Cataloged>>, {
      asked: useAsked<Listed<Cataloged>>(path, 15_000),
      show: (of) => [
        h(Table<Cataloged>, {
          label: "Listings",
          rows: of.items,
          keyOf: ({ id }) => id,
          cards: true,
          empty: "No listings yet. A resource is listed when a payment that declares it is verified.",
          columns: [
            {
              head: "Listing",
              card: "first",
              cell: (row) => [
                h("a", { href: pageOf("resource", row.id) }, written(titleOf(row))),
                titleOf(row) === address(row.resource)
                  ? null
                  : h("div", { class: "url" }, written(address(row.resource)))
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
            { head: "Owner", cell: ({ ownership }) => h(State, { word: ownership }) },
            {
              head: "Recipient",
              cell: ({ pay_tos }) => (pay_tos?.[0] === undefined ? "–" : h(Thing, { kind: "account", id: pay_tos[0] }))
            },
            { head: "Version", numeric: true, isWide: true, cell: ({ version }) => count(version) },
            { head: "Last paid", cell: ({ last_seen_paid_at }) => h(Moment, { at: last_seen_paid_at }) }
          ]
        }),
        h(Paging, { of, go })
      ]
    })
  )
}

interface Rejected {
  readonly url: string
  readonly pay_to: string
  readonly reason: string | null
  readonly detail: string | null
  readonly times: string
  readonly last_at: string
}

const Rejections = (): VNode<any> => {
  const [offset, go] = useState(0)
  const path = `/analytics/v1/rejections?limit=${pageSize}&offset=${offset}`
  return h(
    Panel,
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
              cell: ({ detail, reason }) => [
                reason === null ? "–" : reasonText(reason),
                detail === null ? null : h("div", { class: "quiet" }, written(detail))
              ]
            },
            { head: "Recipient", cell: ({ pay_to }) => h(Thing, { kind: "account", id: pay_to }) },
            { head: "Times", numeric: true, cell: ({ times }) => count(times) },
            { head: "Last seen", cell: ({ last_at }) => h(Moment, { at: last_at }) }
          ]
        }),
        of.items.length === 0 ? null : h(Paging, { of, go })
      ]
    })
  )
}

export const ResourcesView = (): VNode<any> => h("div", { class: "grid" }, h(Listings, {}), h(Rejections, {}))
