// A bar chart by hour or day, drawn by uPlot on a canvas, so that many points and updates are cheap. A screen reader
// cannot read a canvas, so each view with a chart also shows the figures in a table. The chart follows the width of its
// frame and the theme.
import { h, type VNode } from "preact"
import { useEffect, useRef } from "preact/hooks"
import uPlot from "uplot"

interface Line {
  readonly label: string
  /** Null if nothing was recorded. Drawn as a gap, not as zero. */
  readonly values: ReadonlyArray<number | null>
  /** A color of the style sheet, such as `--brand`. */
  readonly color: string
  readonly text: (value: number) => string
  /** Formats a bucket's exact figure. */
  readonly exact: (index: number) => string
}

const height = 200

/** A custom property as the browser resolves it, `light-dark()` included. */
const resolved = (frame: HTMLElement, name: string): string => {
  frame.style.color = `var(${name})`
  const color = getComputedStyle(frame).color
  frame.style.color = ""
  return color
}

const bucketSeconds = { hour: 3_600, day: 86_400 }
type Bucket = keyof typeof bucketSeconds

/** Days are UTC days, as in the reports. Hours are in the viewer's time zone. */
const dateOf = (bucket: Bucket) => (seconds: number) => {
  const date = new Date(seconds * 1_000)
  return bucket === "day" ? uPlot.tzDate(date, "Etc/UTC") : date
}

/** Tick labels: days by date, hours by time, with the date at the start of each day. */
const ticksOf = (bucket: Bucket) => {
  const zone = bucket === "day" ? { timeZone: "UTC" } : {}
  const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", ...zone })
  const hour = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...zone })
  return (_: uPlot, ticks: ReadonlyArray<number>, __: number, ___: number, step: number): Array<string> => {
    const dates = ticks.map((tick) => day.format(tick * 1_000))
    if (step >= bucketSeconds.day) return dates
    return ticks.map((tick, index) => {
      const time = hour.format(tick * 1_000)
      return dates[index] === dates[index - 1] ? time : `${time}\n${dates[index]!}`
    })
  }
}

/** Label of a bucket's start. */
const bucketText = (bucket: Bucket) => {
  const own = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" })
  const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" })
  return (seconds: number): string =>
    bucket === "day" ? `${day.format(seconds * 1_000)} (UTC)` : `from ${own.format(seconds * 1_000)}`
}

/** Shades buckets without a record, and marks buckets with a figure of zero on the base line. */
const drawGround =
  (frame: HTMLElement, { at, bucket, lines }: Plotted) =>
  (plot: uPlot): void => {
    const values = lines[0]?.values ?? []
    const { ctx } = plot
    const [gap, zero] = [resolved(frame, "--line"), resolved(frame, "--quiet")]
    ctx.save()
    for (const [index, value] of values.entries()) {
      if (value !== null && value !== 0) continue
      const from = plot.valToPos(at[index]! / 1_000, "x", true)
      const to = plot.valToPos(at[index]! / 1_000 + bucketSeconds[bucket], "x", true)
      const { height, top } = plot.bbox
      ctx.globalAlpha = value === null ? 0.45 : 0.8
      ctx.fillStyle = value === null ? gap : zero
      if (value === null) ctx.fillRect(from, top, to - from + 0.5, height)
      else ctx.fillRect(from + (to - from) * 0.1, top + height - 2, (to - from) * 0.7, 2)
    }
    ctx.restore()
  }

