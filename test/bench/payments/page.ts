// The report of the payments bench as one self-contained page: the bars, processor time per payment by process, the
// whole distribution of latencies, and the counts. Plain SVG, in the reader's light or dark colors.
import { type Bar, barLine } from "../rig/bars.ts"
import type { Case, Counted, Figures } from "./figures.ts"

export interface Report {
  readonly at: string
  readonly machine: string
  readonly database: string
  readonly runtime: "node" | "deno"
  readonly quick: boolean
  readonly figures: Figures
  readonly bars: ReadonlyArray<Bar>
}

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;")

const style = `
:root { color-scheme: light dark; --line: #8884; --one: #2f6fde; --two: #d9822b; --three: #3a9d5d; --four: #8a8f98 }
body { font: 14px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h2 { margin-top: 2.5rem } table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top }
td { overflow-wrap: anywhere } td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.missed { color: #c33; font-weight: 600 } svg { width: 100%; height: auto }
svg text { font: 12px system-ui; fill: currentColor }
.key span { display: inline-block; margin-right: 1.2rem }
.key i { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem }
`

const colours = ["var(--one)", "var(--two)", "var(--three)", "var(--four)"]

const key = (names: ReadonlyArray<string>): string =>
  `<p class="key">${names
    .map((name, at) => `<span><i style="background:${colours[at % colours.length]}"></i>${escaped(name)}</span>`)
    .join("")}</p>`

const parts = ["facilitator", "database", "ledger", "clients"] as const

/** Processor time per payment, a bar for each case, with its processes side by side. */
const cpuPlot = (cases: ReadonlyArray<readonly [string, Case]>): string => {
  const sums = cases.map(([, { cpu }]) => parts.reduce((sum, part) => sum + (cpu[part] ?? 0), 0))
  const scale = 560 / Math.max(...sums, 0.001)
  const rows = cases.map(([name, { cpu }], row) => {
    let x = 230
    const y = 8 + row * 28
    const blocks = parts.map((part, at) => {
      const width = (cpu[part] ?? 0) * scale
      const block =
        `<rect x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="18" fill="${colours[at]}">` +
        `<title>${part}: ${cpu[part]?.toFixed(2) ?? "unknown"} ms</title></rect>`
      x += width
      return block
    })
    const label = `<text x="222" y="${y + 14}" text-anchor="end">${escaped(name)}</text>`
    return `${label}${blocks.join("")}<text x="${(x + 6).toFixed(1)}" y="${y + 14}">${sums[row]!.toFixed(2)} ms</text>`
  })
  return `${key(parts)}<svg viewBox="0 0 880 ${16 + cases.length * 28}" role="img">${rows.join("")}</svg>`
}

/** Latency by percentile, on a logarithmic scale of milliseconds. */
const latencyPlot = (cases: ReadonlyArray<readonly [string, Case]>): string => {
  const values = cases.flatMap(([, { curve }]) => curve.filter((value) => value > 0))
  const [low, high] = [Math.log10(Math.min(...values)), Math.log10(Math.max(...values))]
  const y = (millis: number) => 250 - ((Math.log10(Math.max(millis, 0.001)) - low) / Math.max(0.01, high - low)) * 230
  const grid = Array.from({ length: Math.floor(high) - Math.ceil(low) + 1 }, (_, at) => 10 ** (Math.ceil(low) + at))
  const lines = grid.map(
    (millis) =>
      `<line x1="60" x2="860" y1="${y(millis).toFixed(1)}" y2="${y(millis).toFixed(1)}" stroke="var(--line)"/>` +
      `<text x="54" y="${(y(millis) + 4).toFixed(1)}" text-anchor="end">${millis} ms</text>`
  )
  const marks = [0, 25, 50, 75, 95].map(
    (percent) => `<text x="${60 + percent * 8}" y="270" text-anchor="middle">p${percent}</text>`
  )
  const curves = cases.map(([, { curve }], at) => {
    const points = curve.map((value, percent) => `${60 + percent * 8},${y(value).toFixed(1)}`).join(" ")
    return `<polyline points="${points}" fill="none" stroke="${colours[at % colours.length]}" stroke-width="2"/>`
  })
  const names = key(cases.map(([name]) => name))
  return `${names}<svg viewBox="0 0 880 280" role="img">${lines.join("")}${marks.join("")}${curves.join("")}</svg>`
}

