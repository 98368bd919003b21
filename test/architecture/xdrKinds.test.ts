// Only `kernel/stellar/` contains XDR discriminants; other code calls its functions to read or make XDR. The embedded
// ledger is deliberately excluded: it implements the whole protocol rather than the few types that a payment uses, has
// its own names for them, and shares no decoder with the code it tests.
import { describe, expect, it } from "vitest"
import { eachNode, isNode, lineAt, type Node, parseSource, type Source, sourcesIn } from "./sources.ts"

const vocabulary = "kernel/stellar/"
const theLedgerItself = "plugins/ledger-local/"

/** `x.type` and `x.v`: the discriminant of an XDR union. */
const isDiscriminant = (node: unknown): boolean =>
  isNode(node) &&
  ["MemberExpression", "ChainExpression", "TSAsExpression", "ParenthesizedExpression"].includes(node.type) &&
  (node.type === "MemberExpression"
    ? isNode(node["property"]) && ["type", "v"].includes(String(node["property"]["name"]))
    : isDiscriminant(node["expression"]))

const isNumber = (node: unknown): boolean =>
  isNode(node) &&
  (node.type === "Literal"
    ? typeof node["value"] === "number"
    : isNode(node["expression"]) && isNumber(node["expression"]))

/** Names in a source that are bound to numbers: constants, and tables of constants. */
const numbersOf = (source: Source): ReadonlySet<string> => {
  const names = new Set<string>()
  eachNode(source.program, ({ id, init, type }) => {
    if (type !== "VariableDeclarator" || !isNode(id) || !isNode(init)) return
    const value = init.type === "TSAsExpression" && isNode(init["expression"]) ? init["expression"] : init
    const fields = value.type === "ObjectExpression" ? (value["properties"] as ReadonlyArray<Node>) : []
    if (isNumber(value) || (fields.length > 0 && fields.every((field) => isNumber(field["value"]))))
      names.add(String(id["name"]))
  })
  return names
}

/** A number, or a name for one. */
const isNumberExpression = (node: unknown, numbers: ReadonlySet<string>): boolean => {
  if (!isNode(node)) return false
  if (node.type === "Identifier") return numbers.has(String(node["name"]))
  return node.type === "MemberExpression" ? isNumberExpression(node["object"], numbers) : isNumber(node)
}

const comparisons = new Set(["===", "!==", "==", "!=", "<", ">", "<=", ">="])

const isComparison = (node: Node, numbers: ReadonlySet<string>): boolean => {
  if (node.type === "BinaryExpression" && comparisons.has(String(node["operator"]))) {
    const { left, right } = node
    return (
      (isDiscriminant(left) && isNumberExpression(right, numbers)) ||
      (isDiscriminant(right) && isNumberExpression(left, numbers))
    )
  }
  return (
    node.type === "SwitchStatement" &&
    isDiscriminant(node["discriminant"]) &&
    (node["cases"] as ReadonlyArray<Node>).some(({ test }) => isNumberExpression(test, numbers))
  )
}

const vocabularyIssues = (source: Source): ReadonlyArray<string> => {
  const issues: Array<string> = source.imports.some((one) => one.endsWith("stellar/kinds.ts"))
    ? [`${source.path}: the kinds are for ${vocabulary} alone`]
    : []
  const numbers = numbersOf(source)
  eachNode(source.program, (node) => {
    if (isComparison(node, numbers))
      issues.push(`${source.path}:${lineAt(source, node.start)}: a kind of XDR is compared outside ${vocabulary}`)
  })
  return issues
}

describe("the vocabulary of the ledger's XDR", () => {
  it("is spoken in one folder of the kernel", () => {
    const others = sourcesIn("kernel", "plugins", "runtime", "examples").filter(
      ({ path }) => !path.startsWith(vocabulary) && !path.startsWith(theLedgerItself)
    )
    expect(others.length).toBeGreaterThan(100)
    expect(others.flatMap(vocabularyIssues)).toEqual([])
  })

  it.each([
    "if (value.type === 18) go()",
    "if (1 !== entry.credentials?.type) go()",
    "const kinds = { map: 17, vec: 16 } as const\nconst isMap = value?.type === kinds.map",
    "const muxed = 2\nif ((address.type as number) === muxed) go()",
    "switch (body.type) { case 24: go() }",
    "if (meta.v >= 3) go()",
    'import { valueKind } from "../stellar/kinds.ts"\nvalueKind'
  ])("would catch %s", (text) => {
    expect(vocabularyIssues(parseSource("kernel/ledger/x.ts", text))).toHaveLength(1)
  })

  it.each([
    'if (node.type === "Literal") go()',
    "if (fact.type === asked.type) go()",
    'switch (one.type) { case "a": go(); default: go() }',
    "x.type = 3"
  ])("has nothing to say of %s", (text) => {
    expect(vocabularyIssues(parseSource("kernel/ledger/x.ts", text))).toEqual([])
  })
})
