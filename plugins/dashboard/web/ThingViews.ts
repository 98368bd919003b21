// The pages of an account, an asset, an origin and a key: identity, figures and settlements.
import { h, type VNode } from "preact"
import { useFacts } from "./about.ts"
import { useAsked } from "./ask.ts"
import { Meter } from "./Bars.ts"
import { CursorList } from "./CursorList.ts"
import { amount, count, counted, percent, stroops } from "./format.ts"
import { bareUrl } from "./listings.ts"
import { type Child, Figures, Moment, panel, Shown, State, written } from "./parts.ts"
import { hrefOf, payeePageOf, usePlace } from "./place.ts"
import type { Cataloged, Counterparty, FacilitatorStatus, Listed, Participant, Pulse, Selling } from "./reports.ts"
import { listingColumns } from "./ResourcesView.ts"
import { SettlementList } from "./SettlementsView.ts"
import { Change, endedOf, PulseChart, Volume } from "./PulseChart.ts"
import { spanOf } from "./filters.ts"
import { Amount, Table } from "./Table.ts"
import { tag } from "./tag.ts"
import { Thing } from "./things.ts"

const Hero = (props: { readonly children?: Child; readonly label: string }): VNode<any> =>
  h("section", { class: "panel wide hero", "aria-label": props.label }, props.children)

/** The totals as buyer or as seller. An account without payments in that role is not an error. */
const Side = (props: { readonly id: string; readonly role: "buyer" | "seller" }): VNode<any> | null => {
  const isBuyer = props.role === "buyer"
  const path = `/analytics/v1/${props.role}s/${encodeURIComponent(props.id)}`
  const asked = useAsked<Participant>(path, 15_000)
  const others = useAsked<Listed<Counterparty>>(`${path}/counterparties?limit=5`, 30_000)
  if (asked.state === "failed" && asked.status === 404) return null
  return panel(
    { title: isBuyer ? "As payer" : "As recipient" },
    h(Shown<Participant>, {
      asked,
      show: (of) =>
        h(Figures, {
          items: [
            ...of.amounts.map((one) => ({
              label: isBuyer ? "Paid" : "Received",
              value: amount(one.amount, one)
            })),
            {
              label: "Success rate",
              value: percent(of.successful_transactions, of.total_transactions),
              note: `${count(of.successful_transactions)} of ${count(of.total_transactions)} settled`
            },
            { label: isBuyer ? "Recipients" : "Payers", value: count(of.unique_counterparties) },
            { label: "Last payment", value: h(Moment, { at: of.latest_activity }) }
          ]
        })
    }),
    others.state === "ready" && others.body.items.length > 0
      ? h(Table<Counterparty>, {
          label: isBuyer ? "Most frequent recipients" : "Most frequent payers",
          rows: others.body.items,
          keyOf: ({ address }) => address,
          cards: true,
          empty: "",
          columns: [
            {
              head: isBuyer ? "Most frequent recipients" : "Most frequent payers",
              card: "first",
              cell: ({ address }) => h(Thing, { kind: "account", id: address })
            },
            {
              head: "Volume",
              numeric: true,
              card: "last",
              cell: (row) => h(Amount, { units: row.total_amount, of: row })
            },
            { head: "Settlements", numeric: true, card: "under", cell: ({ tx_count }) => count(tx_count) }
          ]
        })
      : null
  )
}

/** A recipient's resources by revenue, and the organic share. */
const Selling = ({ id }: { readonly id: string }): VNode<any> | null => {
  const asked = useAsked<Selling>(`/analytics/v1/sellers/${encodeURIComponent(id)}/resources`, 30_000)
  if (asked.state !== "ready" || asked.body.resources.length === 0) return null
  const { organic, over, resources, settled } = asked.body
  return panel(
    { title: "Resources sold", wide: true },
    h(Table<Selling["resources"][number]>, {
      label: "Resources sold",
      rows: resources,
      keyOf: ({ asset, resource_url }) => `${resource_url} ${asset}`,
      cards: true,
      empty: "",
      columns: [
        {
          head: "Resource",
          card: "first",
          cell: (row) =>
            row.resource_id === null
              ? written(bareUrl(row.resource_url))
              : h(Thing, {
                  kind: "resource",
                  id: row.resource_id,
                  text: bareUrl(row.resource_url),
                  copies: row.resource_url
                })
        },
        { head: "Volume", numeric: true, card: "last", cell: (row) => h(Amount, { units: row.amount, of: row }) },
        { head: "Settled", numeric: true, card: "under", cell: (row) => count(row.settled) },
        { head: "Success rate", numeric: true, card: "aside", cell: (row) => percent(row.settled, row.settlements) }
      ]
    }),
    tag(
      "p.quiet",
      `Organic share of the newest ${counted(over, "settlement")}: ${percent(organic, settled)}. `,
      "A payment is organic if this account had not paid its payer before."
    )
  )
}

