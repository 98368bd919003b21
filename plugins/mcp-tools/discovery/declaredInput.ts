// The inputs that a listing declares: the JSON Schema of a request or of a tool's arguments, and the same as one line
// that an agent can call by. A seller's names and values appear in the line only as single words. Pure.
import { neutralExtension } from "../../../kernel/Dialect.ts"
import { isWord } from "../inert.ts"
import type { CanonicalResource } from "./DiscoveryWire.ts"

type Fields = Readonly<Record<string, unknown>>

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export interface DeclaredInput {
  readonly toolName: unknown
  readonly transport: string
  readonly inputSchema: unknown
}

/** The catalog's extension among extensions, in either spelling. */
const catalogExtension = (extensions: unknown): Fields => {
  if (!isFields(extensions)) return {}
  const own = Object.entries(extensions).find(([key]) => neutralExtension(key) === "catalog")?.[1]
  return isFields(own) ? own : {}
}

const within = (schema: unknown, path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((one, name) => (isFields(one) && Object.hasOwn(one, name) ? one[name] : undefined), schema)

/** The JSON Schema that a declaration has for an HTTP request. */
export const readInputSchema = (extensions: unknown): unknown =>
  within(catalogExtension(extensions)["schema"], ["properties", "input"])

export const readBodySchema = (extensions: unknown): unknown =>
  within(readInputSchema(extensions), ["properties", "body"])

export const readDeclaration = (extensions: unknown): DeclaredInput | undefined => {
  const { info } = catalogExtension(extensions)
  const input = isFields(info) ? info["input"] : undefined
  if (!isFields(input)) return undefined
  const { inputSchema, toolName, transport } = input
  return { toolName, transport: typeof transport === "string" ? transport : "streamable-http", inputSchema }
}

/** Maximum inputs in one line, and values of one input. */
const inputsMax = 12
const valuesMax = 8

const typeOf = (schema: Fields): string => {
  const types = [schema["type"]].flat().filter((type) => typeof type === "string" && isWord(type))
  return types.length === 0 ? "any" : types.slice(0, 3).join("/")
}

const oneInput = (name: string, schema: unknown, required: unknown): string => {
  const own = isFields(schema) ? schema : {}
  const values = Array.isArray(own["enum"]) ? own["enum"].map(String).filter(isWord).slice(0, valuesMax) : []
  const isRequired = Array.isArray(required) && required.includes(name)
  return `${name} ${values.length > 0 ? values.join("/") : typeOf(own)}${isRequired ? " required" : ""}`
}

/** The members of an object, by its schema, or else by the declared example. */
const membersIn = (schema: unknown, example: unknown): ReadonlyArray<string> => {
  const properties = within(schema, ["properties"])
  if (isFields(properties) && Object.keys(properties).length > 0)
    return Object.entries(properties).map(([name, one]) => oneInput(name, one, within(schema, ["required"])))
  return isFields(example)
    ? Object.entries(example).map(([name, value]) => oneInput(name, { type: typeof value }, undefined))
    : []
}

const part = (name: string, members: ReadonlyArray<string>): ReadonlyArray<string> => {
  const named = members.filter((member) => isWord(member.slice(0, member.indexOf(" "))))
  const more = members.length > named.length || named.length > inputsMax ? ", …" : ""
  return members.length === 0 ? [] : [`${name}: ${named.slice(0, inputsMax).join(", ")}${more}`]
}

const lineFrom = (tool: string, parts: ReadonlyArray<string>): string =>
  parts.length === 0 ? tool : `${tool} ${parts.join("; ")}`

/** The tool that pays for a resource and its inputs, each with its type or values, `required` if it must be given. */
export const inputLine = ({ extensions, routeTemplate, type }: CanonicalResource): string => {
  const { info } = catalogExtension(extensions)
  const example = within(info, ["input"])
  if (type === "mcp") {
    const members = membersIn(within(example, ["inputSchema"]), within(example, ["example"]))
    return lineFrom("x402_call_resource", part("arguments", members))
  }
  const schema = readInputSchema(extensions)
  const ofPart = (name: string) => membersIn(within(schema, ["properties", name]), within(example, [name]))
  const inPath = typeof routeTemplate === "string" ? [...routeTemplate.matchAll(/:([A-Za-z_]\w*)/g)] : []
  return lineFrom("x402_fetch_resource", [
    ...part(
      "pathParameters",
      inPath.map(([, name]) => `${name} string required`)
    ),
    ...part("query", ofPart("queryParams")),
    ...part("json", ofPart("body"))
  ])
}
