// The score card of one or several targets: lines for a terminal, and one HTML page without scripts or references. All
// text of a target is escaped.
import type { Card, Score } from "./run.ts"

const marks = { held: "ok", failed: "FAIL", skipped: "skip" } as const

export const lineOf = ({ attack, detail, name, result }: Score): string =>
  `${marks[result].padEnd(5)}${String(attack).padStart(4)}  ${name}${detail === "" ? "" : `\n           ${detail}`}`

export const totalOf = ({ failed, held, kind, skipped, url }: Card): string =>
  `${url} (${kind}): ${held} held, ${failed} failed, ${skipped} skipped`

const escape = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

const style = `body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;color:#1b1f24}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid #d8dee4}
.held{color:#116329}.failed{color:#a40e26;font-weight:600}.skipped{color:#57606a}small{color:#57606a}`

const small = (text: string): string => `<br><small>${escape(text)}</small>`

const cellOf = (score: Score | undefined): string =>
  score === undefined
    ? "<td></td>"
    : `<td class="${score.result}">${score.result}${score.detail === "" ? "" : small(score.detail)}</td>`

/** One row for each case, one column for each target. */
export const pageOf = (cards: ReadonlyArray<Card>): string => {
  const idOf = ({ attack, name }: Score) => `${attack} ${name}`
  const columns = cards.map(({ scores }) => new Map(scores.map((score) => [idOf(score), score])))
  const rows = [...new Map(cards.flatMap(({ scores }) => scores.map((score) => [idOf(score), score]))).entries()]
    .toSorted(([, a], [, b]) => a.attack - b.attack)
    .map(([id, { accepts, attack, name, source, still, why }]) => {
      const holds = accepts === "" ? "" : small(`Holds: ${accepts}. Unchanged: ${still}.`)
      const cells = columns.map((column) => cellOf(column.get(id))).join("")
      const known = `<td>${attack}</td><td>${escape(name)}${holds}</td><td>${escape(why)}${small(source)}</td>`
      return `<tr>${known}${cells}</tr>`
    })
  const heads = cards.map(({ kind, url }) => `<th>${escape(url)}<br><small>${kind}</small></th>`)
  const totals = cards.map((card) => `<li>${escape(totalOf(card))}, started ${escape(card.startedAt)}</li>`)
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Red team score card</title><style>${style}</style>
<h1>Red team score card</h1><ul>${totals.join("")}</ul>
<table><thead><tr><th>Attack</th><th>Case</th><th>Why it matters</th>${heads.join("")}</tr></thead>
<tbody>${rows.join("\n")}</tbody></table></html>
`
}
