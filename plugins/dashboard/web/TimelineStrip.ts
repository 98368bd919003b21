// The life of a settlement to scale: a horizontal line from the request to its end, with a segment as long as each step
// took. A list below it has the same steps, for readers who do not see the line.
import { h, type VNode } from "preact"

export interface Mark {
  readonly label: string
  /** ISO 8601. */
  readonly at: string
  readonly tone: "done" | "failed" | "now"
}

/** Minimum width of a segment in percent, so that a step of one millisecond stays visible. */
const shareMin = 1.5

const text = (millis: number): string =>
  millis < 1_000 ? `${Math.round(millis)} ms` : `${(millis / 1_000).toFixed(2)} s`

/** Marks in order of time. Fewer than two do not make a line. */
export const TimelineStrip = ({ marks }: { readonly marks: ReadonlyArray<Mark> }): VNode<any> | null => {
  const ordered = marks.toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at))
  const first = ordered[0]
  const last = ordered.at(-1)
  if (first === undefined || last === undefined || ordered.length < 2) return null
  const whole = Math.max(1, Date.parse(last.at) - Date.parse(first.at))
  const segments = ordered.slice(1).map((mark, index) => {
    const millis = Date.parse(mark.at) - Date.parse(ordered[index]!.at)
    return { mark, millis, share: Math.max(shareMin, (millis / whole) * 100) }
  })
  const sum = segments.reduce((total, { share }) => total + share, 0)
  return h(
    "div",
    { class: "strip" },
    h(
      "div",
      { class: "strip-line", "aria-hidden": true },
      segments.map(({ mark, millis, share }, index) =>
        h("span", {
          key: index,
          class: `segment ${mark.tone} s${index}`,
          title: `${mark.label}: ${text(millis)}`,
          style: { width: `${(share / sum) * 100}%` }
        })
      )
    ),
    h(
      "ol",
      { class: "strip-legend" },
      segments.map(({ mark, millis }, index) =>
        h(
          "li",
          { key: index, class: `${mark.tone} s${index}` },
          h("span", { class: "swatch", "aria-hidden": true }),
          h("span", null, mark.label),
          h("strong", { class: "numeric" }, text(millis))
        )
      ),
      h("li", { class: "sum" }, h("span", null, "In all"), h("strong", { class: "numeric" }, text(whole)))
    )
  )
}
