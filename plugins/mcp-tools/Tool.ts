// A tool as the server offers it: a name, a description for the model, a schema that agents see and that their
// arguments are validated against, and a run that ends in a value or in an error. An argument that is not in the schema
// is refused, so an agent cannot pass a secret along by accident (S252).
import { Data, Effect, Schema } from "effect"
import { findStringifiedArgument, stringifiedError } from "./stringified.ts"
import { toolError, errorCodeSchema, type ToolError } from "./ToolError.ts"

/** The caller: its key or address, and its session. */
export interface Caller {
  readonly principal: string
  readonly session: string
  /**
   * The answer of the person behind the client to a yes-no question; undefined if the person dismissed it. `key`
   * identifies the question. Fails until the person has been asked: the call is then made again from its beginning, so
   * nothing may be done before. Absent if the client cannot ask.
   */
  readonly ask?: (key: string, question: string) => Effect.Effect<boolean | undefined, InputNeeded>
  /** True if the call has brought an answer to the question with this key. */
  readonly isAnswered?: (key: string) => boolean
  /** A short description of a value in the arguments that parsing has changed. */
  readonly inexact?: string | undefined
  /** The request's own idempotency key: the same call with another key is another purchase. */
  readonly idempotencyKey?: string | undefined
  /** Runs `effect` once the session has the answer: it was sent, and the session makes another request after it. */
  readonly onAcknowledged?: (key: string, effect: Effect.Effect<void>) => void
}

/** The call continues once the person behind the client has answered. */
export class InputNeeded extends Data.TaggedError("InputNeeded")<{
  readonly key: string
  readonly question: string
}> {}

export interface Tool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: Readonly<Record<string, unknown>>
  readonly outputSchema: Readonly<Record<string, unknown>>
  /** Without the protocol's default hints (an open world, not idempotent). */
  readonly annotations: Readonly<Record<string, boolean>>
  /** True if a call can spend the payer's money. */
  readonly pays: boolean
  /** A short text of the result, for a client that reads `structuredContent`; absent: the same JSON. */
  readonly textOf?: ((result: Readonly<Record<string, unknown>>) => string) | undefined
  readonly run: (
    input: unknown,
    caller: Caller
  ) => Effect.Effect<Readonly<Record<string, unknown>>, ToolError | InputNeeded>
}

interface ToolSpec<A, I> extends Pick<Tool, "name" | "title" | "description" | "annotations" | "pays" | "textOf"> {
  readonly input: Schema.Codec<A, I>
  /** Schema of a successful result. It is listed with the error's schema, and the tests validate results against it. */
  readonly output: Schema.Codec<any, any>
  readonly run: (input: A, caller: Caller) => Effect.Effect<Readonly<Record<string, unknown>>, ToolError | InputNeeded>
}

const anyType = ["object", "array", "string", "number", "boolean", "null"]
const typeWords = ["type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"]

/** Gives a member without a type all types: some clients send the text of an object if they find no type. */
const typed = (schema: unknown): unknown => {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return schema
  // Lengths, bounds and patterns are enforced but not listed: they use up every agent's context, and models do not
  // count characters.
  const {
    additionalProperties,
    allOf: _,
    anyOf,
    items,
    maximum: _maximum,
    maxLength: _length,
    minimum: _minimum,
    pattern: _pattern,
    properties,
    ...rest
  } = schema as Readonly<Record<string, unknown>>
  return {
    ...(typeWords.some((word) => word in schema) ? {} : { type: anyType }),
    ...rest,
    ...(Array.isArray(anyOf) ? { anyOf: anyOf.map(typed) } : {}),
    ...(items === undefined ? {} : { items: typed(items) }),
    ...(typeof properties !== "object" || properties === null
      ? {}
      : { properties: Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, typed(one)])) }),
    // A map with values of any type needs no schema for them.
    ...(typeof additionalProperties !== "object" || Object.keys(additionalProperties ?? {}).length === 0
      ? additionalProperties === false && { additionalProperties }
      : { additionalProperties: typed(additionalProperties) })
  }
}

const schemaOf = (schema: Schema.Codec<any, any>): Record<string, unknown> =>
  typed(Schema.toJsonSchemaDocument(schema).schema) as Record<string, unknown>

type ListedSchema = Readonly<Record<string, unknown>>

const isAny = ({ type }: ListedSchema): boolean => Array.isArray(type) && type.length === anyType.length

/**
 * The listed part of a result's member: its type, its allowed values and its purpose. We leave out the inner schema of
 * a list or an object, since a later version may add members, and the type of a member that may be anything.
 */
const listedMember = (schema: ListedSchema): ListedSchema => {
  const { anyOf, description, enum: values, type } = schema
  const types = Array.isArray(anyOf) ? anyOf.map((one: ListedSchema) => one["type"]) : type
  return {
    ...(isAny(schema) ? {} : { type: types }),
    ...(Array.isArray(values) && values.length > 1 ? { enum: values } : {}),
    ...(description === undefined ? {} : { description })
  }
}

/**
 * The listed schema of a call's answers: the members of a result, and the code of an error. Official clients validate
 * every structured answer against it, errors included, so no member is required. The server's instructions describe an
 * error's other members once for all tools.
 */
const listedOutput = (schema: Schema.Codec<any, any>): ListedSchema => {
  const { properties = {} } = schemaOf(schema) as { readonly properties?: Readonly<Record<string, ListedSchema>> }
  const members = Object.entries(properties).map(([name, member]) => [name, listedMember(member)])
  return { type: "object", properties: { ...Object.fromEntries(members), code: errorCodeSchema } }
}

/** Maximum number of reported issues in one call's arguments, and characters of each. */
const errorsMax = 20
const errorLengthMax = 200

/** Validation issues, one entry each. The decoder prints the path on a second line; we append it. */
const errorsIn = (message: string): ReadonlyArray<string> =>
  message
    .replaceAll(/\n\s+/g, " ")
    .split("\n")
    .slice(0, errorsMax)
    .map((line) => line.slice(0, errorLengthMax))

export const defineTool = <A, I>({ input, output, run, ...about }: ToolSpec<A, I>): Tool => {
  const decode = Schema.decodeUnknownEffect(input, { onExcessProperty: "error", errors: "all" })
  const inputSchema = { ...schemaOf(input), additionalProperties: false }
  const { properties = {} } = inputSchema as { readonly properties?: Readonly<Record<string, unknown>> }
  return {
    ...about,
    inputSchema,
    outputSchema: listedOutput(output),
    run: (given, caller) => {
      if (caller.inexact !== undefined)
        return toolError(
          "INVALID_ARGUMENT",
          `the arguments hold ${caller.inexact}; pass it as a string. Nothing was paid.`
        )
      const stringified = findStringifiedArgument(given, properties)
      if (stringified !== undefined) return stringifiedError(stringified)
      return decode(given ?? {}).pipe(
        Effect.mapError(({ message }) =>
          toolError("INVALID_ARGUMENT", "the arguments do not match the tool's input schema", {
            faults: errorsIn(message)
          })
        ),
        Effect.flatMap((decoded) => run(decoded, caller))
      )
    }
  }
}
