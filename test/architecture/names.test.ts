// Naming rules: no type shadows a global of the language, type names are unique in the kernel, one term has one
// meaning, and required things are not called wanted.
import { describe, expect, it } from "vitest"
import { eachNode, isNode, lineAt, type Node, parseSource, type Source, sourcesIn } from "./sources.ts"

/** Built-in types that a reader takes for granted. */
const builtIn = new Set(
  [
    "Array",
    "Date",
    "Error",
    "Function",
    "Iterator",
    "Map",
    "Number",
    "Object",
    "Partial",
    "Promise",
    "Readonly"
  ].concat(["Record", "RegExp", "Set", "String", "Symbol", "Uint8Array", "WeakMap"])
)

/** Too general as a type's whole name, because the subject is missing. */
const general = new Set(["Journal", "Observation", "Standing"])

const kinds = ["ClassDeclaration", "TSInterfaceDeclaration", "TSTypeAliasDeclaration"]
const nameOf = ({ id, name }: Node): string => String(isNode(id) ? id["name"] : name)

const typesOf = ({ program }: Source, exportedOnly: boolean): ReadonlyArray<Node> => {
  const found: Array<Node> = []
  eachNode(program, (node, parent) => {
    if (kinds.includes(node.type) && (!exportedOnly || parent?.type === "ExportNamedDeclaration")) found.push(node)
  })
  return found
}

const nameIssues = (source: Source): ReadonlyArray<string> => {
  const issues: Array<string> = []
  const issue = (node: Node, what: string) => issues.push(`${source.path}:${lineAt(source, node.start)} ${what}`)
  for (const node of typesOf(source, false)) {
    if (builtIn.has(nameOf(node))) issue(node, `${nameOf(node)} hides the language's own`)
    if (general.has(nameOf(node))) issue(node, `${nameOf(node)} of what?`)
  }
  eachNode(source.program, (node) => {
    const name = node.type === "Identifier" ? nameOf(node) : ""
    if (/(?:^|[a-z])[wW]ant(?:s|ed)?(?![a-z])/.test(name)) issue(node, `${name}: what is required, asked or expected?`)
  })
  return issues
}

/** Type names that several files of the kernel export. */
const twins = (all: ReadonlyArray<Source>): ReadonlyArray<string> =>
  [
    ...Map.groupBy(
      all.flatMap((source) => typesOf(source, true).map(nameOf)),
      (name) => name
    )
  ]
    .filter(([, { length }]) => length > 1)
    .map(([name]) => name)

describe("names", () => {
  it("shadow no global, name their owner, and say required", () => {
    const named = sourcesIn("kernel", "plugins", "runtime", "examples")
    expect(named.length).toBeGreaterThan(200)
    expect(named.flatMap(nameIssues)).toEqual([])
  })

  it("of the kernel's types are unique", () => {
    expect(twins(sourcesIn("kernel"))).toEqual([])
  })

  it.each([
    "export interface Promise { readonly payer: string }",
    "class Map {}",
    "type Standing = 1",
    "const wanted = 1",
    "f({ isWanted: true })"
  ])("would catch %s", (text) => {
    expect(nameIssues(parseSource("kernel/x.ts", text))).toHaveLength(1)
  })

  it("would catch a type's name that two files of the kernel export", () => {
    const one = (path: string) => parseSource(path, "export interface Signed {}\ninterface Row {}")
    expect(twins([one("kernel/a.ts"), one("kernel/b.ts")])).toEqual(["Signed"])
  })
})
