// A resource's price history and number of versions. Requested only when the reader opens it.
import { h, type VNode } from "preact"
import { useState } from "preact/hooks"
import { useAsked } from "./ask.ts"
import { type AssetShown, priceOf } from "./prices.ts"
import { counted } from "./format.ts"
import { Moment, Shown } from "./parts.ts"
import { type ListingId, listingQuery, payeePageOf } from "./place.ts"
import type { ListingHistory } from "./reports.ts"
import { Table } from "./Table.ts"
import { tag } from "./tag.ts"
import { Thing } from "./things.ts"

export const Prices = (props: {
  readonly of: ListingHistory
  readonly assets: ReadonlyArray<AssetShown>
}): VNode<any> =>
  tag(
    "div",
    h(Table<ListingHistory["prices"][number]>, {
      label: "Prices over time",
      rows: props.of.prices,
      keyOf: (price) => String(props.of.prices.indexOf(price)),
      empty: "No prices yet.",
      cards: true,
      columns: [
        { head: "Price", card: "first", cell: (price) => priceOf(price, props.assets) },
        { head: "From", card: "under", cell: ({ from }) => h(Moment, { at: from }) },
        { head: "Until", card: "last", cell: ({ until }) => (until === null ? "Now" : h(Moment, { at: until })) },
        { head: "Method", card: "aside", cell: ({ method }) => method ?? "–" },
        { head: "Recipient", cell: ({ payTo }) => h(Thing, { kind: "account", id: payTo, href: payeePageOf(payTo) }) }
      ]
    }),
    tag("p.quiet", `${counted(props.of.versions.length, "version")} of its declaration.`)
  )

export const PriceHistory = (props: {
  readonly one: ListingId
  readonly assets: ReadonlyArray<AssetShown>
}): VNode<any> => {
  const [isOpen, open] = useState(false)
  const path = `/discovery/history?${new URLSearchParams(listingQuery(props.one, "resource"))}`
  const asked = useAsked<ListingHistory>(isOpen ? path : undefined)
  return h(
    "details",
    { onToggle: (event: Event) => open((event.currentTarget as HTMLDetailsElement).open) },
    tag("summary", "Price history"),
    isOpen ? h(Shown<ListingHistory>, { asked, show: (of) => h(Prices, { of, assets: props.assets }) }) : null
  )
}