const cell = (value: number | null): string =>
  `<td class="n">${value === null || Number.isNaN(value) ? "unknown" : value.toFixed(2)}</td>`

const caseRow = ([name, { answers, cpu, millis, outcomes, rate }]: readonly [string, Case]): string =>
  `<tr><td>${escaped(name)}</td>${[rate, millis.p50, millis.p95, millis.p99, ...parts.map((part) => cpu[part])]
    .map(cell)
    .join("")}<td>${answers}: ${escaped(
    Object.entries(outcomes)
      .map(([what, count]) => `${count} ${what}`)
      .join(", ")
  )}</td></tr>`

const countedRow = ([name, one]: readonly [string, Counted]): string =>
  `<tr><td>${escaped(name)}</td>${[one.rpcCalls, one.statements, one.roundTrips].map(cell).join("")}<td>${escaped(
    Object.entries(one.rpc)
      .map(([method, calls]) => `${method} ${calls.toFixed(2)}`)
      .join(", ")
  )}</td></tr>`

const casesOf = ({
  busy,
  open,
  refusals,
  settle,
  variants,
  verify
}: Figures): ReadonlyArray<readonly [string, Case]> => [
  ["verify, ours", verify.ours],
  ["verify, the class", verify.class],
  [`verify at ${open.perSecond}/s, ours`, open.ours],
  [`verify at ${open.perSecond}/s, the class`, open.class],
  ["malformed, ours", refusals.malformed],
  ["badly signed, ours", refusals.badlySigned],
  ["malformed, read as JSON and answered alone", refusals.answeringAlone],
  ["with keys, ours", variants.keys],
  ["with telemetry, ours", variants.telemetry],
  ["with a catalog, ours", variants.plain],
  ["with metadata, ours", variants.metadata],
  ["with unread metadata, ours", variants.unread],
  ["settle, ours, cold", settle.cold],
  ["settle, ours", settle.ours],
  ["settle, the class", settle.class],
  ...(busy === undefined ? [] : [[`settle over ${busy.settling.channels} channels`, busy] as const])
]

const table = (head: ReadonlyArray<string>, rows: ReadonlyArray<string>): string =>
  `<table><tr>${head.map((name) => `<th>${name}</th>`).join("")}</tr>${rows.join("")}</table>`

export const page = ({ at, bars, database, figures, machine, quick, runtime }: Report): string => {
  const cases = casesOf(figures)
  const verdicts = bars.map((bar) => `<li${bar.holds ? "" : ` class="missed"`}>${escaped(barLine(bar))}</li>`)
  const isSettle = ([name]: readonly [string, Case]) => name.startsWith("settle")
  const verifying = cases.filter(([name]) => name.startsWith("verify"))
  const head = ["", "a second", "p50 ms", "p95 ms", "p99 ms", ...parts.map((part) => `${part} ms`), "answers"]
  const said = `${at}, ours on ${runtime}, ${machine}, ${database}${quick ? ", a sample" : ""}`
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Payments, measured</title><style>${style}</style>
<h1>Payments, measured</h1><p>${escaped(said)}</p>
<h2>Bars</h2><ul>${verdicts.join("")}</ul>
<h2>Processor time for a verify</h2>${cpuPlot(cases.filter((one) => !isSettle(one)))}
<h2>Processor time for a settle</h2>${cpuPlot(cases.filter(isSettle))}
<h2>Latency of a verify, by percentile</h2>${latencyPlot(verifying)}
<h2>Latency of a settle, by percentile</h2>${latencyPlot(cases.filter(isSettle))}
<h2>Figures</h2>${table(head, cases.map(caseRow))}
<h2>Calls and statements for one payment</h2>${table(
    ["", "RPC calls", "statements", "round trips", "by method"],
    Object.entries(figures.counted).map(countedRow)
  )}
</html>
`
}
