// The filters above a list: selects, fields under "More filters", and a chip to remove each filter. The filters are in
// the URL, so that a list can be linked to and survives a reload and the back button.
import { h, type VNode } from "preact"
import { useId } from "preact/hooks"
import { short } from "./format.ts"
import { searchedFor } from "./identifiers.ts"
import { amend } from "./place.ts"
import { reasonLabel, reasonOf, reasonsKnown } from "./reasons.ts"
import { tag } from "./tag.ts"

export type Choices = ReadonlyArray<readonly [value: string, label: string]>

/** A filter with a fixed list of values. */
export interface Choosing {
  readonly name: string
  readonly label: string
  readonly choices: Choices
  /** Called instead of setting only this member. */
  readonly change?: (value: string) => void
}

export interface Typing {
  readonly name: string
  readonly label: string
  readonly kind?: "date" | "amount" | "reason"
  /** The error to show for an invalid text; undefined for a valid one. */
  readonly issueOf?: (text: string) => string | undefined
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

/** Shows the error of an invalid text in the field. An invalid text does not filter. */
const typed = (field: Typing, input: HTMLInputElement): void => {
  const text = input.value.trim()
  const issue = text === "" ? undefined : field.issueOf?.(text)
  input.setCustomValidity(issue ?? "")
  if (issue !== undefined) input.reportValidity()
  else amend({ [field.name]: text === "" ? "" : meantBy(field, text) })
}

/** Accepts a reason by its label, an origin by any of its URLs, and an address as it was copied. */
const meantBy = ({ kind, name }: Typing, text: string): string => {
  if (kind === "reason") return reasonOf(text)
  if (kind !== undefined) return text
  return name === "origin" && /^https?:/i.test(text) && URL.canParse(text) ? new URL(text).origin : searchedFor(text)
}

const Field = ({ field, query }: { readonly field: Typing; readonly query: URLSearchParams }): VNode<any> => {
  const { kind, label, name } = field
  const id = useId()
  return tag(
    "label",
    label,
    h("input", {
      type: kind === "date" ? "date" : "text",
      value: shownInField(field, query.get(name) ?? ""),
      inputMode: kind === "amount" ? "decimal" : undefined,
      list: kind === "reason" ? id : undefined,
      spellcheck: false,
      autocomplete: "off",
      maxLength: 300,
      onChange: ({ target }: Event) => typed(field, target as HTMLInputElement)
    }),
    kind === "reason"
      ? h(
          "datalist",
          { id },
          reasonsKnown().map((word) => h("option", { key: word, value: reasonLabel(word) }))
        )
      : null
  )
}

const shownInField = ({ kind }: Typing, value: string): string =>
  kind === "date" ? value.slice(0, 10) : kind === "reason" && value !== "" ? reasonLabel(value) : value

const Chip = (props: { readonly label: string; readonly remove: () => void }): VNode<any> =>
  tag(
    "li",
    h(
      "button",
      { type: "button", class: "chip", onClick: props.remove },
      props.label,
      h("span", { "aria-hidden": true }, " ×"),
      tag("span.spoken", ", remove this filter")
    )
  )

/** The text of a chip: an address by its ends, a reason by its label, a day without its midnight. */
const shownValue = ({ kind, name }: Typing, value: string): string => {
  if (kind === "reason") return reasonLabel(value)
  if (name === "key") return value.replace(/^key:/, "")
  if (/^[GCM][A-Z2-7]{50,}$/.test(value)) return short(value)
  return value.replace(/T00:00:00(?:[.]000)?Z$/, "").replace(/T(\d\d:\d\d)(?::00)?(?:[.]000)?Z$/, " $1 UTC")
}

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
    named.map((field) =>
      h(Chip, {
        key: field.name,
        label: `${field.label.replace(" (UTC)", "")}: ${shownValue(field, query.get(field.name)!)}`,
        remove: () => amend({ [field.name]: "" })
      })
    ),
    tag("li", h("button", { type: "button", class: "plain", onClick: clear }, "Clear"))
  )
}

export const FilterBar = (props: {
  readonly query: URLSearchParams
  readonly choices: ReadonlyArray<Choosing>
  readonly fields?: ReadonlyArray<Typing>
  /** Members set by links from other pages: each has a chip and no field. */
  readonly linked?: ReadonlyArray<Typing>
  /** Members that the page sets. */
  readonly fixed?: object
}): VNode<any> => {
  const { choices, fields = [], fixed = {}, linked = [], query } = props
  const open = fields.filter(({ name }) => !(name in fixed))
  const named = [...open, ...linked].filter(({ name }) => (query.get(name) ?? "") !== "" && !(name in fixed))
  return h(
    "form",
    { class: "filters", "aria-label": "Filter", onSubmit: (event: Event) => event.preventDefault() },
    tag(
      "div.choices",
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
      : tag(
          "details.more",
          tag("summary", "More filters"),
          tag(
            "div.fields",
            open.map((field) => h(Field, { key: field.name, field, query }))
          )
        ),
    h(Chips, { named, query })
  )
}
