// The catalog for people: browse and search, with each resource's price, payee and evidence: whether a payment was
// observed, and whether the origin confirms it. The URL holds the query and the page. All data comes from the public
// discovery routes. Sellers' strings are shown as text.
import { h, type VNode } from "preact"
import { useAsked } from "./ask.ts"
import { type Choices, Select } from "./FilterBar.ts"
import { count, counted, percent } from "./format.ts"
import { Moment, Notice, Panel, SaveCsv, Shown, State, written } from "./parts.ts"
import { amend, payeePageOf, picked, publicPageOf, usePlace, useTyped } from "./place.ts"
import { PriceHistory } from "./PriceHistory.ts"
import { type AssetShown, priceOf } from "./prices.ts"
import { Thing } from "./things.ts"

interface Terms {
  readonly scheme: string
  readonly network: string
  readonly asset: string
  readonly amount: string
  readonly payTo: string
}

interface Resource {
  readonly resource: string
  readonly type: "http" | "mcp"
  readonly toolName?: string
  readonly serviceName?: string
  readonly description?: string
  readonly tags?: ReadonlyArray<string>
  readonly accepts: ReadonlyArray<Terms>
  readonly lastUpdated: string
  readonly status: string
  readonly verification: string
  readonly ownership: string
  readonly versionHash: string
  /** Source of the description. */
  readonly grade?: string
  readonly settlements?: number
  readonly payers?: number
  readonly uptime?: number
  readonly extensions?: unknown
}

interface Found {
  readonly items?: ReadonlyArray<Resource>
  readonly resources?: ReadonlyArray<Resource>
  readonly partialResults: boolean
  readonly nearestOnly?: boolean
  readonly pagination: { readonly limit: number; readonly total?: number; readonly cursor: string | null }
}

const pageSize = 12

const gradeWords: Readonly<Record<string, string>> = {
  claimed: "description from a payment",
  declared: "description from the paid account",
  origin: "description from its origin"
}

/** Evidence for a listing, in one line. */
const evidenceOf = ({ grade, payers, settlements, uptime, verification }: Resource): string =>
  [
    ...(grade === undefined ? [] : [gradeWords[grade] ?? grade]),
    ...(settlements === undefined || payers === undefined
      ? []
      : [`${counted(settlements, "settlement")} from ${counted(payers, "payer")} in 30 days`]),
    ...(uptime === undefined ? [] : [`${percent(uptime, 1)} uptime`]),
    ...(verification === "payment_observed" ? [] : ["no payment observed yet"])
  ].join(" · ")

const Terms = (props: { readonly terms: Terms; readonly assets: ReadonlyArray<AssetShown> }): VNode<any> =>
  h(
    "span",
    { class: "row" },
    h("span", { class: "price" }, priceOf(props.terms, props.assets)),
    h("span", { class: "quiet" }, props.terms.scheme, " on ", props.terms.network, " to "),
    h(Thing, { kind: "account", id: props.terms.payTo, href: payeePageOf(props.terms.payTo) })
  )

const Item = (props: { readonly one: Resource; readonly assets: ReadonlyArray<AssetShown> }): VNode<any> => {
  const { assets, one } = props
  const title = one.toolName ?? one.serviceName ?? one.resource
  return h(
    "li",
    { class: "item" },
    h("h3", null, h("a", { href: publicPageOf(one) }, written(title))),
    title === one.resource ? null : h("div", { class: "url" }, written(one.resource)),
    one.description === undefined ? null : h("p", { class: "written" }, one.description),
    one.accepts.slice(0, 4).map((terms, index) => h(Terms, { key: index, terms, assets })),
    h(
      "div",
      { class: "row" },
      h(State, { word: one.status }),
      h(State, { word: one.ownership }),
      h("span", { class: "quiet" }, evidenceOf(one))
    ),
    one.tags === undefined || one.tags.length === 0 ? null : h("div", { class: "row quiet" }, one.tags.map(written)),
    h(
      "div",
      { class: "disclosures" },
      h(PriceHistory, { one, assets }),
      h(
        "details",
        null,
        h("summary", null, "Declaration"),
        h(
          "p",
          { class: "quiet" },
          "Changed ",
          h(Moment, { at: one.lastUpdated }),
          `; version ${one.versionHash.slice(0, 12)}`
        ),
        h("pre", { tabIndex: 0 }, JSON.stringify(one, null, 2))
      )
    )
  )
}

