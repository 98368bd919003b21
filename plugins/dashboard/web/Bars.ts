// Shares of a whole as bars, each a link to the rows that it counts. A single row is left out, because its share is
// always 100 %.
import { h, type VNode } from "preact"
import { count, percent } from "./format.ts"
import type { Child } from "./parts.ts"
import { tag } from "./tag.ts"

interface BarRow {
  readonly key: string
  readonly label: Child
  readonly value: number
  readonly href?: string
  readonly note?: string
  readonly tone?: "bad" | "warn"
}

const shownMax = 6

/** Keeps the first rows and sums the others in one. */
const folded = (rows: ReadonlyArray<BarRow>): ReadonlyArray<BarRow> => {
  const rest = rows.slice(shownMax - 1)
  if (rest.length < 2) return rows
  const value = rest.reduce((sum, one) => sum + one.value, 0)
  return [...rows.slice(0, shownMax - 1), { key: "others", label: `${rest.length} others`, value }]
}

export const Bars = (props: {
  readonly title: string
  /** Largest first. */
  readonly rows: ReadonlyArray<BarRow>
  /** Shows a single row as well. */
  readonly always?: boolean
}): VNode<any> | null => {
  const { always, title } = props
  const rows = folded(props.rows)
  if (rows.length === 0 || (rows.length === 1 && always !== true)) return null
  const whole = rows.reduce((sum, { value }) => sum + value, 0)
  return tag(
    "div.bars",
    tag("h3", title),
    tag(
      "ul",
      rows.map(({ href, key, label, note, tone, value }) =>
        h(
          "li",
          { key },
          tag(
            "div.bar-line",
            href === undefined ? tag("span", label) : h("a", { href }, label),
            tag(
              "span.numeric",
              note === undefined ? "" : tag("span.quiet", `${note} · `),
              count(value),
              tag("span.quiet", ` · ${percent(value, whole)}`)
            )
          ),
          h(
            "div",
            { class: `track ${tone ?? ""}`, "aria-hidden": true },
            h("span", { style: { width: `${whole === 0 ? 0 : (value / whole) * 100}%` } })
          )
        )
      )
    )
  )
}

/** Share of a limit that is used. The color changes when little is left. Without a limit, shows only the figure. */
export const Meter = (props: {
  readonly label: string
  readonly used?: number
  readonly of?: number
  readonly text: string
  readonly note?: string
}): VNode<any> => {
  const { of = 0, used = 0 } = props
  const share = of === 0 ? 0 : Math.min(1, used / of)
  const tone = share >= 0.9 ? "bad" : share >= 0.7 ? "warn" : ""
  return tag(
    "div.meter",
    tag("div.bar-line", tag("span.label", props.label), tag("strong.numeric", props.text)),
    props.of === undefined
      ? null
      : h("div", { class: `track ${tone}`, "aria-hidden": true }, h("span", { style: { width: `${share * 100}%` } })),
    props.note === undefined ? null : tag("div.note", props.note)
  )
}
