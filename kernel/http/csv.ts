// A list as CSV (RFC 4180) for a request with `Accept: text/csv`: one line per item, one column per member, named as in
// JSON. Nested members are joined by dots, lists of strings by spaces; other lists are JSON. In text from a seller or
// buyer we put an apostrophe before anything that a spreadsheet would run as a formula, also behind a semicolon, comma,
// tab or line break: a spreadsheet of another locale splits cells there. Pure.
import { Option } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { json } from "./httpMiddleware.ts"

/** Whether the request accepts CSV by name, and before JSON. */
export const asksForCsv = ({ headers }: HttpServerRequest.HttpServerRequest): boolean => {
  const placeOf = (type: string) => (headers["accept"] ?? "").search(RegExp(`(?:^|,)\\s*${type}\\s*(?:[;,]|$)`, "i"))
  const [csv, json] = [placeOf("text/csv"), placeOf("application/json")]
  return csv >= 0 && (json < 0 || csv < json)
}

type Flat = Readonly<Record<string, string>>

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isWord = (value: unknown): boolean => typeof value === "string" && !/\s/.test(value)

const textOf = (value: unknown): string => {
  if (value === null || value === undefined) return ""
  if (Array.isArray(value)) return value.every(isWord) ? value.join(" ") : JSON.stringify(value)
  return String(value)
}

const flatten = (value: Readonly<Record<string, unknown>>, prefix: string): Flat =>
  Object.assign(
    {},
    ...Object.entries(value).map(([name, item]) =>
      isObject(item) ? flatten(item, `${prefix}${name}.`) : { [prefix + name]: textOf(item) }
    )
  )

/** The beginning of a formula for a spreadsheet; wide forms too. */
const formula = /^\s*[=+\-@＝＋－＠]/
/**
 * A formula behind any character at which some spreadsheet splits cells, regardless of this file's separator; not a
 * figure in a list.
 */
const formulaWithin = /([;,\t\r\n|][\s"]*)(?=[=+\-@＝＋－＠])(?!-?[0-9]+(\.[0-9]+)?(?:[;,\s\]}]|$))/g
const figure = /^-?[0-9]+(\.[0-9]+)?$/

/**
 * Text that no spreadsheet runs: neutralized at the cell's beginning and behind a separator in it. Figures stay
 * figures.
 */
const neutralized = (text: string): string => {
  if (figure.test(text)) return text
  const begin = text.length - text.trimStart().length
  const inner = text.slice(0, begin) + text.slice(begin).replace(formulaWithin, "$1'")
  return formula.test(text) || /^[\t\r\n]/.test(text) ? `'${inner}` : inner
}

const field = (text: string): string => {
  const safe = neutralized(text)
  return /[",;\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** Members that hold lists, one for each kind of a thing. */
const kindsKnown = ["networks", "schemes", "assets", "statuses", "reasons"]

/** The rows of an answer: its `items`, `resources` or `series`, or the lists of its kinds with the kind of each row. */
const rowsOf = (
  body: unknown,
  kinds: ReadonlyArray<string>
): ReadonlyArray<Readonly<Record<string, unknown>>> | undefined => {
  if (!isObject(body)) return undefined
  for (const name of ["items", "resources", "series"]) {
    const rows = body[name]
    if (Array.isArray(rows)) return rows.filter(isObject)
  }
  const present = kinds.filter((kind) => Array.isArray(body[kind]))
  return present.length === 0
    ? undefined
    : present.flatMap((kind) =>
        (body[kind] as ReadonlyArray<unknown>).filter(isObject).map((row) => ({ by: kind, ...row }))
      )
}

/** None if the body is not a list. An empty list is empty text. */
export const csvOf = (body: unknown, kinds: ReadonlyArray<string> = kindsKnown): Option.Option<string> => {
  const rows = rowsOf(body, kinds)?.map((row) => flatten(row, ""))
  if (rows === undefined) return Option.none()
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const lines = [columns, ...rows.map((row) => columns.map((column) => row[column] ?? ""))]
  return Option.some(columns.length === 0 ? "" : lines.map((line) => `${line.map(field).join(",")}\r\n`).join(""))
}

export const csvType = "text/csv; charset=utf-8; header=present"

/** An answer as JSON, or as a table if it is a list and the request asks for one; never cached. */
export const listed = (
  request: HttpServerRequest.HttpServerRequest,
  body: unknown,
  kinds: ReadonlyArray<string> = kindsKnown
): HttpServerResponse.HttpServerResponse => {
  const table = asksForCsv(request) ? csvOf(body, kinds) : Option.none<string>()
  return Option.match(table, {
    onNone: () => json(body, { headers: { vary: "accept" } }),
    onSome: (text) =>
      HttpServerResponse.text(text, {
        contentType: csvType,
        headers: { "x-content-type-options": "nosniff", "cache-control": "no-store", vary: "accept" }
      })
  })
}
