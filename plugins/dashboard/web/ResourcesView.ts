// The catalog as its operator sees it: every listing with its state, and one listing's versions, prices, ownership
// claims, observations and decisions. An operator quarantines and restores from here.
import { h, type VNode } from "preact"
import { useState } from "preact/hooks"
import { post, useAsked } from "./ask.ts"
import { Confirmed } from "./Confirmed.ts"
import { count } from "./format.ts"
import { type Child, Figures, Moment, Name, Panel, SaveCsv, Shown, State, Table, written } from "./parts.ts"
import { type AssetShown, priceOf } from "./prices.ts"
import type { Cataloged, Listed } from "./reports.ts"
import { Paging } from "./SettlementsView.ts"

const pageSize = 25

const titleOf = ({ resource, service_name, tool_name }: Cataloged): string => tool_name ?? service_name ?? resource

export const ResourcesView = (): VNode<any> => {
  const [offset, go] = useState(0)
  const path = `/analytics/v1/resources?limit=${pageSize}&offset=${offset}`
  return h(
    Panel,
    { title: "Listings", wide: true, actions: h(SaveCsv, { name: "listings", path }) },
    h(Shown<Listed<Cataloged>>, {
      asked: useAsked<Listed<Cataloged>>(path, 15_000),
      show: (of) => [
        h(Table<Cataloged>, {
          label: "Listings",
          rows: of.items,
          keyOf: ({ id }) => id,
          empty: "No listings yet.",
          columns: [
            { head: "Resource", cell: (row) => h("a", { href: `#resource/${row.id}` }, written(titleOf(row))) },
            { head: "URL", cell: (row) => (titleOf(row) === row.resource ? "–" : written(row.resource)) },
            {
              head: "State",
              cell: ({ status, status_reason }) => [
                h(State, { word: status }),
                status_reason === null ? null : h("div", { class: "quiet" }, status_reason)
              ]
            },
            { head: "Ownership", cell: ({ ownership }) => h(State, { word: ownership }) },
            { head: "Version", numeric: true, cell: ({ version }) => count(version) },
            { head: "Last paid", cell: ({ last_seen_paid_at }) => h(Moment, { at: last_seen_paid_at }) }
          ]
        }),
        h(Paging, { of, go })
      ]
    })
  )
}

type Entry = Readonly<Record<string, unknown>>

interface History extends Cataloged {
  readonly observed_count: string
  readonly settled_count: string
  readonly unique_payers: string
  readonly pay_tos: ReadonlyArray<string>
  readonly declaration: unknown
  readonly versions: ReadonlyArray<Entry>
  readonly payment_options: ReadonlyArray<Entry>
  readonly decisions: ReadonlyArray<Entry>
  readonly claims: ReadonlyArray<Entry>
  readonly observations: ReadonlyArray<Entry>
}

const isTime = (value: unknown): value is string => typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value)

const cellOf = (value: unknown): Child =>
  isTime(value)
    ? h(Moment, { at: value })
    : value === null || value === undefined
      ? "–"
      : typeof value === "object"
        ? h("details", null, h("summary", null, "Details"), h("pre", null, JSON.stringify(value, null, 2)))
        : /^[0-9a-f]{64}$|^[GC][A-Z2-7]{55}$/.test(String(value))
          ? h(Name, { text: String(value) })
          : written(String(value))

/** `pay_to` → `Pay to`. */
export const headOf = (name: string): string => `${name.slice(0, 1).toUpperCase()}${name.slice(1).replaceAll("_", " ")}`

/** A history, with a column for each member. */
const Entries = (props: { readonly title: string; readonly rows: ReadonlyArray<Entry> }): VNode<any> => {
  const names = [...new Set(props.rows.flatMap((row) => Object.keys(row)))].filter((name) => name !== "declaration")
  return h(
    Panel,
    { title: props.title, wide: true },
    h(Table<Entry>, {
      label: props.title,
      rows: props.rows.slice(0, 50),
      keyOf: (row) => String(props.rows.indexOf(row)),
      empty: "None.",
      columns: names.map((name) => ({ head: headOf(name), cell: (row: Entry) => cellOf(row[name]) }))
    })
  )
}

/** An option with its price in the asset's own units, in place of atomic ones. */
const pricedBy =
  (assets: ReadonlyArray<AssetShown>) =>
  ({ amount, asset, scheme, ...rest }: Entry): Entry => ({
    price: priceOf({ amount: String(amount), asset: String(asset), scheme: String(scheme) }, assets),
    scheme,
    ...rest,
    asset
  })

const moves: ReadonlyArray<readonly [move: string, label: string, question: string]> = [
  ["quarantine", "Quarantine", "Take this listing out of the public catalog until it is restored?"],
  ["restore", "Restore", "Show this listing in the public catalog again?"]
]

const Moves = (props: { readonly of: History; readonly mayMove: boolean; readonly done: () => void }): VNode<any> =>
  h(
    "div",
    { class: "row" },
    moves.map(([move, label, question]) =>
      h(Confirmed, {
        key: move,
        label,
        question,
        disabled: !props.mayMove || (move === "restore") === (props.of.status === "active"),
        run: (note) =>
          post("/catalog/v1/moves", {
            move,
            note,
            type: props.of.type,
            url: props.of.resource,
            ...(props.of.tool_name === null ? {} : { toolName: props.of.tool_name })
          }),
        done: props.done
      })
    ),
    props.mayMove ? null : h("span", { class: "quiet" }, "Actions require an operator's key.")
  )

export const ResourceView = (props: { readonly id: string; readonly mayMove: boolean }): VNode<any> => {
  const [read, readAgain] = useState(0)
  const about = useAsked<{ readonly assets: ReadonlyArray<AssetShown> }>("/dashboard/v1/about")
  const assets = about.state === "ready" ? about.body.assets : []
  return h(Shown<History>, {
    asked: useAsked<History>(`/analytics/v1/resources/${encodeURIComponent(props.id)}?refresh=${read}`),
    show: (of) =>
      h(
        "div",
        { class: "grid" },
        h(
          Panel,
          {
            title: "Listing",
            wide: true,
            actions: h(Moves, { of, mayMove: props.mayMove, done: () => readAgain(read + 1) })
          },
          h("h3", null, written(titleOf(of))),
          h("div", { class: "url" }, written(of.resource)),
          h(Figures, {
            items: [
              { label: "State", value: h(State, { word: of.status }), note: of.status_reason ?? undefined },
              { label: "Ownership", value: h(State, { word: of.ownership }) },
              { label: "Observed", value: count(of.observed_count) },
              { label: "Settled", value: count(of.settled_count) },
              { label: "Payers", value: count(of.unique_payers) }
            ]
          }),
          h(
            "details",
            null,
            h("summary", null, "Declaration"),
            h("pre", { tabIndex: 0 }, JSON.stringify(of.declaration, null, 2))
          )
        ),
        h(Entries, { title: "Versions", rows: of.versions }),
        h(Entries, { title: "Prices", rows: of.payment_options.map(pricedBy(assets)) }),
        h(Entries, { title: "Decisions", rows: of.decisions }),
        h(Entries, { title: "Ownership claims", rows: of.claims }),
        h(Entries, { title: "Observations", rows: of.observations })
      )
  })
}
