// A seller's own sales: a live list of its key's settlements, starting 15 minutes back, and below it all payments to an
// account, from the reports. Refusals have a sentence.
import { h, type VNode } from "preact"
import { useState } from "preact/hooks"
import { searchedFor } from "./identifiers.ts"
import { LinkState, Moment, panel, SettlementState } from "./parts.ts"
import { amend, usePlace, useTyped } from "./place.ts"
import { Amount, Table } from "./Table.ts"
import type { AssetShown } from "./prices.ts"
import { Reason } from "./reasons.ts"
import type { Sale } from "./reports.ts"
import { SettlementList } from "./SettlementsView.ts"
import { type Link, useStream } from "./stream.ts"
import { tag } from "./tag.ts"
import { Thing } from "./things.ts"

const rowsMax = 50

const useSales = (): { readonly sales: ReadonlyArray<Sale>; readonly link: Link } => {
  const [sales, change] = useState<ReadonlyArray<Sale>>([])
  const link = useStream("/settlements/events", (data) => {
    const sale = JSON.parse(data) as Sale
    change((known) =>
      [sale, ...known.filter(({ id }) => id !== sale.id)]
        .sort((a, b) => (a.recordedAt < b.recordedAt ? 1 : -1))
        .slice(0, rowsMax)
    )
  })
  return { sales, link }
}

const saleAmount = ({ amount, asset }: Sale, assets: ReadonlyArray<AssetShown>) => {
  const known = assets.find((one) => one.asset === asset)
  return {
    units: amount,
    of: { asset, asset_symbol: known?.symbol ?? null, asset_decimals: known?.decimals ?? null }
  }
}

export const SalesView = ({ assets }: { readonly assets: ReadonlyArray<AssetShown> }): VNode<any> => {
  const { link, sales } = useSales()
  return panel(
    { title: "Sales of this key", wide: true, actions: h(LinkState, { link }) },
    h(Table<Sale>, {
      label: "Sales",
      rows: sales,
      keyOf: ({ id }) => id,
      empty: "No sales in the last 15 minutes. New ones appear here as they happen.",
      cards: true,
      columns: [
        { head: "Amount", numeric: true, card: "first", cell: (sale) => h(Amount, saleAmount(sale, assets)) },
        {
          head: "State",
          card: "last",
          cell: ({ errorReason, status }) => [h(SettlementState, { word: status }), h(Reason, { word: errorReason })]
        },
        { head: "Payer", card: "under", cell: ({ payer }) => h(Thing, { kind: "account", id: payer }) },
        { head: "Recipient", cell: ({ payTo }) => h(Thing, { kind: "account", id: payTo }) },
        { head: "Time", card: "aside", cell: ({ recordedAt }) => h(Moment, { at: recordedAt }) },
        {
          head: "Transaction",
          card: "rest",
          cell: ({ transaction }) => h(Thing, { kind: "settlement", id: transaction })
        }
      ]
    })
  )
}

export const AccountView = (): VNode<any> => {
  const account = usePlace().query.get("account") ?? ""
  const [typed, type] = useTyped(account)
  return tag(
    "div.stack.wide-grid",
    panel(
      { title: "Payments to an account", wide: true },
      h(
        "form",
        {
          class: "line",
          onSubmit: (event: SubmitEvent) => {
            event.preventDefault()
            amend({ account: searchedFor(typed) })
          }
        },
        tag(
          "label",
          "Recipient (G…)",
          h("input", {
            name: "account",
            required: true,
            maxLength: 128,
            spellcheck: false,
            value: typed,
            onInput: ({ target }: Event) => type((target as HTMLInputElement).value)
          })
        ),
        h("button", { type: "submit", class: "main" }, "Show")
      )
    ),
    account === ""
      ? null
      : h(SettlementList, {
          title: "Paid to this account",
          fixed: { payTo: account },
          leave: ["Recipient"],
          key: account
        })
  )
}
