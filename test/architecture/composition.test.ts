// One dialect of composition: shared state is a `Context.Service` with a Layer, with a written type and not one taken
// from the function that makes it; only the runtime runs an effect; importing a module registers nothing; and a
// contract's services are inferred from its keys.
import { describe, expect, it } from "vitest"
import { eachNode, isNode, lineAt, type Node, parseSource, type Source, sourcesIn } from "./sources.ts"

/**
 * Tables at module level that are filled at run time: memoized results of the embedded ledger, and the counters of
 * caches by their names.
 */
const caches = [
  "kernel/cache/LruCache.ts",
  "plugins/ledger-local/engine/xdr/ScVal.ts",
  "plugins/ledger-local/transaction/assetContractId.ts"
]

const nameOf = (value: unknown): string => (isNode(value) && value.type === "Identifier" ? String(value["name"]) : "")

/** The name in a type's `typeof name`. */
const queried = ({ exprName, type }: Node): string => (type === "TSTypeQuery" ? nameOf(exprName) : "")

const isEmptyTable = (init: unknown): boolean =>
  isNode(init) &&
  init.type === "NewExpression" &&
  ["Map", "Set"].includes(nameOf(init["callee"])) &&
  (init["arguments"] as ReadonlyArray<unknown>).length === 0

/** Tables of a source that are empty after its module has loaded. */
const emptyTables = ({ program }: Source): ReadonlyArray<Node> =>
  (program["body"] as ReadonlyArray<Node>).flatMap((statement) => {
    const declared = isNode(statement["declaration"]) ? statement["declaration"] : statement
    return declared.type === "VariableDeclaration"
      ? (declared["declarations"] as ReadonlyArray<Node>).filter(({ init }) => isEmptyTable(init))
      : []
  })

const compositionIssues = (source: Source): ReadonlyArray<string> => {
  const issues: Array<string> = []
  const issue = (node: Node, what: string) => issues.push(`${source.path}:${lineAt(source, node.start)} ${what}`)
  eachNode(source.program, (node, parent) => {
    // An item of a list is not a service.
    if (/^make|Moves$/.test(queried(node)) && parent?.type !== "TSParenthesizedType")
      issue(node, "the type of what a function makes has no name of its own")
    const member = node.type === "MemberExpression" ? `${nameOf(node["object"])}.${nameOf(node["property"])}` : ""
    if (/^Effect\.run/.test(member)) issue(node, `${member} in library code`)
    if (node.type === "CallExpression" && nameOf(node["callee"]) === "contract") {
      const given = node["arguments"] as ReadonlyArray<Node>
      if (isNode(node["typeArguments"]) || given.some(({ type }) => type === "TSAsExpression"))
        issue(node, "a contract whose services are not inferred")
    }
  })
  if (!caches.includes(source.path))
    for (const node of emptyTables(source)) issue(node, "a table that other modules fill")
  return issues
}

describe("composition", () => {
  it("is by services, and runs nothing while it is read", () => {
    const own = sourcesIn("kernel", "plugins")
    expect(own.length).toBeGreaterThan(200)
    expect(own.flatMap(compositionIssues)).toEqual([])
    const commands = sourcesIn("runtime").flatMap(compositionIssues)
    expect(commands.filter((issue) => !issue.includes("Effect.run"))).toEqual([])
  })

  it.each([
    "type Parts = { readonly store: ReturnType<typeof makeStore> }",
    "const f = (moves: ReturnType<typeof channelMoves>) => moves",
    "const queue = Effect.runSync(Queue.unbounded())",
    "const found = new Map<string, string>()",
    "export const found = new Set()",
    'const c = contract("x", Keys as any)',
    'const c = contract<"x", Keys>("x", Keys)'
  ])("would catch %s", (text) => {
    expect(compositionIssues(parseSource("kernel/x.ts", text))).toHaveLength(1)
  })

  it.each([
    'const words = new Set(["a"])',
    "type Move = (typeof operatorMoves)[number]",
    "const f = () => new Map<string, string>()",
    "const sizes = new WeakMap<object, number>()",
    'const c = contract("x", Keys, Callers)'
  ])("has nothing to say of %s", (text) => {
    expect(compositionIssues(parseSource("kernel/x.ts", text))).toEqual([])
  })
})
