// One listing as its operator sees it: use, uptime and prices, decisions in sentences, its rank in a search for its own
// name, its versions, claims and observations, and its settlements. An operator can quarantine and restore it here.
import { h, type VNode } from "preact"
import { useState } from "preact/hooks"
import { useFacts } from "./about.ts"
import { post, useAsked } from "./ask.ts"
import { Confirmed } from "./Confirmed.ts"
import { type Decision, Decisions, stageText } from "./decisions.ts"
import { address, amount, count, percent } from "./format.ts"
import { nameOf } from "./listings.ts"
import { type Child, Figures, Moment, panel, Shown, State, written } from "./parts.ts"
import { type ListingId, listingQuery, publicPageOf } from "./place.ts"
import { priceOf } from "./prices.ts"
import { reasonText } from "./reasons.ts"
import type { Cataloged, ListingsPage, ResourceUse } from "./reports.ts"
import { SettlementList } from "./SettlementsView.ts"
import { type Column, Table } from "./Table.ts"
import { tag } from "./tag.ts"
import { Copy, Thing } from "./things.ts"

interface Version {
  readonly at: string
  readonly version: number
  readonly pay_to: string
  readonly document: unknown
}

interface Option {
  readonly operation: string
  readonly scheme: string
  readonly asset: string
  readonly amount: string
  readonly pay_to: string
  readonly first_seen_at: string
  readonly retired_at: string | null
}

interface ListingObservation {
  readonly url: string
  readonly stage: string
  readonly decision: string
  readonly reason: string | null
  readonly times: string
  readonly pay_to: string
  readonly last_at: string
}

interface Claim {
  readonly pay_to: string
  readonly first_seen_at: string
  readonly last_seen_at: string
}

export interface History extends Cataloged {
  readonly declaration: unknown
  readonly versions: ReadonlyArray<Version>
  readonly payment_options: ReadonlyArray<Option>
  readonly decisions: ReadonlyArray<Decision>
  readonly claims: ReadonlyArray<Claim>
  readonly observations: ReadonlyArray<ListingObservation>
}

/** The name of a listing in a report. */
export const titleOf = ({ resource, service_name, tool_name }: Cataloged): string =>
  nameOf({ resource, serviceName: service_name, toolName: tool_name })

const idOf = ({ resource, tool_name, type }: Cataloged): ListingId => ({ resource, type, toolName: tool_name })

const windows = [
  ["24h", "24 hours"],
  ["168h", "7 days"],
  ["720h", "30 days"],
  ["all", "All time"]
] as const

const account = (id: string): VNode<any> => h(Thing, { kind: "account", id })

const UseTable = ({ of }: { readonly of: ResourceUse }): VNode<any> => {
  const rows = windows.map(([key, label]) => ({ label, use: key === "all" ? of.all_time : of.windows[key]! }))
  return h(Table<(typeof rows)[number]>, {
    label: "Use",
    rows,
    keyOf: ({ label }) => label,
    cards: true,
    empty: "",
    columns: [
      { head: "Last", card: "first", cell: ({ label }) => label },
      { head: "Volume", numeric: true, card: "last", cell: ({ use }) => amount(use.total_amount, use) },
      { head: "Settlements", numeric: true, card: "under", cell: ({ use }) => count(use.calls) },
      { head: "Success rate", numeric: true, card: "aside", cell: ({ use }) => percent(use.successes, use.calls) },
      { head: "Payers", numeric: true, cell: ({ use }) => count(use.unique_buyers) }
    ]
  })
}

const rankedMax = 20

/** Rank in the public search for the listing's own name. */
const Rank = ({ of }: { readonly of: History }): VNode<any> => {
  const words = (of.tool_name ?? of.service_name ?? of.resource).slice(0, 200)
  const asked = useAsked<ListingsPage>(`/discovery/search?limit=${rankedMax}&query=${encodeURIComponent(words)}`)
  if (asked.state !== "ready") return tag("span.quiet", "–")
  const { resources = [] } = asked.body
  const at = resources.findIndex(
    ({ resource, toolName }) => resource === of.resource && (toolName ?? null) === of.tool_name
  )
  return tag(
    "span",
    at < 0 ? `Not in the first ${rankedMax}` : `${at + 1} of ${resources.length}`,
    tag("span.note", "for ", written(words))
  )
}

const Uptime = ({ of }: { readonly of: History }): VNode<any> => {
  const query = new URLSearchParams(listingQuery(idOf(of)))
  const asked = useAsked<{ readonly resource: { readonly uptime?: number } }>(`/discovery/resource?${query}`)
  const uptime = asked.state === "ready" ? asked.body.resource.uptime : undefined
  return tag(
    "span",
    uptime === undefined ? "–" : percent(uptime, 1),
    uptime === undefined ? tag("span.note", "not probed yet") : null
  )
}

const moves: ReadonlyArray<readonly [move: string, label: string, question: string]> = [
  ["quarantine", "Quarantine", "Take this listing out of the public catalog until it is restored?"],
  ["restore", "Restore", "Show this listing in the public catalog again?"]
]

const Moves = (props: { readonly of: History; readonly mayMove: boolean; readonly done: () => void }): VNode<any> =>
  tag(
    "div.row",
    moves
      .filter(([move]) => (move === "restore") !== (props.of.status === "active"))
      .map(([move, label, question]) =>
        h(Confirmed, {
          key: move,
          label,
          question,
          disabled: !props.mayMove,
          run: (note) => post("/catalog/v1/moves", { move, note, ...listingQuery(idOf(props.of)) }),
          done: props.done
        })
      ),
    props.mayMove ? null : tag("span.quiet", "Actions require an operator's key.")
  )

