// The places of the sources that a random sample is drawn from: comparisons, logical operators, conditions, negations,
// arithmetic and boolean literals, each with the texts that may replace it.
import { eachNode, isNode, lineAt, type Node, type Source } from "../architecture/sources.ts"
import type { Random } from "../simulation/random.ts"

/** A part of a file, and its possible replacements. */
export interface Operator {
  readonly path: string
  readonly line: number
  readonly start: number
  readonly end: number
  readonly text: string
  readonly replacements: ReadonlyArray<string>
}

const opposites: Readonly<Record<string, ReadonlyArray<string>>> = {
  "<": ["<=", ">="],
  "<=": ["<", ">"],
  ">": [">=", "<="],
  ">=": [">", "<"],
  "===": ["!=="],
  "!==": ["==="],
  "+": ["-"],
  "-": ["+"],
  "*": ["/"],
  "/": ["*"],
  "%": ["*"],
  "&&": ["||"],
  "||": ["&&"],
  "??": ["&&"]
}

const isText = (node: unknown): boolean =>
  isNode(node) && (node.type === "TemplateLiteral" || (node.type === "Literal" && typeof node["value"] === "string"))

const endOf = (node: Node): number => node["end"] as number

/** The part of a node that is replaced, and its replacements. */
const changeOf = (node: Node, { text }: Source): Pick<Operator, "start" | "end" | "replacements"> | undefined => {
  const { left, operator, right, test } = node as Node & Record<"left" | "right" | "test", Node | undefined>
  switch (node.type) {
    case "BinaryExpression":
    case "LogicalExpression": {
      const replacements = opposites[operator as string]
      if (replacements === undefined || isText(left) || isText(right)) return undefined
      const start = text.indexOf(operator as string, endOf(left!))
      return { start, end: start + (operator as string).length, replacements }
    }
    case "UnaryExpression":
      return operator === "!" ? { start: node.start, end: node.start + 1, replacements: [""] } : undefined
    case "IfStatement":
    case "ConditionalExpression":
      return { start: test!.start, end: endOf(test!), replacements: ["true", "false"] }
    case "Literal":
      return typeof node["value"] === "boolean"
        ? { start: node.start, end: endOf(node), replacements: [String(!(node["value"] as boolean))] }
        : undefined
    default:
      return undefined
  }
}

/** Effect drops the results of a loop with `discard`; without it, they are collected and unused. */
const isDiscard = (parent: Node | undefined): boolean =>
  parent?.type === "Property" && (parent["key"] as Node)["name"] === "discard"

/** Every operator of a source, the innermost ones included. */
export const operatorsOf = (source: Source): ReadonlyArray<Operator> => {
  const found: Array<Operator> = []
  eachNode(source.program, (node, parent) => {
    const change = parent?.type === "TSLiteralType" || isDiscard(parent) ? undefined : changeOf(node, source)
    if (change === undefined) return
    const { path, text } = source
    found.push({ path, line: lineAt(source, change.start), text: text.slice(change.start, change.end), ...change })
  })
  return found
}

/** `count` different elements, in the order of the input; all of them where there are fewer. */
export const sampleOf = <A>(all: ReadonlyArray<A>, count: number, { int }: Random): ReadonlyArray<A> => {
  const indices = all.map((_, index) => index)
  const chosen = Array.from(
    { length: Math.min(count, all.length) },
    () => indices.splice(int(0, indices.length - 1), 1)[0]!
  )
  return chosen.toSorted((a, b) => a - b).map((index) => all[index]!)
}
