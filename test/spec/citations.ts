// The requirements that the tests prove. A test cites them at the end of its name, `"refuses an unknown network
// [S262]"`, with numbers separated by commas and ranges written `S285–S305`. A test that is skipped, still to do or
// expected to fail proves nothing, and the name of a group does not count either.
import { eachNode, isNode, lineAt, type Node, type Source } from "../architecture/sources.ts"
import { requirements } from "./sections.ts"

export interface Citation {
  readonly requirement: number
  /** `path:line` of the test. */
  readonly at: string
}

/** `[S1, S84]`, or each in its own brackets. */
const citation = /\[(S\d+(?:[-–]S?\d+)?(?:(?:, ?|\]\[)S\d+(?:[-–]S?\d+)?)*)\]$/

/** The numbers in a test's name; empty when it cites none. */
export const numbersIn = (name: string): ReadonlyArray<number> => {
  const cited = citation.exec(name)?.[1]
  if (cited === undefined) return []
  return cited.split(/,|\]\[/).flatMap((part) => {
    const [first = 0, last = first] = [...part.matchAll(/\d+/g)].map(([number]) => Number(number))
    return Array.from({ length: Math.max(0, last - first) + 1 }, (_, index) => first + index)
  })
}

const silent = new Set(["describe", "describeDatabases", "skip", "todo", "fails", "skipIf", "runIf"])

/** The names in a callee: `it.effect.skip` gives it, effect, skip. */
const wordsOf = (callee: unknown): ReadonlyArray<string> => {
  if (!isNode(callee)) return []
  if (callee.type === "Identifier") return [String(callee["name"])]
  if (callee.type === "MemberExpression") return [...wordsOf(callee["object"]), ...wordsOf(callee["property"])]
  return callee.type === "CallExpression" ? wordsOf(callee["callee"]) : []
}

const textOf = (node: Node): string | undefined => {
  if (node.type === "Literal" && typeof node["value"] === "string") return node["value"]
  if (node.type !== "TemplateLiteral") return undefined
  return (node["quasis"] as ReadonlyArray<{ readonly value: { readonly cooked: string } }>)
    .map(({ value }) => value.cooked)
    .join("…")
}

/** The citations of one source's tests; throws on a number that is not a requirement. */
export const citationsOf = (source: Source): ReadonlyArray<Citation> => {
  const found: Array<Citation> = []
  eachNode(source.program, (node, parent, key) => {
    const numbers = numbersIn(textOf(node) ?? "")
    if (numbers.length === 0) return
    if (key === "arguments" && wordsOf(parent?.["callee"]).some((word) => silent.has(word))) return
    const at = `${source.path}:${lineAt(source, node.start)}`
    for (const requirement of numbers) {
      if (requirement < 1 || requirement > requirements)
        throw new Error(`${at} cites S${requirement}, and there are ${requirements}`)
      found.push({ requirement, at })
    }
  })
  return found
}
