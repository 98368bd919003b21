// Filters of settlements: converts the URL to the route's query, and defines the fields above the list. People write
// amounts in units of the chosen asset.
import { h, type VNode } from "preact"
import { useFacts } from "./about.ts"
import { type Choices, type Choosing, FilterBar, type Typing } from "./FilterBar.ts"
import { atomic } from "./format.ts"
import { amend, type Place } from "./place.ts"
import type { About } from "./reports.ts"

export const ranges: Choices = [
  ["24h", "24 hours"],
  ["7d", "7 days"],
  ["30d", "30 days"],
  ["90d", "90 days"]
]
const rangeHours: Readonly<Record<string, number>> = { "24h": 24, "7d": 168, "30d": 720, "90d": 2_160 }
const millisPerHour = 3_600_000

/**
 * The query's time span, from its range or its own times. A range starts at a whole hour, so that the path is stable
 * between renders.
 */
export const spanOf = (query: URLSearchParams, absent?: string): { readonly from?: string; readonly to?: string } => {
  const [from, to] = [query.get("from"), query.get("to")]
  if (from !== null || to !== null) return { ...(from === null ? {} : { from }), ...(to === null ? {} : { to }) }
  const hours = rangeHours[query.get("range") ?? absent ?? ""]
  if (hours === undefined) return {}
  const start = (Math.floor(Date.now() / millisPerHour) - hours + 1) * millisPerHour
  return { from: new Date(start).toISOString() }
}

export const states: Choices = [
  ["", "All states"],
  ["success", "Settled"],
  ["failed", "Failed"],
  ["unknown", "Pending"]
]

const sorts: Choices = [
  ["", "Newest first"],
  ["oldest", "Oldest first"],
  ["largest", "Largest first"],
  ["smallest", "Smallest first"]
]

/** Members that the route accepts unchanged. */
const plain = ["status", "payer", "payTo", "party", "reason", "key", "origin", "resourceId", "scheme"] as const

/** The route's query for a list; `fixed` are the members that the page itself sets. */
export const routeQuery = (
  { query }: Place,
  facts: About | undefined,
  fixed: Readonly<Record<string, string>> = {}
): URLSearchParams => {
  const asked = new URLSearchParams({ ...fixed })
  const set = (name: string, value: string | null | undefined) => {
    if (value != null && value !== "" && !asked.has(name)) asked.set(name, value)
  }
  for (const name of plain) set(name, query.get(name))
  const { from, to } = spanOf(query)
  set("from", from)
  set("to", to)
  const sort = query.get("sort") ?? ""
  const [min, max] = [query.get("min") ?? "", query.get("max") ?? ""]
  const needsAsset = min !== "" || max !== "" || sort === "largest" || sort === "smallest"
  set("asset", query.get("asset") ?? (needsAsset ? facts?.assets[0]?.asset : undefined))
  const known = facts?.assets.find(({ asset }) => asset === asked.get("asset"))
  if (known !== undefined) {
    set("min", atomic(min, known.decimals))
    set("max", atomic(max, known.decimals))
  }
  if (!needsAsset || asked.has("asset")) set("sort", sort)
  return asked
}

/** Checks an amount. Its decimals depend on the asset. */
export const amountIssue =
  (asset: About["assets"][number] | undefined) =>
  (text: string): string | undefined =>
    asset === undefined || atomic(text, asset.decimals) !== undefined
      ? undefined
      : `Write an amount of ${asset.symbol}, such as 1.50, with at most ${asset.decimals} decimals.`

const fieldsOf = (asset: About["assets"][number] | undefined): ReadonlyArray<Typing> => [
  { name: "payer", label: "Payer" },
  { name: "payTo", label: "Recipient" },
  { name: "origin", label: "Origin" },
  { name: "key", label: "Key" },
  { name: "reason", label: "Reason", kind: "reason" },
  { name: "min", label: "At least", kind: "amount", issueOf: amountIssue(asset) },
  { name: "max", label: "At most", kind: "amount", issueOf: amountIssue(asset) },
  { name: "from", label: "From (UTC)", kind: "date" },
  { name: "to", label: "Before (UTC)", kind: "date" }
]

/** Filters that links from other pages set. They have no field, only a chip that removes them. */
const linked: ReadonlyArray<Typing> = [
  { name: "party", label: "Account" },
  { name: "resourceId", label: "Listing" }
]

/** The accepted assets, if there is more than one. */
export const assetChoices = (facts: About | undefined): ReadonlyArray<Choosing> =>
  facts === undefined || facts.assets.length < 2
    ? []
    : [
        {
          name: "asset",
          label: "Asset",
          choices: [["", "All assets"], ...facts.assets.map(({ asset, symbol }) => [asset, symbol] as const)]
        }
      ]

export const Filters = (props: {
  readonly place: Place
  readonly fixed: Readonly<Record<string, string>>
}): VNode<any> => {
  const { fixed, place } = props
  const { query } = place
  const facts = useFacts()
  const isChosen = query.has("from") || query.has("to")
  const times: Choices = [
    ["", isChosen ? "Chosen days" : "All time"],
    ...ranges.map(([value, label]) => [value, `Last ${label}`] as const)
  ]
  const schemes: ReadonlyArray<Choosing> =
    facts === undefined || facts.schemes.length < 2
      ? []
      : [
          {
            name: "scheme",
            label: "Scheme",
            choices: [["", "All schemes"], ...facts.schemes.map((one) => [one, one] as const)]
          }
        ]
  const change = (range: string) => amend({ range, from: "", to: "" })
  // An order or bound by amount applies to one asset, so the select shows that asset.
  const asset = routeQuery(place, facts, fixed).get("asset")
  const effective = new URLSearchParams(query)
  if (asset !== null) effective.set("asset", asset)
  return h(FilterBar, {
    query: effective,
    fixed,
    choices: [
      { name: "status", label: "State", choices: states },
      { name: "range", label: "Time", choices: times, change },
      ...assetChoices(facts),
      ...schemes,
      { name: "sort", label: "Order", choices: sorts }
    ],
    fields: fieldsOf(facts?.assets.find((one) => one.asset === asset) ?? facts?.assets[0]),
    linked
  })
}
