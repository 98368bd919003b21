// Limits on size: functions of seventy lines, lines of a hundred and twenty, no import cycles. Longer functions are
// listed here with their length, which may only decrease.
import { posix } from "node:path"
import { describe, expect, it } from "vitest"
import { eachNode, isNode, parseSource, type Source, sources, sourcesIn } from "./sources.ts"

const functionLinesMax = 70
const lineMax = 120

/** The longest function of each file with one that is too long. */
const longFunctions: Readonly<Record<string, number>> = {}

/** Number of too long lines by file. */
const longLines: Readonly<Record<string, number>> = {}

/** The longest function of a source, a Layer's generator included. */
const longestFunction = ({ program, text }: Source): number => {
  let longest = 0
  eachNode(program, (node) => {
    if (!/Function/.test(node.type) || !isNode(node["body"])) return
    longest = Math.max(longest, text.slice(node.start, node["end"] as number).split("\n").length)
  })
  return longest
}

/**
 * Lines that are too long. In a test a single string may exceed the limit: its name is a fact with its citations, and
 * splitting a vector or a snippet of source would make it hard to find.
 */
const linesTooLong = ({ path, program, text }: Source): number => {
  const strings = new Map<number, number>()
  if (path.startsWith("test/")) {
    eachNode(program, ({ end, start, type, value }) => {
      if (type !== "Literal" || typeof value !== "string") return
      const lineStart = text.lastIndexOf("\n", start) + 1
      strings.set(lineStart, Math.max(strings.get(lineStart) ?? 0, (end as number) - start))
    })
  }
  let at = 0
  return text.split("\n").filter((line) => {
    const lineStart = at
    at += line.length + 1
    return line.length - (strings.get(lineStart) ?? 0) > lineMax
  }).length
}

const functionIssues = (source: Source): ReadonlyArray<string> => {
  const most = longFunctions[source.path] ?? functionLinesMax
  const longest = longestFunction(source)
  return longest > most ? [`${source.path}: a function of ${longest} lines, more than ${most}`] : []
}

/** Import cycles, types included; each cycle once, in the order of discovery. */
const circles = (all: ReadonlyArray<Pick<Source, "path" | "imports">>): ReadonlyArray<string> => {
  const needs = new Map(
    all.map(({ imports, path }) => [
      path,
      imports.filter((one) => one.startsWith(".")).map((one) => posix.join(posix.dirname(path), one))
    ])
  )
  const state = new Map<string, "open" | "done">()
  const found: Array<string> = []
  const visit = (path: string, trail: ReadonlyArray<string>): void => {
    if (state.get(path) === "open") found.push([...trail.slice(trail.indexOf(path)), path].join(" → "))
    if (state.has(path)) return
    state.set(path, "open")
    for (const next of needs.get(path) ?? []) visit(next, [...trail, path])
    state.set(path, "done")
  }
  for (const path of needs.keys()) visit(path, [])
  return found
}

describe("lengths", () => {
  it("of a function are seventy lines at most, a Layer's generator included", () => {
    expect(sourcesIn("kernel", "plugins", "runtime").flatMap(functionIssues)).toEqual([])
  })

  it("of a line are a hundred and twenty characters at most", () => {
    const grown = sources.flatMap((source) => {
      const count = linesTooLong(source)
      const most = longLines[source.path] ?? 0
      return count > most ? [`${source.path}: ${count} lines, more than ${most}`] : []
    })
    expect(grown).toEqual([])
  })

  it("reports a function of 71 lines and a line of 121 characters", () => {
    const body = "  a()\n".repeat(functionLinesMax)
    expect(functionIssues(parseSource("kernel/x.ts", `export const f = () => {\n${body}}`))).toHaveLength(1)
    expect(linesTooLong(parseSource("kernel/x.ts", `// ${"x".repeat(lineMax)}`))).toBe(1)
    const named = `it("${"x".repeat(lineMax)}", () => {})\n`
    expect(linesTooLong(parseSource("kernel/x.ts", named))).toBe(1)
    expect(linesTooLong(parseSource("test/x.ts", named))).toBe(0)
    expect(linesTooLong(parseSource("test/x.ts", `${named}${"x".repeat(lineMax)}()`))).toBe(1)
  })
})

describe("imports", () => {
  it("form no circle of files, types included", () => {
    expect(circles(sources)).toEqual([])
  })

  it("would be caught in a circle of three", () => {
    const file = (path: string, ...imports: ReadonlyArray<string>) => ({ path, imports })
    const three = [file("a/x.ts", "./y.ts"), file("a/y.ts", "../b/z.ts"), file("b/z.ts", "../a/x.ts", "effect")]
    expect(circles(three)).toEqual(["a/x.ts → a/y.ts → b/z.ts → a/x.ts"])
  })
})
