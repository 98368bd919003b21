// The places of the sources that a random sample is drawn from: comparisons, logical operators, conditions, negations,
// arithmetic and boolean literals. StrykerJS decides what each place becomes.
import { eachNode, lineAt, type Node, type Source } from "../architecture/sources.ts"
import type { Random } from "../simulation/random.ts"

/** An operator in a file, in the form that StrykerJS takes: `file:line:column-line:column`, lines from 1. */
export interface Operator {
  readonly path: string
  readonly line: number
  readonly lastLine: number
  readonly range: string
}

/** StrykerJS also changes every operator inside a chosen place, so large expressions are represented by their parts. */
const charactersMax = 80

const kinds = new Set(["BinaryExpression", "LogicalExpression", "UnaryExpression", "ConditionalExpression", "Literal"])

const isOperator = (node: Node): boolean =>
  kinds.has(node.type) &&
  (node["end"] as number) - node.start <= charactersMax &&
  (node.type !== "Literal" || typeof node["value"] === "boolean") &&
  (node.type !== "UnaryExpression" || node["operator"] === "!")

const columnAt = (text: string, position: number): number => position - (text.lastIndexOf("\n", position - 1) + 1)

const positionOf = (source: Source, position: number): string =>
  `${lineAt(source, position)}:${columnAt(source.text, position)}`

/** Every operator of a source, the innermost ones included. */
export const operatorsOf = (source: Source): ReadonlyArray<Operator> => {
  const found: Array<Operator> = []
  eachNode(source.program, (node, parent) => {
    if (!isOperator(node) || parent?.type === "TSLiteralType") return
    const [start, end] = [node.start, node["end"] as number]
    found.push({
      path: source.path,
      line: lineAt(source, start),
      lastLine: lineAt(source, end),
      range: `${source.path}:${positionOf(source, start)}-${positionOf(source, end)}`
    })
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
