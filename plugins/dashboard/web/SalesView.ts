// A seller's own sales: a live list of its key's settlements from the last 15 minutes on, and below it all payments to
// an account, from the reports. Refusals carry a sentence.
import { h, type VNode } from "preact"
import { useState } from "preact/hooks"
import { useAsked } from "./ask.ts"
import { LinkState, Moment, Panel, SaveCsv, SettlementState, Shown } from "./parts.ts"
import { Table } from "./Table.ts"
import { type AssetShown, figureOf } from "./prices.ts"
import { Reason } from "./reasons.ts"
import type { Listed, Settlement } from "./reports.ts"
import { Paging, settlementColumns } from "./SettlementsView.ts"
import { type Link, useStream } from "./stream.ts"
import { Thing } from "./things.ts"

interface Sale {
  readonly id: string
  readonly status: string
  readonly scheme: string
  readonly asset: string
  readonly amount: string
  readonly payer: string
  readonly payTo: string
  readonly transaction: string
  readonly recordedAt: string
  readonly errorReason?: string
}

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

export const SalesView = ({ assets }: { readonly assets: ReadonlyArray<AssetShown> }): VNode<any> => {
  const { link, sales } = useSales()
  return h(
    Panel,
    { title: "Sales of this key", wide: true, actions: h(LinkState, { link }) },
    h(Table<Sale>, {
      label: "Sales",
      rows: sales,
      keyOf: ({ id }) => id,
      empty: "No sales in the last 15 minutes. New ones appear here as they happen.",
      cards: true,
      columns: [
        { head: "Time", cell: ({ recordedAt }) => h(Moment, { at: recordedAt }) },
        {
          head: "State",
          card: "last",
          cell: ({ errorReason, status }) => [h(SettlementState, { word: status }), h(Reason, { word: errorReason })]
        },
        { head: "Amount", numeric: true, card: "first", cell: ({ amount, asset }) => figureOf(amount, asset, assets) },
        { head: "Payer", cell: ({ payer }) => h(Thing, { kind: "account", id: payer }) },
        { head: "Recipient", cell: ({ payTo }) => h(Thing, { kind: "account", id: payTo }) },
        { head: "Transaction", cell: ({ transaction }) => h(Thing, { kind: "settlement", id: transaction }) }
      ]
    })
  )
}

const pageSize = 25

const Paid = ({ account }: { readonly account: string }): VNode<any> => {
  const [offset, go] = useState(0)
  const path = `/analytics/v1/transactions?payTo=${encodeURIComponent(account)}&limit=${pageSize}&offset=${offset}`
  return h(Shown<Listed<Settlement>>, {
    asked: useAsked(path, 15_000) as ReturnType<typeof useAsked<Listed<Settlement>>>,
    show: (of) => [
      h(SaveCsv, { name: "sales", path }),
      h(Table<Settlement>, {
        label: "Paid to this account",
        rows: of.items,
        keyOf: ({ id }) => id,
        empty: "No payments to this account here.",
        cards: true,
        columns: settlementColumns(["Recipient", "Fee", "Key"])
      }),
      h(Paging, { of, go })
    ]
  })
}

export const AccountView = (): VNode<any> => {
  const [account, change] = useState("")
  return h(
    Panel,
    { title: "Payments to an account", wide: true },
    h(
      "form",
      {
        class: "line",
        onSubmit: (event: SubmitEvent) => {
          event.preventDefault()
          change(String(new FormData(event.currentTarget as HTMLFormElement).get("account") ?? "").trim())
        }
      },
      h(
        "label",
        null,
        "Account (payTo)",
        h("input", { name: "account", required: true, maxLength: 128, spellcheck: false })
      ),
      h("button", { type: "submit", class: "main" }, "Show")
    ),
    account === "" ? null : h(Paid, { account, key: account })
  )
}
