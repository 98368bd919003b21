// A page that shows each query's first ten results together with the graded ones, to find the errors of a ranking.
import type { Dataset } from "./dataset.ts"
import type { Measured } from "./measure.ts"

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")

export const reportPage = (set: Dataset, measured: ReadonlyArray<Measured>): string => {
  const titles = new Map(set.resources.map(({ document, name }) => [name, document.serviceName || document.toolName]))
  const list = (names: ReadonlyArray<string>, grades: ReadonlyMap<string, number>) =>
    `<ol>${names
      .map((name) => `<li>${grades.get(name) ?? "–"} · ${escaped(`${name} ${titles.get(name) ?? ""}`)}</li>`)
      .join("")}</ol>`
  const rows = measured.map(({ query, rankings }) => {
    const grades = set.grades.get(query.id) ?? new Map<string, number>()
    const best = [...grades].filter(([, grade]) => grade > 0).toSorted(([, a], [, b]) => b - a)
    const columns = Object.entries(rankings).map(
      ([mode, names]) => `<td><b>${mode}</b>${list(names.slice(0, 10), grades)}</td>`
    )
    return (
      `<h2>${escaped(query.query)} <small>${query.id}, ${query.class}</small></h2><table><tr>` +
      `<td><b>graded</b>${list(
        best.slice(0, 10).map(([name]) => name),
        grades
      )}</td>${columns.join("")}</tr></table>`
    )
  })
  const style = "body{font:14px sans-serif}td{vertical-align:top;padding-right:2em}"
  return `<!doctype html><meta charset="utf-8"><title>Relevance</title><style>${style}</style>${rows.join("\n")}\n`
}
