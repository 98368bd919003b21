// A route is declared once, by its owner (`kernel/http/Route.ts`): the kernel's HTTP folder contains no path of a
// plugin, and no plugin adds a route to the router directly.
import { describe, expect, it } from "vitest"
import { eachNode, lineAt, type Node, parseSource, type Source, sourcesIn } from "./sources.ts"

/** Texts of a source: string literals, parts of templates and regular expressions. */
const textOf = (node: Node): string | undefined => {
  const { value } = node
  if (node.type === "Literal") return typeof value === "string" ? value : (node["regex"] as any)?.pattern
  return node.type === "TemplateElement" ? String((value as any)?.cooked ?? "") : undefined
}

/** Whether a node is the path of a declaration: a member of this name, or the second argument of `at`. */
const isPath = (node: Node, parent: Node | undefined, key: string): boolean =>
  parent?.type === "Property"
    ? key === "value" && (parent["key"] as any)?.name === "path"
    : parent?.type === "CallExpression" &&
      (parent["callee"] as any)?.name === "at" &&
      (parent["arguments"] as any)[1] === node

/** First segments of the paths that plugins declare. */
const segmentsOf = (sources: ReadonlyArray<Source>): ReadonlySet<string> => {
  const found = new Set<string>()
  for (const { program } of sources)
    eachNode(program, (node, parent, key) => {
      const text = node.type === "TemplateLiteral" ? textOf((node["quasis"] as any)[0]) : textOf(node)
      const segment =
        isPath(node, parent, key) && text !== undefined ? /^\/([a-z][a-z0-9-]*)/.exec(text)?.[1] : undefined
      if (segment !== undefined) found.add(segment)
    })
  return found
}

/** Places of a source that contain a plugin's path. */
const namedIn = (source: Source, segments: ReadonlySet<string>): ReadonlyArray<string> => {
  const issues: Array<string> = []
  eachNode(source.program, (node, parent) => {
    if (parent?.type === "ImportDeclaration") return
    const text = textOf(node)
    if (text === undefined) return
    const isRegex = node["regex"] !== undefined
    const words = isRegex ? text.split(/[^a-z0-9-]+/) : [...text.matchAll(/\/([a-z][a-z0-9-]*)/g)].map((m) => m[1]!)
    for (const word of words)
      if (segments.has(word)) issues.push(`${source.path}:${lineAt(source, node.start)} names /${word}`)
  })
  return issues
}

/** Calls of the bare router. */
const addedIn = (source: Source): ReadonlyArray<string> =>
  [...source.text.matchAll(/\brouter\.(add|addAll)\(/g)].map(
    ({ index }) => `${source.path}:${lineAt(source, index)} adds a route by hand`
  )

describe("routes", () => {
  const plugins = sourcesIn("plugins")

  it("kernel/http names no path of a plugin", () => {
    const segments = segmentsOf(plugins)
    expect([...segments]).toEqual(expect.arrayContaining(["analytics", "discovery", "dashboard", "receipts", "batch"]))
    expect(sourcesIn("kernel/http").flatMap((source) => namedIn(source, segments))).toEqual([])
  })

  it("plugins declare their routes", () => {
    expect(plugins.flatMap(addedIn)).toEqual([])
  })

  it("a path or a route that is written by hand would be seen", () => {
    const segments = new Set(["discovery"])
    for (const text of [
      'const p = "/discovery/x"',
      "const p = /^\\/(a|discovery)(\\/|$)/",
      "const p = `/discovery/${x}`"
    ])
      expect(namedIn(parseSource("kernel/http/x.ts", text), segments)).toHaveLength(1)
    expect(namedIn(parseSource("kernel/http/x.ts", 'import "../discovery/x.ts"'), segments)).toEqual([])
    expect(addedIn(parseSource("plugins/x/x.ts", 'router.add("GET", "/x", y)'))).toHaveLength(1)
  })
})
