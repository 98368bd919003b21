// The life of a settlement to scale: a horizontal line from the request to its end, with a segment as long as each step
// took. A list below it has the same steps, for readers who do not see the line.
import { h, type VNode } from "preact"
import { tag } from "./tag.ts"

export interface Mark {
  readonly label: string
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
  return tag(
    "div.strip",
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
    tag(
      "ol.strip-legend",
      segments.map(({ mark, millis }, index) =>
        h(
          "li",
          { key: index, class: `${mark.tone} s${index}` },
          h("span", { class: "swatch", "aria-hidden": true }),
          tag("span", mark.label),
          tag("strong.numeric", text(millis))
        )
      ),
      tag("li.sum", tag("span", "In all"), tag("strong.numeric", text(whole)))
    )
  )
}
