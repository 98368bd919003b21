// A resource's price history and number of versions. Requested only when the reader opens it.
import { h, type VNode } from "preact"
import { useState } from "preact/hooks"
import { useAsked } from "./ask.ts"
import { type AssetShown, priceOf } from "./prices.ts"
import { counted } from "./format.ts"
import { Moment, Shown } from "./parts.ts"
import { payeePageOf } from "./place.ts"
import { Table } from "./Table.ts"
import { Thing } from "./things.ts"

interface Price {
  readonly method?: string
  readonly scheme: string
  readonly network: string
  readonly asset: string
  readonly amount: string
  readonly payTo: string
  readonly from: string
  readonly until: string | null
}

export interface History {
  readonly versions: ReadonlyArray<{ readonly version: number; readonly at: string }>
  readonly prices: ReadonlyArray<Price>
}

const pathOf = (one: { readonly resource: string; readonly type: string; readonly toolName?: string }): string =>
  `/discovery/history?${new URLSearchParams({
    resource: one.resource,
    type: one.type,
    ...(one.toolName === undefined ? {} : { toolName: one.toolName })
  })}`

export const Prices = (props: { readonly of: History; readonly assets: ReadonlyArray<AssetShown> }): VNode<any> =>
  h(
    "div",
    null,
    h(Table<Price>, {
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
    h("p", { class: "quiet" }, `${counted(props.of.versions.length, "version")} of its declaration.`)
  )

export const PriceHistory = (props: {
  readonly one: { readonly resource: string; readonly type: string; readonly toolName?: string }
  readonly assets: ReadonlyArray<AssetShown>
}): VNode<any> => {
  const [isOpen, open] = useState(false)
  const asked = useAsked<History>(isOpen ? pathOf(props.one) : undefined)
  return h(
    "details",
    { onToggle: (event: Event) => open((event.currentTarget as HTMLDetailsElement).open) },
    h("summary", null, "Price history"),
    isOpen ? h(Shown<History>, { asked, show: (of) => h(Prices, { of, assets: props.assets }) }) : null
  )
}
