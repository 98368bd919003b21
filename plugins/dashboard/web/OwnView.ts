// The view of the signed-in account: its totals, its sales with the reason of each failure, its listings with the step
// that would raise their grade, and the observations of every payment to it.
import { h, type VNode } from "preact"
import { type Asked, useAsked } from "./ask.ts"
import { Select } from "./FilterBar.ts"
import { states } from "./filters.ts"
import { amount, count } from "./format.ts"
import { bareUrl } from "./listings.ts"
import { type Explained, ListingsShown, Observations } from "./ListingView.ts"
import { Figures, Moment, Notice, panel, SaveCsv, SettlementState, Shown, written } from "./parts.ts"
import { amend, usePlace } from "./place.ts"
import { Amount, Table } from "./Table.ts"
import { Reason } from "./reasons.ts"
import type { Listed, Participant, Settlement } from "./reports.ts"
import { Paging } from "./SettlementsView.ts"
import { tag } from "./tag.ts"
import { Thing } from "./things.ts"

const TotalsShown = ({ of }: { readonly of: Participant }): VNode<any> =>
  h(Figures, {
    items: [
      ...of.amounts.map((one) => ({
        label: `Paid in ${one.asset_symbol ?? "another asset"}`,
        value: amount(one.amount, one)
      })),
      { label: "Settled", value: count(of.successful_transactions), note: "payments" },
      { label: "Failed", value: count(of.failed_transactions), note: "not settled" },
      { label: "Buyers", value: count(of.unique_counterparties) }
    ]
  })

/** An account that was never paid gets an empty state, not an error. */
const TotalsAsked = ({ asked }: { readonly asked: Asked<Participant> }): VNode<any> =>
  asked.state === "failed" && asked.status === 404
    ? tag("p.quiet", "This account has received no payment through this facilitator yet.")
    : h(Shown<Participant>, { asked, show: (of) => h(TotalsShown, { of }) })

const pageSize = 25

const offsetOf = (query: URLSearchParams, name: string): number =>
  Math.max(0, Math.trunc(Number(query.get(name) ?? 0)) || 0)

const offsetText = (offset: number): string => (offset === 0 ? "" : String(offset))

const SalesTable = (props: { readonly rows: ReadonlyArray<Settlement>; readonly isFiltered: boolean }): VNode<any> =>
  h(Table<Settlement>, {
    label: "Your sales",
    rows: props.rows,
    keyOf: ({ id }) => id,
    empty: props.isFiltered
      ? "No sale is in this state. Choose another one."
      : "No sales yet. They appear here as they happen.",
    cards: true,
    columns: [
      { head: "Amount", numeric: true, card: "first", cell: (row) => h(Amount, { units: row.amount, of: row }) },
      {
        head: "State",
        card: "last",
        cell: ({ error_reason, status }) => [
          h(SettlementState, { word: status }),
          h(Reason, { word: error_reason ?? undefined })
        ]
      },
      { head: "Payer", cell: ({ payer }) => h(Thing, { kind: "account", id: payer, href: null }) },
      {
        head: "Resource",
        card: "under",
        cell: ({ resource_url }) => (resource_url === null ? "–" : written(bareUrl(resource_url)))
      },
      { head: "Time", card: "aside", cell: ({ occurred_at }) => h(Moment, { at: occurred_at }) },
      {
        head: "Transaction",
        card: "rest",
        cell: (row) => h(Thing, { kind: "settlement", id: row.transaction_hash, href: null })
      }
    ]
  })

const OwnSales = (): VNode<any> => {
  const { query } = usePlace()
  const status = query.get("status") ?? ""
  const asked = new URLSearchParams({
    limit: String(pageSize),
    offset: String(offsetOf(query, "sales")),
    ...(status === "" ? {} : { status })
  })
  const path = `/analytics/v1/account/transactions?${asked}`
  const choice = h(Select, {
    label: "State",
    value: status,
    choices: states,
    change: (to) => amend({ status: to, sales: "" })
  })
  return panel(
    {
      title: "Your sales",
      wide: true,
      actions: tag("span.row", choice, h(SaveCsv, { name: "sales", path }))
    },
    h(TotalsAsked, { asked: useAsked<Participant>("/analytics/v1/account", 15_000) }),
    h(Shown<Listed<Settlement>>, {
      asked: useAsked<Listed<Settlement>>(path, 5_000),
      show: (of) => [
        h(SalesTable, { rows: of.items, isFiltered: status !== "" }),
        h(Paging, { of, go: (to) => amend({ sales: offsetText(to) }) })
      ]
    })
  )
}

const OwnListings = (): VNode<any> => {
  const { query } = usePlace()
  const offset = offsetOf(query, "observed")
  const path = `/catalog/v1/account?limit=${pageSize}&offset=${offset}`
  return panel(
    { title: "Your listings", wide: true, actions: h(SaveCsv, { name: "observations", path }) },
    h(Shown<Explained & Listed<Explained["items"][number]>>, {
      asked: useAsked<Explained & Listed<Explained["items"][number]>>(path, 10_000),
      show: (of) => [
        of.listings.length === 0
          ? h(
              Notice,
              { kind: "hint" },
              of.items.length === 0
                ? "Nothing is listed that pays this account, and no payment to it has declared anything. " +
                    "A resource is listed when a payment that declares it is verified."
                : "Nothing is listed that pays this account. The observations below show why."
            )
          : h(ListingsShown, { listings: of.listings }),
        tag("h3", "Observations, with the reason why a resource is not listed"),
        h(Observations, { items: of.items }),
        h(Paging, { of, go: (to) => amend({ observed: offsetText(to) }) })
      ]
    })
  )
}

/** Shows the listings and the next step first, then the sales. */
export const OwnView = (): ReadonlyArray<VNode<any>> => [h(OwnListings, { key: "own" }), h(OwnSales, { key: "sales" })]
