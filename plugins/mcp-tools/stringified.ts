// Objects that a client has turned into strings. Some clients stringify an argument whose schema they do not follow; a
// seller would be paid for a JSON string where it takes an object. Such a call is refused with a sentence before
// anything is asked or paid. A string is left alone wherever the schema means a string. Pure.
import { toolError, type ToolError } from "./ToolError.ts"

type Fields = Readonly<Record<string, unknown>>

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** A string within a string within a string: clients have been seen to encode twice. */
const encodingsMax = 3

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** What a string holds when it is the text of an object or of an array. */
const heldIn = (text: string): "object" | "array" | undefined => {
  let value: unknown = text
  for (let round = 0; round < encodingsMax && typeof value === "string" && /^\s*[[{"]/.test(value); round++)
    value = parsed(value)
  return isFields(value) ? "object" : Array.isArray(value) ? "array" : undefined
}

/** The types that a JSON Schema names; none for one that names none. */
const typesOf = ({ type }: Fields): ReadonlyArray<unknown> =>
  Array.isArray(type) ? type : type === undefined ? [] : [type]

export interface Stringified {
  /** Dotted path of the member. */
  readonly member: string
  readonly holds: "object" | "array"
}

/** Parts of one schema that are read, its references and alternatives followed. */
const variantsMax = 64

/** What a reference to a part of the same document (`#/$defs/…`) leads to. */
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
 * A schema with its alternatives, each as far as it says something itself; undefined where one of them takes anything:
 * a member that may be left out is often `anyOf` its schema and null, and a model a reference to its definition.
 */
const variantsOf = (schema: unknown, root: unknown): ReadonlyArray<Fields> | undefined => {
  const variants: Array<Fields> = []
  const waiting: Array<unknown> = [schema]
  for (let at = 0; at < waiting.length; at++) {
    const one = waiting[at]
    if (!isFields(one) || at >= variantsMax) return undefined
    const { $ref, allOf, anyOf, oneOf } = one
    const further = [allOf, anyOf, oneOf].flatMap((list) => (Array.isArray(list) ? (list as Array<unknown>) : []))
    if ($ref !== undefined) further.push(referred(root, $ref))
    waiting.push(...further)
    const isSaying = ["type", "properties", "enum", "const"].some((name) => one[name] !== undefined)
    if (isSaying) variants.push(one)
    else if (further.length === 0) return undefined
  }
  return variants
}

/** What several schemas say of one part, as one schema. */
const joined = (schemas: ReadonlyArray<unknown>): unknown => (schemas.length === 1 ? schemas[0] : { anyOf: schemas })

/**
 * The first member of a value that is a string where its schema takes an object or an array and no string. References
 * are to parts of `root`.
 */
export const findStringified = (
  value: unknown,
  schema: unknown,
  member: string,
  root: unknown = schema
): Stringified | undefined => {
  const variants = variantsOf(schema, root)
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
      const found = findStringified(item, joined(items), `${member}.${at}`, root)
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
    const found = findStringified(item, joined(own), `${member}.${name}`, root)
    if (found !== undefined) return found
  }
  return undefined
}

/**
 * The first of a tool's own arguments that is such a string, also where the argument may be a string of another kind.
 */
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
