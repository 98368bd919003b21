// Validates an agent's input against the listing's schema before a seller is asked or anything is signed, because a
// seller may charge for a call that it refuses. A schema that cannot be compiled within bounds is ignored. Pure.
import { Effect } from "effect"
import { makeValidator } from "../../catalog/contract.ts"
import {
  type CanonicalResource,
  inputLine,
  readInputSchema,
  toolError,
  type ToolError
} from "../../mcp-tools/contract.ts"
import { type Fields, isFields } from "../seller/SellerWire.ts"

const validate = makeValidator()

/** Adds the listing's inputs to a refusal of the arguments, so that the next call can be right. */
export const withInputs =
  (resource: CanonicalResource) =>
  <A, R>(checked: Effect.Effect<A, ToolError, R>): Effect.Effect<A, ToolError, R> =>
    Effect.mapError(checked, (error) =>
      error.code === "INVALID_ARGUMENT"
        ? toolError(error.code, error.message, { ...Object(error.details), inputs: inputLine(resource) })
        : error
    )

/** Fails if the value does not match the schema. `where`: the agent's name for the value. */
export const checkInput = (value: unknown, schema: unknown, where: string): Effect.Effect<void, ToolError> => {
  if (!isFields(schema)) return Effect.void
  const at = validate(value, schema, JSON.stringify(schema))?.at
  if (at === undefined) return Effect.void
  const path = `${where}${at.path.replaceAll("/", ".")}`.slice(0, 200)
  const missing = at.missing === undefined ? "" : `: \`${at.missing.slice(0, 100)}\` is missing`
  return toolError(
    "INVALID_ARGUMENT",
    `the arguments do not match the input schema of the listing at \`${path}\` (${at.keyword})${missing}. ` +
      "Nothing was paid."
  )
}

const schemaOf = (schema: unknown, name: string): Fields | undefined => {
  const properties = isFields(schema) ? schema["properties"] : undefined
  const own = isFields(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined
  return isFields(own) ? own : undefined
}

const namesIn = (schema: unknown): ReadonlyArray<unknown> => {
  const required = isFields(schema) ? schema["required"] : undefined
  return Array.isArray(required) ? required : []
}

/**
 * Query parameters are text. If a schema does not accept text, the parameter is converted to the number or boolean that
 * it spells.
 */
const typed = (query: Readonly<Record<string, string>>, schema: Fields): Fields =>
  Object.fromEntries(
    Object.entries(query).map(([name, text]) => {
      const type = schemaOf(schema, name)?.["type"]
      const types = Array.isArray(type) ? type : [type]
      const isText = type === undefined || types.includes("string")
      if (!isText && types.includes("boolean") && /^(true|false)$/.test(text)) return [name, text === "true"]
      return [name, !isText && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text]
    })
  )

interface GivenInput {
  readonly query?: Readonly<Record<string, string>>
  readonly pathParameters?: Readonly<Record<string, string>>
  readonly json?: unknown
  readonly text?: string
}

/** Checks a request's query and JSON body, even if they are missing. */
export const checkRequest = Effect.fnUntraced(function* (
  { json, pathParameters = {}, query = {}, text }: GivenInput,
  extensions: unknown
): Effect.fn.Return<void, ToolError> {
  const input = readInputSchema(extensions)
  const [queryParams, body] = [schemaOf(input, "queryParams"), schemaOf(input, "body")]
  // Template parameters may replace the query.
  const hasQuery = Object.keys(query).length > 0
  const isAsked = hasQuery || (Object.keys(pathParameters).length === 0 && namesIn(queryParams).length > 0)
  if (queryParams !== undefined && isAsked) yield* checkInput(typed(query, queryParams), queryParams, "query")
  if (body === undefined || text !== undefined) return
  if (json !== undefined) return yield* checkInput(json, body, "json")
  if (namesIn(body).length > 0)
    return yield* toolError("INVALID_ARGUMENT", "the listing declares a body: pass `json`. Nothing was paid.")
})
