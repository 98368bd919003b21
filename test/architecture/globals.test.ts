// Only the runtime folder uses the platform's globals: time, randomness, timers, output and requests come through
// services, so that a test can control them and Node and Deno run the same source. The modules of the pages run in a
// browser and use its globals.
import { describe, expect, it } from "vitest"
import { eachNode, isNode, isPage, lineAt, type Node, parseSource, type Source, sourcesIn } from "./sources.ts"

const globals = new Set([
  "process",
  "Deno",
  "Bun",
  "Buffer",
  "console",
  "globalThis",
  "require",
  "__dirname",
  "__filename",
  "navigator",
  "fetch",
  "performance",
  "setTimeout",
  "setInterval",
  "setImmediate",
  "queueMicrotask",
  "localStorage"
])

/** `crypto` is also the name of variables with our service, so we check its members. */
const members = new Set(["Date.now", "Math.random", "crypto.subtle", "crypto.getRandomValues", "crypto.randomUUID"])

/** True if a name is only the name of a property, a key or an import. */
const isLabel = (parent: Node | undefined, key: string): boolean => {
  if (parent === undefined) return false
  if (key === "property" && parent.type === "MemberExpression") return parent["computed"] !== true
  if (key === "key") return parent["computed"] !== true
  if (key === "right" && parent.type === "TSQualifiedName") return true
  return ["ImportSpecifier", "ExportSpecifier"].includes(parent.type) && key === "imported"
}

const nameOf = (value: unknown): string => (isNode(value) && value.type === "Identifier" ? String(value["name"]) : "")

const globalIssues = (source: Source): ReadonlyArray<string> => {
  const issues: Array<string> = []
  const issue = (node: Node, what: string) => issues.push(`${source.path}:${lineAt(source, node.start)} ${what}`)
  eachNode(source.program, (node, parent, key) => {
    const name = nameOf(node)
    if (globals.has(name) && !isLabel(parent, key)) issue(node, name)
    if (node.type === "MemberExpression") {
      const member = `${nameOf(node["object"])}.${nameOf(node["property"])}`
      if (members.has(member)) issue(node, member)
    }
    const bare = Array.isArray(node["arguments"]) && node["arguments"].length === 0
    if (["NewExpression", "CallExpression"].includes(node.type) && bare && nameOf(node["callee"]) === "Date")
      issue(node, "the current date")
  })
  return issues
}

describe("globals of a platform", () => {
  it("are used only in the runtime folder, in tests and in examples [S336]", () => {
    const served = sourcesIn("kernel", "plugins", "migrations").filter(({ path }) => !isPage(path))
    expect(served.flatMap(globalIssues)).toEqual([])
  })

  it.each([
    "process.env.X",
    "Deno.args",
    "Buffer.from([])",
    "console.log(1)",
    "Date.now()",
    "new Date()",
    "Math.random()",
    "setTimeout(f, 1)",
    "globalThis.fetch(u)",
    "fetch(u)",
    "crypto.randomUUID()",
    "performance.now()",
    "({ process })"
  ])("would catch %s", (expression) => {
    expect(globalIssues(parseSource("kernel/x.ts", `export const x: any = () => ${expression}`))).toHaveLength(1)
  })

  it.each([
    "options.process.id",
    "({ fetch: 1 })",
    "new Date(0)",
    "Effect.log(console_)",
    '"process"',
    "/* process.env */ 1"
  ])("lets %s pass", (expression) => {
    expect(globalIssues(parseSource("kernel/x.ts", `export const x: any = ${expression}`))).toEqual([])
  })
})