const pathOf = (query: URLSearchParams): string => {
  const asked = new URLSearchParams({
    limit: String(pageSize),
    ...Object.fromEntries(picked(query, ["type", "cursor", "query"]))
  })
  if (query.has("unpaid")) asked.set("include_unverified", "true")
  return `/discovery/${asked.has("query") ? "search" : "resources"}?${asked}`
}

const kinds: Choices = [
  ["", "HTTP and tools"],
  ["http", "HTTP"],
  ["mcp", "MCP tools"]
]

/** The filters are in the URL. A change returns to the first page. */
const Filters = ({ query }: { readonly query: URLSearchParams }): VNode<any> => {
  const [words, type] = useTyped(query.get("query") ?? "")
  return h(
    "form",
    {
      class: "line",
      role: "search",
      "aria-label": "The catalog",
      onSubmit: (event: SubmitEvent) => {
        event.preventDefault()
        amend({ query: words.trim(), cursor: "" })
      }
    },
    h(
      "label",
      null,
      "Search",
      h("input", {
        type: "search",
        maxLength: 512,
        placeholder: "weather of a city",
        value: words,
        onInput: ({ target }: Event) => type((target as HTMLInputElement).value)
      })
    ),
    h(
      "label",
      null,
      "Kind",
      h(Select, {
        label: "Kind",
        value: query.get("type") ?? "",
        choices: kinds,
        change: (kind) => amend({ type: kind, cursor: "" })
      })
    ),
    h(
      "label",
      { class: "check" },
      h("input", {
        type: "checkbox",
        checked: query.has("unpaid"),
        onChange: ({ target }: Event) => amend({ unpaid: (target as HTMLInputElement).checked ? "1" : "", cursor: "" })
      }),
      "Include unpaid resources"
    ),
    h("button", { type: "submit", class: "main" }, "Search")
  )
}

/** Paging through the catalog. The browser's back button returns to the previous page. */
const Pages = (props: { readonly of: Found["pagination"]; readonly isFirst: boolean }): VNode<any> => {
  const { cursor, total } = props.of
  return h(
    "p",
    { class: "row" },
    total === undefined ? null : h("span", { class: "quiet" }, `${count(total)} in all`),
    props.isFirst ? null : h("button", { type: "button", onClick: () => amend({ cursor: "" }) }, "First page"),
    cursor === null ? null : h("button", { type: "button", onClick: () => amend({ cursor }) }, "Next page")
  )
}

/** Browse and search. */
export const CatalogView = ({ assets }: { readonly assets: ReadonlyArray<AssetShown> }): VNode<any> => {
  const { query } = usePlace()
  const path = pathOf(query)
  return h(
    Panel,
    { title: "Resources for sale", wide: true, actions: h(SaveCsv, { name: "the catalog", path }) },
    h(Filters, { query }),
    h(Shown<Found>, {
      asked: useAsked<Found>(path, 10_000),
      show: ({ items, nearestOnly, pagination, partialResults, resources }) => {
        const found = items ?? resources ?? []
        return [
          partialResults
            ? h(Notice, { kind: "hint" }, "Part of the search timed out; the results are incomplete.")
            : null,
          nearestOnly === true
            ? h(Notice, { kind: "hint" }, "No listing is known to match; these are the nearest.")
            : null,
          found.length === 0
            ? h(
                "p",
                { class: "quiet" },
                query.has("query")
                  ? "No listing matches. Use other words, or include unpaid resources."
                  : "No listings yet. A resource is listed when a payment for it is verified."
              )
            : h(
                "ul",
                { class: "list" },
                found.map((one) => h(Item, { key: `${one.type} ${one.resource} ${one.toolName ?? ""}`, one, assets }))
              ),
          h(Pages, { of: pagination, isFirst: !query.has("cursor") })
        ]
      }
    })
  )
}
