// The choices beside the catalog, with the number of listings for each; and the words of a text that a query matched.
import { h, type VNode } from "preact"
import { useAsked } from "./ask.ts"
import { count, short } from "./format.ts"
import { written } from "./parts.ts"
import { amend, picked } from "./place.ts"
import { type AssetShown, priceOf } from "./prices.ts"
import type { FacetCounts } from "./reports.ts"
import { tag } from "./tag.ts"

type Spans = ReadonlyArray<ReadonlyArray<number>>

/** A text with its matched words marked. The text stays text. */
export const Marked = ({ of, spans = [] }: { readonly of: string; readonly spans?: Spans | undefined }): VNode<any> => {
  const parts: Array<VNode<any> | string> = []
  let from = 0
  for (const [start = 0, end = 0] of spans) {
    parts.push(of.slice(from, start), h("mark", { key: start }, of.slice(start, end)))
    from = end
  }
  return tag("bdi.written", ...parts, of.slice(from))
}

const kinds: Readonly<Record<string, string>> = { http: "HTTP", mcp: "MCP tools" }
const valuesMax = 5

interface Choice {
  readonly count: number
  readonly label: string
  readonly change: Readonly<Record<string, string>>
}

/** Filters of the catalog's listings, in the place and in discovery. */
export const filterNames = ["type", "asset", "maxPrice", "evidence"]

const choicesOf = (
  { facets }: FacetCounts,
  query: URLSearchParams,
  assets: ReadonlyArray<AssetShown>
): ReadonlyArray<Choice> => [
  ...facets.type.map((one) => ({ ...one, label: kinds[one.value] ?? one.value, change: { type: one.value } })),
  ...facets.asset.slice(0, valuesMax).map((one) => ({
    ...one,
    label: assets.find(({ asset }) => asset === one.value)?.symbol ?? short(one.value),
    change: { asset: one.value, maxPrice: "" }
  })),
  ...facets.maxPrice
    .filter(({ asset }) => asset === (query.get("asset") ?? assets[0]?.asset))
    .toSorted((a, b) => Number(a.value) - Number(b.value))
    .slice(0, valuesMax)
    .map((one) => ({
      ...one,
      label: `up to ${priceOf({ scheme: "exact", asset: one.asset!, amount: one.value }, assets)}`,
      change: { asset: one.asset!, maxPrice: one.value }
    }))
]

/** Each choice is a button; the chosen ones are pressed, and end with another press. */
export const CatalogFacets = (props: {
  readonly query: URLSearchParams
  readonly assets: ReadonlyArray<AssetShown>
}): VNode<any> | null => {
  const { assets, query } = props
  const asked = useAsked<FacetCounts>(`/discovery/facets?${picked(query, ["query", ...filterNames])}`)
  if (asked.state !== "ready" || asked.body.counted === 0) return null
  return h(
    "div",
    { class: "row", role: "group", "aria-label": "Narrow down" },
    choicesOf(asked.body, query, assets).map(({ change, count: listings, label }) => {
      const isChosen = Object.entries(change).every(([name, value]) => (query.get(name) ?? "") === value)
      const cleared = Object.fromEntries(Object.keys(change).map((name) => [name, ""]))
      return h(
        "button",
        {
          key: label,
          type: "button",
          "aria-pressed": isChosen,
          onClick: () => amend({ ...(isChosen ? cleared : change), cursor: "" })
        },
        written(`${label} (${count(listings)}${asked.body.complete ? "" : "+"})`)
      )
    })
  )
}
