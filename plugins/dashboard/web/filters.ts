// Filters of settlements: read from the URL, shown as fields and as chips that take one away, and written back to the
// URL, so that a list can be linked to. Amounts are written as people write them, in the units of the chosen asset.
import { h, type VNode } from "preact"
import { type Facts, useFacts } from "./about.ts"
import { atomic, short } from "./format.ts"
import { amend, type Place } from "./place.ts"

type Choices = ReadonlyArray<readonly [value: string, label: string]>

export const ranges: Choices = [
  ["24h", "24 hours"],
  ["7d", "7 days"],
  ["30d", "30 days"],
  ["90d", "90 days"]
]
const rangeHours: Readonly<Record<string, number>> = { "24h": 24, "7d": 168, "30d": 720, "90d": 2_160 }
const millisPerHour = 3_600_000

/** From and to of a query, by its range or its own times; the range begins at a whole hour, so that its path lasts. */
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

/** Members that the route takes as they are, and how a chip names them. */
const plain = {
  payer: "Payer",
  payTo: "Recipient",
  party: "Account",
  reason: "Reason",
  key: "Key",
  origin: "Origin",
  resourceId: "Listing",
  scheme: "Scheme"
} as const

/** The route's query for a list; `fixed` are the members that the page itself sets. */
export const routeQuery = (
  { query }: Place,
  facts: Facts | undefined,
  fixed: Readonly<Record<string, string>> = {}
): URLSearchParams => {
  const asked = new URLSearchParams({ ...fixed })
  const set = (name: string, value: string | null | undefined) => {
    if (value != null && value !== "" && !asked.has(name)) asked.set(name, value)
  }
  for (const name of ["status", ...Object.keys(plain)]) set(name, query.get(name))
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

export const Select = (props: {
  readonly label: string
  readonly value: string
  readonly choices: Choices
  readonly change: (value: string) => void
}): VNode<any> =>
  h(
    "select",
    {
      "aria-label": props.label,
      value: props.value,
      onChange: ({ target }: Event) => props.change((target as HTMLSelectElement).value)
    },
    props.choices.map(([value, label]) => h("option", { key: value, value }, label))
  )

const Field = (props: {
  readonly name: string
  readonly label: string
  readonly query: URLSearchParams
  readonly type?: string
}): VNode<any> =>
  h(
    "label",
    null,
    props.label,
    h("input", {
      type: props.type ?? "text",
      value: (props.query.get(props.name) ?? "").slice(0, props.type === "date" ? 10 : undefined),
      inputMode: props.name === "min" || props.name === "max" ? "decimal" : undefined,
      spellcheck: false,
      maxLength: 300,
      onChange: ({ target }: Event) => amend({ [props.name]: (target as HTMLInputElement).value.trim() })
    })
  )

const Chip = (props: { readonly label: string; readonly remove: () => void }): VNode<any> =>
  h(
    "li",
    null,
    h(
      "button",
      { type: "button", class: "chip", onClick: props.remove },
      props.label,
      h("span", { "aria-hidden": true }, " ×"),
      h("span", { class: "spoken" }, ", remove this filter")
    )
  )

const Chips = ({ fixed, query }: { readonly query: URLSearchParams; readonly fixed: object }): VNode<any> | null => {
  const named = Object.entries({ ...plain, min: "At least", max: "At most", from: "From", to: "Before" }).filter(
    ([name]) => (query.get(name) ?? "") !== "" && !(name in fixed)
  )
  if (named.length === 0) return null
  return h(
    "ul",
    { class: "chips", "aria-label": "Filters" },
    named.map(([name, label]) => {
      const value = query.get(name)!
      const shown = /^[GCM][A-Z2-7]{50,}$/.test(value) ? short(value) : value.replace("T00:00:00.000Z", "")
      return h(Chip, { key: name, label: `${label}: ${shown}`, remove: () => amend({ [name]: "" }) })
    }),
    h(
      "li",
      null,
      h(
        "button",
        {
          type: "button",
          class: "plain",
          onClick: () => amend(Object.fromEntries(named.map(([name]) => [name, ""])))
        },
        "Clear"
      )
    )
  )
}

const More = ({ fixed, query }: { readonly query: URLSearchParams; readonly fixed: object }): VNode<any> =>
  h(
    "details",
    { class: "more" },
    h("summary", null, "More filters"),
    h(
      "div",
      { class: "fields" },
      (
        [
          ["payer", "Payer"],
          ["payTo", "Recipient"],
          ["origin", "Origin"],
          ["key", "Key"],
          ["reason", "Reason"],
          ["min", "At least"],
          ["max", "At most"],
          ["from", "From (UTC)", "date"],
          ["to", "Before (UTC)", "date"]
        ] as const
      )
        .filter(([name]) => !(name in fixed))
        .map(([name, label, type]) =>
          h(Field, { key: name, name, label, query, ...(type === undefined ? {} : { type }) })
        )
    )
  )

/** The filters above a list of settlements. */
export const Filters = (props: {
  readonly place: Place
  readonly fixed: Readonly<Record<string, string>>
}): VNode<any> => {
  const { fixed } = props
  const { query } = props.place
  const facts = useFacts()
  const choice = (name: string, label: string, choices: Choices) =>
    name in fixed
      ? null
      : h(Select, { label, value: query.get(name) ?? "", choices, change: (value) => amend({ [name]: value }) })
  const change = (range: string) => amend({ range, from: "", to: "" })
  const times: Choices = [
    ["", query.has("from") || query.has("to") ? "Chosen days" : "All time"],
    ...ranges.map(([value, label]) => [value, `Last ${label}`] as const)
  ]
  return h(
    "form",
    { class: "filters", "aria-label": "Filter", onSubmit: (event: Event) => event.preventDefault() },
    h(
      "div",
      { class: "choices" },
      choice("status", "State", states),
      h(Select, { label: "Time", value: query.get("range") ?? "", choices: times, change }),
      facts === undefined || facts.assets.length < 2
        ? null
        : choice("asset", "Asset", [
            ["", "All assets"],
            ...facts.assets.map(({ asset, symbol }) => [asset, symbol] as const)
          ]),
      facts === undefined || facts.schemes.length < 2
        ? null
        : choice("scheme", "Scheme", [["", "All schemes"], ...facts.schemes.map((one) => [one, one] as const)]),
      choice("sort", "Order", sorts)
    ),
    h(More, { query, fixed }),
    h(Chips, { query, fixed })
  )
}
