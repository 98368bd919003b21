// A tool as the server offers it: a name, a description for the model, a schema that agents are shown and that their
// arguments are validated against, and a run that ends in a value or in an error. An argument that the schema does not
// name is refused, so no tool can be handed a secret in passing (S252).
import { Data, Effect, Schema } from "effect"
import { findStringifiedArgument, stringifiedError } from "./stringified.ts"
import { toolError, errorCodeSchema, type ToolError } from "./ToolError.ts"

/** The caller: its key or address, and its session. */
export interface Caller {
  readonly principal: string
  readonly session: string
  /**
   * What the person behind the client answers to a question of yes or no, undefined when nothing; `key` names the
   * question. Fails while the person has not been asked: the call is then made again from its beginning, so nothing may
   * be done before. Absent when the client cannot ask.
   */
  readonly ask?: (key: string, question: string) => Effect.Effect<boolean | undefined, InputNeeded>
  /** Whether the call has brought an answer to the question of this key. */
  readonly isAnswered?: (key: string) => boolean
  /** What of the arguments did not survive being read, in a few words. */
  readonly inexact?: string | undefined
  /** The request's own name of what it buys: the same call under another name is another purchase. */
  readonly idempotencyKey?: string | undefined
  /** Runs `effect` once the session has the answer: it has left, and the session makes another request after it. */
  readonly onAcknowledged?: (key: string, effect: Effect.Effect<void>) => void
}

/** The call continues when the person behind the client has answered. */
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
  /** Hints that are the protocol's defaults (an open world, not idempotent) are left out. */
  readonly annotations: Readonly<Record<string, boolean>>
  /** Whether a call can spend the payer's money. */
  readonly pays: boolean
  /** The result in few words, for a client that reads `structuredContent`; absent: the same JSON. */
  readonly textOf?: ((result: Readonly<Record<string, unknown>>) => string) | undefined
  readonly run: (
    input: unknown,
    caller: Caller
  ) => Effect.Effect<Readonly<Record<string, unknown>>, ToolError | InputNeeded>
}

export interface ToolSpec<A, I> extends Pick<
  Tool,
  "name" | "title" | "description" | "annotations" | "pays" | "textOf"
> {
  readonly input: Schema.Codec<A, I>
  /** Schema of a successful result; it is listed with the error's, and the tests validate results against it. */
  readonly output: Schema.Codec<any, any>
  readonly run: (input: A, caller: Caller) => Effect.Effect<Readonly<Record<string, unknown>>, ToolError | InputNeeded>
}

const anyType = ["object", "array", "string", "number", "boolean", "null"]
const typeWords = ["type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"]

/** A member that may be anything says so: a client that finds no type has been seen to send the text of an object. */
const typed = (schema: unknown): unknown => {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return schema
  // Lengths, bounds and patterns are held to, and not listed: they cost every agent's context, and no agent counts.
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
    // A map whose values may be anything needs no word for them.
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
 * What is listed of a result's member: its type, what it may be and what it is for. Of a list or an object within it no
 * more is said, a later version may say more, and what may be anything needs no type here.
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
 * What a call may answer with, as it is listed: the members of a result, and the code of an error. Official clients
 * validate every structured answer against it, errors included, so no member is required; an error's other members are
 * in the server's instructions, once for all tools.
 */
const listedOutput = (schema: Schema.Codec<any, any>): ListedSchema => {
  const { properties = {} } = schemaOf(schema) as { readonly properties?: Readonly<Record<string, ListedSchema>> }
  const members = Object.entries(properties).map(([name, member]) => [name, listedMember(member)])
  return { type: "object", properties: { ...Object.fromEntries(members), code: errorCodeSchema } }
}

/** Reported issues of one call's arguments, and characters of each. */
const errorsMax = 20
const errorLengthMax = 200

/** Validation issues, one entry each; the path, which the decoder prints on a line of its own, is appended. */
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
