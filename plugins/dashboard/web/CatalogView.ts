// The catalog for people: browse and search, with each resource's price, payee and evidence: whether a payment was
// observed, and whether the origin confirms it. The URL holds the query and the page. All data comes from the public
// discovery routes. Sellers' strings are shown as text.
import { h, type VNode } from "preact"
import { useAsked } from "./ask.ts"
import { CatalogFacets, filterNames, Marked } from "./CatalogFacets.ts"
import { type Choices, Select } from "./FilterBar.ts"
import { address, count, counted, percent } from "./format.ts"
import { bareUrl, grades, nameOf } from "./listings.ts"
import { Moment, Notice, panel, SaveCsv, Shown, State, written } from "./parts.ts"
import { amend, payeePageOf, picked, publicPageOf, usePlace, useTyped } from "./place.ts"
import { PriceHistory } from "./PriceHistory.ts"
import { type AssetShown, priceOf } from "./prices.ts"
import type { Listing, ListingsPage, PaymentOption } from "./reports.ts"
import { tag } from "./tag.ts"
import { Thing } from "./things.ts"

const pageSize = 12

const evidenceOf = ({ grade, payers, settlements, uptime, verification }: Listing): string =>
  [
    ...(grade === undefined ? [] : [`terms ${(grades[grade] ?? grade).toLowerCase()}`]),
    ...(settlements === undefined || payers === undefined
      ? []
      : [`${counted(settlements, "settlement")} from ${counted(payers, "payer")} in 30 days`]),
    ...(uptime === undefined ? [] : [`${percent(uptime, 1)} uptime`]),
    ...(verification === "payment_observed" ? [] : ["no payment observed yet"])
  ].join(" · ")

const Terms = (props: { readonly terms: PaymentOption; readonly assets: ReadonlyArray<AssetShown> }): VNode<any> =>
  tag(
    "span.row",
    tag("span.price", priceOf(props.terms, props.assets)),
    tag("span.quiet", props.terms.scheme, " on ", props.terms.network, " to "),
    h(Thing, { kind: "account", id: props.terms.payTo, href: payeePageOf(props.terms.payTo) })
  )

const Item = (props: {
  readonly one: Listing
  readonly matches: NonNullable<ListingsPage["matches"]>[number] | undefined
  readonly assets: ReadonlyArray<AssetShown>
}): VNode<any> => {
  const { assets, matches = {}, one } = props
  const spans = one.toolName === undefined ? matches.serviceName : matches.toolName
  return tag(
    "li.item",
    tag("h3", h("a", { href: publicPageOf(one) }, h(Marked, { of: nameOf(one), spans }))),
    nameOf(one) === bareUrl(one.resource) ? null : tag("div.url", written(address(one.resource))),
    one.description === undefined ? null : tag("p", h(Marked, { of: one.description, spans: matches.description })),
    one.accepts.slice(0, 4).map((terms, index) => h(Terms, { key: index, terms, assets })),
    tag(
      "div.row",
      h(State, { word: one.status }),
      h(State, { word: one.ownership }),
      tag(
        "span.quiet",
        evidenceOf(one),
        ...(one.lastSettledAt === undefined ? [] : [" · last paid ", h(Moment, { at: one.lastSettledAt })])
      )
    ),
    one.tags === undefined || one.tags.length === 0 ? null : tag("div.row.quiet", one.tags.map(written)),
    tag(
      "div.disclosures",
      h(PriceHistory, { one, assets }),
      tag(
        "details",
        tag("summary", "Declaration"),
        tag("p.quiet", "Changed ", h(Moment, { at: one.lastUpdated }), `; version ${one.versionHash.slice(0, 12)}`),
        h("pre", { tabIndex: 0 }, JSON.stringify(one, null, 2))
      )
    )
  )
}

const pathOf = (query: URLSearchParams): string => {
  const asked = new URLSearchParams({
    limit: String(pageSize),
    ...Object.fromEntries(picked(query, ["cursor", "query", ...filterNames]))
  })
  if (asked.has("query")) asked.set("matches", "1")
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
    tag(
      "label",
      "Search",
      h("input", {
        type: "search",
        maxLength: 512,
        placeholder: "weather of a city",
        value: words,
        onInput: ({ target }: Event) => type((target as HTMLInputElement).value)
      })
    ),
    tag(
      "label",
      "Kind",
      h(Select, {
        label: "Kind",
        value: query.get("type") ?? "",
        choices: kinds,
        change: (kind) => amend({ type: kind, cursor: "" })
      })
    ),
    tag(
      "label.check",
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
const Pages = (props: { readonly of: ListingsPage["pagination"]; readonly isFirst: boolean }): VNode<any> => {
  const { cursor, total } = props.of
  return tag(
    "p.row",
    total === undefined ? null : tag("span.quiet", `${count(total)} in all`),
    props.isFirst ? null : h("button", { type: "button", onClick: () => amend({ cursor: "" }) }, "First page"),
    cursor === null ? null : h("button", { type: "button", onClick: () => amend({ cursor }) }, "Next page")
  )
}

export const CatalogView = ({ assets }: { readonly assets: ReadonlyArray<AssetShown> }): VNode<any> => {
  const { query } = usePlace()
  const path = pathOf(query)
  const feed = `/discovery/feed?${picked(query, ["query", ...filterNames])}`
  const actions = tag("span.row", h("a", { href: feed }, "Feed"), h(SaveCsv, { name: "the catalog", path }))
  return panel(
    { title: "Resources for sale", wide: true, actions },
    h(Filters, { query }),
    h(CatalogFacets, { query, assets }),
    h(Shown<ListingsPage>, {
      asked: useAsked<ListingsPage>(path, 10_000),
      show: ({ corrected = [], items, matches, nearestOnly, pagination, partialResults, resources }) => {
        const found = items ?? resources ?? []
        return [
          partialResults
            ? h(Notice, { kind: "hint" }, "Part of the search timed out; the results are incomplete.")
            : null,
          nearestOnly === true
            ? h(Notice, { kind: "hint" }, "No listing is known to match; these are the nearest.")
            : null,
          corrected.length === 0
            ? null
            : h(
                Notice,
                { kind: "hint" },
                `Searched for ${corrected.map(({ instead, word }) => `“${instead}” instead of “${word}”`).join(", ")}.`
              ),
          found.length === 0
            ? tag(
                "p.quiet",
                query.has("query")
                  ? "No listing matches. Use other words, or include unpaid resources."
                  : "No listings yet. A resource is listed when a payment for it is verified."
              )
            : tag(
                "ul.list",
                found.map((one, at) =>
                  h(Item, {
                    key: `${one.type} ${one.resource} ${one.toolName ?? ""}`,
                    one,
                    matches: matches?.[at],
                    assets
                  })
                )
              ),
          h(Pages, { of: pagination, isFirst: !query.has("cursor") })
        ]
      }
    })
  )
}
