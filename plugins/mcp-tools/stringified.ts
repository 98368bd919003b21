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

/** The first member of a value that is a string where its schema takes an object or an array and no string. */
export const findStringified = (value: unknown, schema: unknown, member: string): Stringified | undefined => {
  if (!isFields(schema)) return undefined
  const types = typesOf(schema)
  const isMember = isFields(schema["properties"]) || types.includes("object") || types.includes("array")
  if (typeof value === "string") {
    const holds = isMember && !types.includes("string") ? heldIn(value) : undefined
    return holds === undefined ? undefined : { member, holds }
  }
  if (Array.isArray(value)) {
    for (const [at, item] of value.entries()) {
      const found = findStringified(item, schema["items"], `${member}.${at}`)
      if (found !== undefined) return found
    }
    return undefined
  }
  if (!isFields(value)) return undefined
  const { additionalProperties, properties } = schema
  for (const [name, item] of Object.entries(value)) {
    const own = isFields(properties) && Object.hasOwn(properties, name) ? properties[name] : additionalProperties
    const found = findStringified(item, own, `${member}.${name}`)
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
