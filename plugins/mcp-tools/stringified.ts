// Detects objects that a client has turned into strings. Some clients ignore an argument's schema and stringify the
// argument; a seller would then be paid for a JSON string instead of an object. Such a call is refused with an
// explanation before we ask or pay a seller. A string is accepted wherever the schema allows a string. Pure.
import { toolError, type ToolError } from "./ToolError.ts"

type Fields = Readonly<Record<string, unknown>>

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Maximum levels of encoding; some clients encode twice. */
const encodingsMax = 3

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The kind of value that the string contains as JSON text. */
const heldIn = (text: string): "object" | "array" | undefined => {
  let value: unknown = text
  for (let round = 0; round < encodingsMax && typeof value === "string" && /^\s*[[{"]/.test(value); round++)
    value = parsed(value)
  return isFields(value) ? "object" : Array.isArray(value) ? "array" : undefined
}

/** The types in a JSON Schema; empty if it does not set any. */
const typesOf = ({ type }: Fields): ReadonlyArray<unknown> =>
  Array.isArray(type) ? type : type === undefined ? [] : [type]

interface Stringified {
  /** Dotted path of the member. */
  readonly member: string
  readonly holds: "object" | "array"
}

/** Maximum parts of one schema that we read, including references and alternatives. */
const variantsMax = 64

/**
 * Maximum parts of schemas for all values of a call: a seller's schema has many alternatives, and an agent's arguments
 * many values. Further values are not searched.
 */
const partsMax = 100_000
/** A reference counts as one more part for each of these characters. */
const referencePart = 64

interface Work {
  left: number
}

/** The target of a reference within the same document (`#/$defs/…`). */
const referred = (root: unknown, reference: unknown): unknown =>
  typeof reference === "string" && reference.startsWith("#/")
    ? reference
        .slice(2)
        .split("/")
        .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
        .reduce<unknown>(
          (value, part) => (isFields(value) && Object.hasOwn(value, part) ? value[part] : undefined),
          root
        )
    : undefined

/**
 * A schema with its alternatives, only those with constraints; undefined if one of them accepts anything. An optional
 * member is often `anyOf` its schema and null, and a model is a reference to its definition.
 */
const variantsOf = (schema: unknown, root: unknown, work: Work): ReadonlyArray<Fields> | undefined => {
  const variants: Array<Fields> = []
  const waiting: Array<unknown> = [schema]
  for (let at = 0; at < waiting.length; at++) {
    const one = waiting[at]
    if (!isFields(one) || at >= variantsMax) return undefined
    const { $ref, allOf, anyOf, oneOf } = one
    work.left -= 1 + String($ref ?? "").length / referencePart
    if (work.left < 0) return undefined
    const further = [allOf, anyOf, oneOf].flatMap((list) => (Array.isArray(list) ? (list as Array<unknown>) : []))
    if ($ref !== undefined) further.push(referred(root, $ref))
    waiting.push(...further)
    const isSaying = ["type", "properties", "enum", "const"].some((name) => one[name] !== undefined)
    if (isSaying) variants.push(one)
    else if (further.length === 0) return undefined
  }
  return variants
}

/** Merges the schemas of one part into one schema. */
const joined = (schemas: ReadonlyArray<unknown>): unknown => (schemas.length === 1 ? schemas[0] : { anyOf: schemas })

/** Finds the first string whose schema accepts an object or an array but no string. References point into `root`. */
export const findStringified = (
  value: unknown,
  schema: unknown,
  member: string,
  root: unknown = schema,
  work: Work = { left: partsMax }
): Stringified | undefined => {
  const variants = variantsOf(schema, root, work)
  if (variants === undefined) return undefined
  const types = variants.flatMap(typesOf)
  const isMember =
    types.includes("object") || types.includes("array") || variants.some(({ properties }) => isFields(properties))
  if (typeof value === "string") {
    const holds = isMember && !types.includes("string") ? heldIn(value) : undefined
    return holds === undefined ? undefined : { member, holds }
  }
  if (Array.isArray(value)) {
    const items = variants.flatMap(({ items }) => (items === undefined ? [] : [items]))
    for (const [at, item] of value.entries()) {
      const found = findStringified(item, joined(items), `${member}.${at}`, root, work)
      if (found !== undefined) return found
    }
    return undefined
  }
  if (!isFields(value)) return undefined
  for (const [name, item] of Object.entries(value)) {
    const own = variants.flatMap(({ additionalProperties, properties }) => {
      const one = isFields(properties) && Object.hasOwn(properties, name) ? properties[name] : additionalProperties
      return one === undefined ? [] : [one]
    })
    const found = findStringified(item, joined(own), `${member}.${name}`, root, work)
    if (found !== undefined) return found
  }
  return undefined
}

/** The first stringified value among a tool's own arguments, even if the argument may also be a string. */
export const findStringifiedArgument = (given: unknown, properties: Fields): Stringified | undefined => {
  if (!isFields(given)) return undefined
  for (const [member, value] of Object.entries(given)) {
    const schema = Object.hasOwn(properties, member) ? properties[member] : undefined
    const types = isFields(schema) ? typesOf(schema) : []
    const holds =
      typeof value === "string" && (types.includes("object") || types.includes("array")) ? heldIn(value) : undefined
    if (holds !== undefined) return { member, holds }
  }
  return undefined
}

export const stringifiedError = ({ holds, member }: Stringified): ToolError =>
  toolError(
    "INVALID_ARGUMENT",
    `\`${member.slice(0, 100)}\` is a string that holds a JSON ${holds}: pass the ${holds} itself. Nothing was paid.`
  )