const optionsOf = (frame: HTMLElement, { at, brushed, bucket, lines }: Plotted): uPlot.Options => {
  const quiet = resolved(frame, "--quiet")
  const grid = { stroke: resolved(frame, "--line"), width: 1 }
  const axis = { stroke: quiet, grid, ticks: grid, font: "12px system-ui", space: 90 }
  const text = bucketText(bucket)
  const ends = [at[0]! / 1_000, at.at(-1)! / 1_000 + bucketSeconds[bucket]] as [number, number]
  return {
    width: Math.max(frame.clientWidth, 240),
    height,
    tzDate: dateOf(bucket),
    cursor: { drag: { x: brushed !== undefined, y: false, setScale: false } },
    series: [
      { label: bucket === "day" ? "Day" : "Hour", value: (_, value) => (value === null ? "–" : text(value)) },
      ...lines.map(({ color, exact, label }) => ({
        label,
        stroke: resolved(frame, color),
        fill: resolved(frame, color),
        width: 0,
        paths: uPlot.paths.bars!({ align: 1, size: [0.8, 60], radius: 0.1 }),
        points: { show: false },
        value: (_: uPlot, __: number | null, ___: number, index: number | null) => (index === null ? "–" : exact(index))
      }))
    ],
    axes: [
      { ...axis, values: ticksOf(bucket) as uPlot.Axis.Values, size: 44 },
      { ...axis, size: 64, space: 40, values: (_, ticks) => ticks.map((tick) => lines[0]!.text(tick)) }
    ],
    scales: { x: { range: ends }, y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] } }
  }
}

interface Plotted {
  /** Start of each bucket: milliseconds since the epoch, consecutive. */
  readonly at: ReadonlyArray<number>
  readonly bucket: Bucket
  readonly lines: ReadonlyArray<Line>
  /** Called with the range of whole buckets that the user dragged over, in milliseconds. `to` is exclusive. */
  readonly brushed?: ((from: number, to: number) => void) | undefined
}

/** Minimum pixels of a drag. Anything shorter is a click. */
const dragMin = 8

const reportBrush =
  ({ at, brushed, bucket }: Plotted) =>
  (plot: uPlot): void => {
    const { left, width } = plot.select
    if (brushed === undefined || width < dragMin) return
    const bucketAt = (pixel: number) => {
      const seconds = plot.posToVal(pixel, "x")
      return Math.min(Math.max(Math.floor((seconds - at[0]! / 1_000) / bucketSeconds[bucket]), 0), at.length - 1)
    }
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
    brushed(at[bucketAt(left)]!, at[bucketAt(left + width)]! + bucketSeconds[bucket] * 1_000)
  }

/** The plot; its legend shows the last bucket until another is hovered. */
const draw = (frame: HTMLElement, plotted: Plotted): uPlot => {
  const data: uPlot.AlignedData = [
    plotted.at.map((millis) => millis / 1_000),
    ...plotted.lines.map(({ values }) => [...values])
  ]
  const reportLast = (plot: uPlot) => {
    if (plot.cursor.left === undefined || plot.cursor.left < 0) plot.setLegend({ idx: plotted.at.length - 1 }, false)
  }
  const hooks = {
    ready: [reportLast],
    setCursor: [reportLast],
    setSelect: [reportBrush(plotted)],
    drawClear: [drawGround(frame, plotted)]
  }
  return new uPlot({ ...optionsOf(frame, plotted), hooks }, data, frame)
}

export const Chart = (props: Plotted & { readonly label: string }): VNode<any> => {
  const frame = useRef<HTMLDivElement>(null)
  const { at, brushed, bucket, lines } = props
  const brush = useRef(brushed)
  brush.current = brushed
  const isBrushed = brushed !== undefined
  useEffect(() => {
    const element = frame.current
    if (element === null) return undefined
    const plotted: Plotted = {
      at,
      bucket,
      lines,
      brushed: isBrushed ? (from, to) => brush.current?.(from, to) : undefined
    }
    let plot = draw(element, plotted)
    const width = new ResizeObserver(() => plot.setSize({ width: Math.max(element.clientWidth, 240), height }))
    width.observe(element)
    const theme = matchMedia("(prefers-color-scheme: dark)")
    const redraw = () => {
      plot.destroy()
      plot = draw(element, plotted)
    }
    theme.addEventListener("change", redraw)
    return () => {
      width.disconnect()
      theme.removeEventListener("change", redraw)
      plot.destroy()
    }
  }, [at, bucket, lines, isBrushed])
  return h("div", { class: "chart", ref: frame, role: "img", "aria-label": props.label })
}