export const AccountView = ({ id }: { readonly id: string }): VNode<any> =>
  tag(
    "div.grid",
    h(
      Hero,
      { label: "Account" },
      h(Thing, { kind: "account", id, whole: true }),
      id.startsWith("p_") ? null : h("a", { class: "quiet", href: payeePageOf(id) }, "Public page")
    ),
    h(Side, { id, role: "seller" }),
    h(Side, { id, role: "buyer" }),
    h(Selling, { id }),
    h(SettlementList, { title: "Settlements", fixed: { party: id } })
  )

const AssetPulse = ({ id }: { readonly id: string }): VNode<any> => {
  const { query } = usePlace()
  const { from, to } = spanOf(query, "30d")
  const asked = new URLSearchParams({
    asset: id,
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to })
  })
  return panel(
    { title: "Volume", wide: true },
    h(Shown<Pulse>, {
      asked: useAsked<Pulse>(`/analytics/v1/pulse?${asked}`, 15_000),
      show: (of) => [
        h(Figures, {
          items: [
            {
              label: "Volume",
              value: h(Volume, { of, sums: of.now }),
              note: h(Change, {
                now: Number(of.now.amount),
                before: of.before === null ? undefined : Number(of.before.amount)
              })
            },
            {
              label: "Settled",
              value: count(of.now.settled),
              note: h(Change, { now: of.now.settled, before: of.before?.settled })
            },
            { label: "Success rate", value: percent(of.now.settled, endedOf(of.now)) }
          ]
        }),
        h(PulseChart, { of })
      ]
    })
  )
}

export const AssetView = ({ id }: { readonly id: string }): VNode<any> => {
  const known = useFacts()?.assets.find(({ asset }) => asset === id)
  return tag(
    "div.grid",
    h(
      Hero,
      { label: "Asset" },
      tag("div.row", tag("span.sum", known?.symbol ?? "Unlisted asset")),
      h(Thing, { kind: "asset", id, whole: true }),
      tag(
        "p.quiet",
        known === undefined
          ? "This facilitator's profile does not list this contract; amounts are atomic units."
          : `${known.decimals} decimals; accepted by this facilitator.`
      )
    ),
    h(AssetPulse, { id }),
    h(SettlementList, { title: "Settlements", fixed: { asset: id }, leave: ["Asset"] })
  )
}

const listingsShown = 10

export const OriginView = ({ id }: { readonly id: string }): VNode<any> =>
  tag(
    "div.grid",
    h(Hero, { label: "Origin" }, h(Thing, { kind: "origin", id, whole: true })),
    h(CursorList<Cataloged>, {
      title: "Listings",
      name: "listings",
      path: `/analytics/v1/resources?${new URLSearchParams({ origin: id })}`,
      limit: listingsShown,
      keyOf: (row) => row.id,
      columns: listingColumns,
      empty: "Nothing of this origin is listed."
    }),
    h(SettlementList, { title: "Settlements", fixed: { origin: id } })
  )

/** A key: its usage of today's limits, and its settlements. */
export const KeyView = ({ id, mayOperate }: { readonly id: string; readonly mayOperate: boolean }): VNode<any> => {
  const asked = useAsked<FacilitatorStatus>(mayOperate ? "/dashboard/v1/standing" : undefined, 10_000)
  const fees = asked.state === "ready" ? asked.body.fees : undefined
  const own = fees?.principals.find(({ principal }) => principal === id)
  const used = BigInt(own?.charged_stroops ?? 0) + BigInt(own?.reserved_stroops ?? 0)
  const limit = BigInt(fees?.limit_per_principal_stroops ?? 0)
  return tag(
    "div.grid",
    h(
      Hero,
      { label: "Key" },
      h(Thing, { kind: "key", id, whole: true }),
      own === undefined ? null : h(State, { word: "active" })
    ),
    fees === undefined
      ? null
      : id === "anonymous"
        ? panel(
            { title: "Limits today", wide: true },
            tag(
              "p.quiet",
              "Callers without a key are limited by their address; ",
              h("a", { href: hrefOf("standing") }, "Operation"),
              " has the fees of each."
            )
          )
        : panel(
            { title: "Limits today", wide: true },
            h(Meter, {
              label: "Sponsored fees",
              used: Number(used),
              of: Number(limit),
              text: `${stroops(used > limit ? 0n : limit - used)} left`,
              note:
                `${stroops(own?.charged_stroops ?? "0")} charged and ${stroops(own?.reserved_stroops ?? "0")} ` +
                `reserved of ${stroops(limit)} a UTC day`
            })
          ),
    h(SettlementList, { title: "Settlements", fixed: { key: id }, leave: ["Key"] })
  )
}
