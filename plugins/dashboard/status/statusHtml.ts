// The HTML of `/status`, without a script and with the style sheet of the other pages. Every value is a figure, a time
// or one of our sentences. Open incidents come first, then the figures, then past incidents with their length. Pure.
import type { ServiceStatus } from "./StatusWire.ts"

type Status = typeof ServiceStatus.Type

/** The page loads only the style sheet and the icon. */
export const pagePolicy =
  "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const none = `<span class="quiet">none yet</span>`
/** A share below 1 is never rounded up to 100 %. */
const percent = (value: number | null) => (value === null ? none : `${(Math.floor(value * 10_000) / 100).toFixed(2)} %`)
const seconds = (millis: number | null) =>
  millis === null ? none : millis < 1_000 ? `${Math.round(millis)} ms` : `${(millis / 1_000).toFixed(2)} s`
/** Groups digits by thousands. */
const grouped = (digits: string) => digits.replace(/\B(?=(\d{3})+$)/g, ",")
const shortTime = (iso: string) =>
  `<time datetime="${iso}" data-more="UTC">${iso.slice(0, 10)} ${iso.slice(11, 16)}</time>`

const counted = (number: number) => grouped(String(number))
const checked = (checks: number) => `${counted(checks)} ${checks === 1 ? "minute" : "minutes"} checked`

/** The time covered by the records, which may be shorter than the reported days. */
const observedOf = ({ checks, days, observed_from }: Status): string => {
  if (observed_from === null) return "The first check is not over yet."
  const since = `${shortTime(observed_from)} UTC`
  if (Math.ceil(checks / 1_440) >= days) return `The last ${days} days of this facilitator, from its own records.`
  const [whole, unit] =
    checks < 120 ? [checks, "minute"] : checks < 2_880 ? [checks / 60, "hour"] : [checks / 1_440, "day"]
  const length = Math.floor(whole)
  return `The last ${length} ${unit}${length === 1 ? "" : "s"} of this facilitator, since its first record at ${since}.`
}

/** One bar per day, from the first day with a check. The colour repeats the text. */
const dailyOf = ({ daily }: Status): string => {
  const bars = daily
    .filter(({ checks }) => checks > 0)
    .map((one) => {
      const share = one.checks_met / one.checks
      const grade = share === 1 ? "good" : share >= 0.99 ? "warn" : "bad"
      const words = `${one.day}: ${percent(share)}, ${counted(one.checks_met)} of ${checked(one.checks)}`
      return `<li class="${grade}" title="${words}"><span class="spoken">${words}</span></li>`
    })
  const [first, last] = [daily.find(({ checks }) => checks > 0)?.day, daily.at(-1)?.day]
  return bars.length === 0
    ? ""
    : `<h3>Availability by day</h3><ol class="days">${bars.join("")}</ol>
<p class="note">${first === last ? first : `${first} to ${last}`} (UTC).
Green is 100 %, amber 99 % and more, red less.</p>`
}

const lengthOf = ({ from, to }: Status["items"][number]): string => {
  if (to === null) return "ongoing"
  const minutes = Math.round((Date.parse(to) - Date.parse(from)) / 60_000)
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60]
  return hours === 0 ? `${rest} min` : `${grouped(String(hours))} h ${rest} min`
}

const nowOf = ({ items }: Status): string => {
  const lasting = items.filter(({ to }) => to === null)
  return lasting.length === 0
    ? `<p class="notice">No incident now.</p>`
    : lasting
        .map(({ from, summary }) => `<p class="notice error">${summary} Since ${shortTime(from)} UTC.</p>`)
        .join("\n")
}

const figuresOf = (status: Status): string =>
  [
    ["Availability", percent(status.availability), `${counted(status.checks_met)} of ${checked(status.checks)}`],
    ["Settlements", grouped(status.settlements), "recorded"],
    ["Verify time, p95", seconds(status.verify_p95_ms), "95 of 100 are faster"],
    ["Settle time, p95", seconds(status.settle_p95_ms), "95 of 100 are faster, from the request on"],
    ["Ended within two ledgers", percent(status.ended_in_two_ledgers), "of settlements that the ledger decided"],
    [
      "Confirmed by a second endpoint",
      percent(status.confirmed_by_two_endpoints),
      "of outcomes; one endpoint showed the others"
    ]
  ]
    .map(([name, value, note]) => `<div><dt>${name}</dt><dd>${value}<span class="note">${note}</span></dd></div>`)
    .join("\n")

const incidentsOf = ({ items }: Status): string => {
  if (items.length === 0) return `<p class="quiet">None.</p>`
  const rows = items.map(
    (one) => `<tr><td class="card-first">${one.summary}</td><td class="card-last numeric">${lengthOf(one)}</td>
<td data-label="From">${shortTime(one.from)}</td>
<td data-label="To"${one.to === null ? ` class="card-none"></td>` : `>${shortTime(one.to)}</td>`}</tr>`
  )
  return `<div class="scroll cards"><table><thead><tr><th scope="col">What it meant</th>
<th scope="col" class="numeric">Length</th><th scope="col">From (UTC)</th><th scope="col">To</th></tr></thead>
<tbody>${rows.join("\n")}</tbody></table></div>`
}

export const pageOf = (status: Status): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Status · Tollkeeper</title>
<link rel="icon" href="/dashboard/web/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/dashboard/web/style.css">
</head>
<body>
<header class="bar"><a class="skip" href="#main">Skip to the content</a><a class="brand" href="/">Tollkeeper</a>
<nav aria-label="Pages"><a href="/">Catalog</a><a href="/seller">Selling</a>
<a href="/dashboard">Dashboard</a><a href="/receipts">Receipts</a><a href="/docs">API</a>
<a href="/status" aria-current="page">Status</a></nav></header>
<main id="main" class="stack"><div><h1>Status</h1>
<p class="lead">${observedOf(status)}</p>
${nowOf(status)}</div>
<section class="panel" aria-labelledby="levels"><div class="panel-head"><h2 id="levels">Service levels</h2></div>
<dl class="figures">
${figuresOf(status)}
</dl>
${dailyOf(status)}</section>
<section class="panel" aria-labelledby="incidents"><div class="panel-head"><h2 id="incidents">Incidents</h2></div>
${incidentsOf(status)}
</section>
<p class="quiet">Programs read this address as JSON, or the incidents as CSV with <code>Accept: text/csv</code>.
Times are UTC, to the minute.</p></main>
</body>
</html>
`
