// Lists as CSV: a spreadsheet reads the same values as the report contains.
import { describe, expect, it } from "vitest"
import { Option } from "effect"
import { asksForCsv, csvOf } from "../../../kernel/http/csv.ts"

/** An RFC 4180 reader, independent of the writer under test. */
const parse = (text: string): ReadonlyArray<ReadonlyArray<string>> => {
  const rows: Array<Array<string>> = []
  let row: Array<string> = []
  let field = ""
  let quoted = false
  for (let at = 0; at < text.length; at++) {
    const [one, next] = [text[at]!, text[at + 1]]
    if (quoted) {
      if (one === '"' && next === '"') {
        field += '"'
        at++
      } else if (one === '"') quoted = false
      else field += one
    } else if (one === '"') quoted = true
    else if (one === ",") {
      row.push(field)
      field = ""
    } else if (one === "\r" && next === "\n") {
      rows.push([...row, field])
      row = []
      field = ""
      at++
    } else field += one
  }
  return rows
}

const read = (body: unknown) => parse(Option.getOrThrow(csvOf(body)))

describe("a list as CSV", () => {
  it("CSV has one line per item and dotted columns in report order", () => {
    const items = [
      { id: "1", amount: "10", organic: { total: "7" }, tags: ["a", "b"], at: null },
      { id: "2", amount: "20", organic: { total: "9" }, tags: [], extra: true }
    ]
    expect(read({ items, pagination: { limit: 50, offset: 0, total: 2 } })).toEqual([
      ["id", "amount", "organic.total", "tags", "at", "extra"],
      ["1", "10", "7", "a b", "", ""],
      ["2", "20", "9", "", "", "true"]
    ])
  })

  it("keeps commas, quotes and line breaks within a field", () => {
    const text = 'a,"b"\r\nc\nd'
    expect(read({ items: [{ text, next: "x" }] })).toEqual([
      ["text", "next"],
      [text, "x"]
    ])
  })

  it("CSV escapes formulas in text and leaves numbers unchanged", () => {
    const written = ["=1+1", "+1-1", "-cmd", "@SUM(A1)", "\t=1", "-5", "-0.5", "12"]
    const wide = [" =1", "＝1", "＋1", "－1", "＠x", "\u00a0=1"]
    expect(read({ items: wide.map((text) => ({ text })) }).slice(1)).toEqual(wide.map((text) => [`'${text}`]))
    const fields = read({ items: written.map((text) => ({ text })) }).slice(1)
    expect(fields.map(([text]) => text)).toEqual(["'=1+1", "'+1-1", "'-cmd", "'@SUM(A1)", "'\t=1", "-5", "-0.5", "12"])
  })

  it("CSV neutralizes and quotes a formula behind a separator of another locale", () => {
    const text = (value: string) => Option.getOrThrow(csvOf({ items: [{ text: value }] })).split("\r\n", 2)[1]
    expect(text("a;=1+1")).toBe(`"a;'=1+1"`)
    expect(text("a;b")).toBe('"a;b"')
    expect(text("a\tb")).toBe('"a\tb"')
    expect(text('a;"=1+1"')).toBe(`"a;""'=1+1"""`)
    expect(read({ items: [{ text: "a\t@x,-cmd\r＝1" }] })[1]).toEqual(["a\t'@x,'-cmd\r'＝1"])
    expect(read({ items: [{ list: [1, -5, -0.5] }] })[1]).toEqual(["[1,-5,-0.5]"])
    expect(text("https://shop.example/a?b=1&c=-2")).toBe("https://shop.example/a?b=1&c=-2")
  })

  it("CSV is available for lists, series and breakdowns only", () => {
    expect(read({ bucket: "day", series: [{ bucket_start: "x" }] })).toEqual([["bucket_start"], ["x"]])
    expect(read({ days: 1, networks: [{ key: "n" }], schemes: [{ key: "s" }], assets: [], statuses: [] })).toEqual([
      ["by", "key"],
      ["networks", "n"],
      ["schemes", "s"]
    ])
    expect(Option.isNone(csvOf({ total_transactions: "1" }))).toBe(true)
    expect(csvOf({ items: [] })).toEqual(Option.some(""))
  })

  it("returns CSV to a client that prefers it to JSON", () => {
    const asks = (accept: string) => asksForCsv({ headers: { accept } } as never)
    expect(["text/csv", "text/csv , application/json;q=0.5", "TEXT/CSV;header=present"].map(asks)).toEqual([
      true,
      true,
      true
    ])
    expect(["", "*/*", "text/csvx", "application/json", "application/json, text/csv", "text/html"].map(asks)).toEqual(
      Array.from({ length: 6 }, () => false)
    )
  })
})
