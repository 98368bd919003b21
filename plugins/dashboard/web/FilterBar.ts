// The filters above a list: selects, fields under "More filters", and chips that take one away. What is chosen is in
// the URL, so that a list can be linked to and survives a reload and back.
import { h, type VNode } from "preact"
import { short } from "./format.ts"
import { amend } from "./place.ts"

export type Choices = ReadonlyArray<readonly [value: string, label: string]>

/** One of a few. */
export interface Choosing {
  readonly name: string
  readonly label: string
  readonly choices: Choices
  /** In place of setting the member alone. */
  readonly change?: (value: string) => void
}

/** What is typed. */
export interface Typing {
  readonly name: string
  readonly label: string
  readonly kind?: "date" | "amount"
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

const Field = ({ field, query }: { readonly field: Typing; readonly query: URLSearchParams }): VNode<any> => {
  const { kind, label, name } = field
  return h(
    "label",
    null,
    label,
    h("input", {
      type: kind === "date" ? "date" : "text",
      value: (query.get(name) ?? "").slice(0, kind === "date" ? 10 : undefined),
      inputMode: kind === "amount" ? "decimal" : undefined,
      spellcheck: false,
      autocomplete: "off",
      maxLength: 300,
      onChange: ({ target }: Event) => amend({ [name]: (target as HTMLInputElement).value.trim() })
    })
  )
}

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

/** What a chip shows of a value: an address by its ends, a day without its midnight. */
const shownValue = (value: string): string =>
  /^[GCM][A-Z2-7]{50,}$/.test(value) ? short(value) : value.replace(/T00:00:00(?:[.]000)?Z$/, "")

const Chips = (props: {
  readonly named: ReadonlyArray<Typing>
  readonly query: URLSearchParams
}): VNode<any> | null => {
  const { named, query } = props
  if (named.length === 0) return null
  const clear = () => amend(Object.fromEntries(named.map(({ name }) => [name, ""])))
  return h(
    "ul",
    { class: "chips", "aria-label": "Filters" },
    named.map(({ label, name }) =>
      h(Chip, {
        key: name,
        label: `${label.replace(" (UTC)", "")}: ${shownValue(query.get(name)!)}`,
        remove: () => amend({ [name]: "" })
      })
    ),
    h("li", null, h("button", { type: "button", class: "plain", onClick: clear }, "Clear"))
  )
}

export const FilterBar = (props: {
  readonly query: URLSearchParams
  readonly choices: ReadonlyArray<Choosing>
  readonly fields?: ReadonlyArray<Typing>
  /** Members of links from other pages: no field, and a chip each. */
  readonly linked?: ReadonlyArray<Typing>
  /** Members that the page itself sets. */
  readonly fixed?: object
}): VNode<any> => {
  const { choices, fields = [], fixed = {}, linked = [], query } = props
  const open = fields.filter(({ name }) => !(name in fixed))
  const named = [...open, ...linked].filter(({ name }) => (query.get(name) ?? "") !== "" && !(name in fixed))
  return h(
    "form",
    { class: "filters", "aria-label": "Filter", onSubmit: (event: Event) => event.preventDefault() },
    h(
      "div",
      { class: "choices" },
      choices
        .filter(({ name }) => !(name in fixed))
        .map(({ change, choices, label, name }) =>
          h(Select, {
            key: name,
            label,
            value: query.get(name) ?? "",
            choices,
            change: change ?? ((value) => amend({ [name]: value }))
          })
        )
    ),
    open.length === 0
      ? null
      : h(
          "details",
          { class: "more" },
          h("summary", null, "More filters"),
          h(
            "div",
            { class: "fields" },
            open.map((field) => h(Field, { key: field.name, field, query }))
          )
        ),
    h(Chips, { named, query })
  )
}