const optionColumns = (price: (option: Option) => string): ReadonlyArray<Column<Option>> => [
  { head: "Price", card: "first", cell: price },
  { head: "From", card: "under", cell: ({ first_seen_at }) => h(Moment, { at: first_seen_at }) },
  {
    head: "Until",
    card: "last",
    cell: ({ retired_at }) => (retired_at === null ? "Now" : h(Moment, { at: retired_at }))
  },
  { head: "Method", cell: ({ operation }) => operation || "–" },
  { head: "Scheme", cell: ({ scheme }) => scheme },
  { head: "Recipient", card: "aside", cell: ({ pay_to }) => account(pay_to) }
]

const versionColumns: ReadonlyArray<Column<Version>> = [
  { head: "Version", card: "first", cell: ({ version }) => count(version) },
  { head: "Since", card: "under", cell: ({ at }) => h(Moment, { at }) },
  { head: "Declared by", cell: ({ pay_to }) => account(pay_to) },
  {
    head: "Content",
    card: "last",
    cell: ({ document }) =>
      tag("details", tag("summary", "Show"), h("pre", { tabIndex: 0 }, JSON.stringify(document, null, 2)))
  }
]

const observationColumns: ReadonlyArray<Column<ListingObservation>> = [
  { head: "Decision", card: "first", cell: ({ decision }) => h(State, { word: decision }) },
  { head: "Reason", cell: ({ reason }) => (reason === null ? "–" : reasonText(reason)) },
  { head: "Stage", card: "under", cell: ({ stage }) => stageText(stage) },
  { head: "Times", numeric: true, cell: ({ times }) => count(times) },
  { head: "Recipient", cell: ({ pay_to }) => account(pay_to) },
  { head: "Last seen", card: "aside", cell: ({ last_at }) => h(Moment, { at: last_at }) }
]

const claimColumns: ReadonlyArray<Column<Claim>> = [
  { head: "Recipient", cell: ({ pay_to }) => account(pay_to) },
  { head: "First seen", cell: ({ first_seen_at }) => h(Moment, { at: first_seen_at }) },
  { head: "Last seen", cell: ({ last_seen_at }) => h(Moment, { at: last_seen_at }) }
]

const shownMax = 50

/** A history as a table. Hidden without entries. */
const Part = <Row>(props: {
  readonly title: string
  readonly rows: ReadonlyArray<Row>
  readonly columns: ReadonlyArray<Column<Row>>
}): VNode<any> | null =>
  props.rows.length === 0
    ? null
    : panel(
        { title: props.title, wide: true },
        h(Table<Row>, {
          label: props.title,
          rows: props.rows.slice(0, shownMax),
          keyOf: (row) => String(props.rows.indexOf(row)),
          columns: props.columns,
          cards: true,
          empty: ""
        })
      )

const Head = (props: { readonly of: History; readonly actions: Child }): VNode<any> => {
  const { of } = props
  return h(
    "section",
    { class: "panel wide hero", "aria-label": "Listing" },
    tag(
      "div.row",
      tag("span.sum", written(titleOf(of))),
      h(State, { word: of.status }),
      h(State, { word: of.ownership })
    ),
    tag("div.row", tag("span.url", written(address(of.resource))), h(Copy, { text: of.resource, noun: "URL" })),
    of.status_reason === null ? null : tag("p.quiet", written(reasonText(of.status_reason))),
    h(Figures, {
      items: [
        ...(of.origin === null
          ? []
          : [{ label: "Origin", value: h(Thing, { kind: "origin", id: of.origin }), isWide: true }]),
        {
          label: of.pay_tos?.length === 1 ? "Recipient" : "Recipients",
          value: (of.pay_tos ?? []).slice(0, 3).map((id) => h("div", { key: id }, account(id)))
        },
        { label: "Rank", value: h(Rank, { of }) },
        { label: "Uptime", value: h(Uptime, { of }) },
        { label: "Last paid", value: h(Moment, { at: of.last_seen_paid_at }) }
      ]
    }),
    tag("div.row", props.actions, h("a", { href: publicPageOf(idOf(of)) }, "Public page"))
  )
}

export const ResourceView = (props: { readonly id: string; readonly mayMove: boolean }): VNode<any> => {
  const [read, readAgain] = useState(0)
  const assets = useFacts()?.assets ?? []
  const path = `/analytics/v1/resources/${encodeURIComponent(props.id)}`
  const use = useAsked<ResourceUse>(`${path}/observability`, 30_000)
  return h(Shown<History>, {
    asked: useAsked<History>(`${path}?refresh=${read}`),
    show: (of) =>
      tag(
        "div.grid",
        h(Head, { of, actions: h(Moves, { of, mayMove: props.mayMove, done: () => readAgain(read + 1) }) }),
        panel({ title: "Use" }, h(Shown<ResourceUse>, { asked: use, show: (used) => h(UseTable, { of: used }) })),
        panel({ title: "Decisions" }, h(Decisions, { items: of.decisions })),
        h(Part<Option>, {
          title: "Prices",
          rows: of.payment_options,
          columns: optionColumns((one) => priceOf(one, assets))
        }),
        h(Part<Version>, { title: "Versions", rows: of.versions, columns: versionColumns }),
        h(Part<Claim>, { title: "Claims of recipients", rows: of.claims, columns: claimColumns }),
        h(Part<ListingObservation>, { title: "Observations", rows: of.observations, columns: observationColumns }),
        h(SettlementList, { title: "Settlements", fixed: { resourceId: props.id }, leave: ["Resource"] })
      )
  })
}
