// A plot of values over time, by uPlot: a canvas, so that many points and updates cost little. A canvas says nothing to
// a screen reader, so whoever shows one shows the same figures in a table as well. It follows the width of its frame
// and the theme.
import { h, type VNode } from "preact"
import { useEffect, useRef } from "preact/hooks"
import uPlot from "uplot"

export interface Line {
  readonly label: string
  readonly values: ReadonlyArray<number>
  /** A colour of the style sheet, such as `--brand`. */
  readonly colour: string
  readonly text: (value: number) => string
}

const height = 220

/** A custom property as the browser resolves it, `light-dark()` included. */
const resolved = (frame: HTMLElement, name: string): string => {
  frame.style.color = `var(${name})`
  const colour = getComputedStyle(frame).color
  frame.style.color = ""
  return colour
}

const hourSeconds = 3_600

/** A single point stands in the middle of an hour before and after it. */
const spanOf = (at: ReadonlyArray<number>): uPlot.Scale => {
  const only = at[0]! / 1_000
  return at.length === 1 ? { range: [only - hourSeconds, only + hourSeconds] } : {}
}

const optionsOf = (frame: HTMLElement, at: ReadonlyArray<number>, lines: ReadonlyArray<Line>): uPlot.Options => {
  const quiet = resolved(frame, "--quiet")
  const grid = { stroke: resolved(frame, "--line"), width: 1 }
  const axis = { stroke: quiet, grid, ticks: grid, font: "12px system-ui", space: 90 }
  return {
    width: Math.max(frame.clientWidth, 240),
    height,
    series: [
      { label: "When" },
      ...lines.map(({ colour, label, text }) => ({
        label,
        stroke: resolved(frame, colour),
        width: 2,
        points: { show: lines[0]!.values.length < 60 },
        value: (_: uPlot, value: number | null) => (value === null ? "–" : text(value))
      }))
    ],
    axes: [axis, { ...axis, size: 64, space: 40, values: (_, ticks) => ticks.map((tick) => lines[0]!.text(tick)) }],
    scales: { x: spanOf(at), y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] } }
  }
}

export const Chart = (props: {
  /** Milliseconds since the epoch, rising. */
  readonly at: ReadonlyArray<number>
  readonly lines: ReadonlyArray<Line>
  readonly label: string
}): VNode<any> => {
  const frame = useRef<HTMLDivElement>(null)
  const { at, lines } = props
  useEffect(() => {
    const element = frame.current
    if (element === null) return undefined
    const data: uPlot.AlignedData = [at.map((millis) => millis / 1_000), ...lines.map(({ values }) => [...values])]
    let plot = new uPlot(optionsOf(element, at, lines), data, element)
    const width = new ResizeObserver(() => plot.setSize({ width: Math.max(element.clientWidth, 240), height }))
    width.observe(element)
    const theme = matchMedia("(prefers-color-scheme: dark)")
    const redraw = () => {
      plot.destroy()
      plot = new uPlot(optionsOf(element, at, lines), data, element)
    }
    theme.addEventListener("change", redraw)
    return () => {
      width.disconnect()
      theme.removeEventListener("change", redraw)
      plot.destroy()
    }
  }, [at, lines])
  return h("div", { class: "chart", ref: frame, role: "img", "aria-label": props.label })
}
