// A tool as the server offers it: a name, a description for the model, a schema that is both what agents are told and
// what their arguments are held to, and a run that ends in a value or in a fault. An argument that the schema does not
// name is refused, so no tool can be handed a secret in passing (S252).
import { Data, Effect, Schema } from "effect"
import { findStringifiedArgument, stringifiedFault } from "./stringified.ts"
import { fault, faultSchema, type ToolFault } from "./ToolFault.ts"

/** Who calls: the key or address, and the session. */
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
}

/** The call goes on when the person behind the client has answered. */
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
  readonly annotations: Readonly<Record<string, boolean>>
  /** Whether a call can spend the payer's money. */
  readonly pays: boolean
  /** The result in few words, for a client that reads `structuredContent`; absent: the same JSON. */
  readonly textOf?: ((result: Readonly<Record<string, unknown>>) => string) | undefined
  readonly run: (
    input: unknown,
    caller: Caller
  ) => Effect.Effect<Readonly<Record<string, unknown>>, ToolFault | InputNeeded>
}

export interface ToolSpec<A, I> extends Pick<
  Tool,
  "name" | "title" | "description" | "annotations" | "pays" | "textOf"
> {
  readonly input: Schema.Codec<A, I>
  /** Of a result that is no fault; agents are told of both, and the tests hold results to it. */
  readonly output: Schema.Codec<any, any>
  readonly run: (input: A, caller: Caller) => Effect.Effect<Readonly<Record<string, unknown>>, ToolFault | InputNeeded>
}

/** An object's schema without what makes a further member a fault: a later version may say more. */
const open = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(open)
  if (typeof schema !== "object" || schema === null) return schema
  return Object.fromEntries(
    Object.entries(schema).flatMap(([key, value]) =>
      key === "additionalProperties" && value === false ? [] : [[key, open(value)]]
    )
  )
}

const anyType = ["object", "array", "string", "number", "boolean", "null"]
const typeWords = ["type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"]

/** A member that may be anything says so: a client that finds no type has been seen to send the text of an object. */
const typed = (schema: unknown): unknown => {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return schema
  // Lengths and patterns are held to, and not listed: they cost every agent's context, and no agent counts.
  const {
    additionalProperties,
    allOf: _,
    anyOf,
    items,
    maxLength: _length,
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

/**
 * What a call may answer with: the result, or a fault in its place. Official clients hold both to the schema that is
 * listed, and one that knew the result alone would hide every fault behind a complaint of its own.
 */
const orFault = ({ required, ...schema }: Record<string, unknown>): Record<string, unknown> => ({
  ...schema,
  anyOf: [{ required: required ?? [] }, faultSchema]
})

export const defineTool = <A, I>({ input, output, run, ...about }: ToolSpec<A, I>): Tool => {
  const decode = Schema.decodeUnknownEffect(input, { onExcessProperty: "error", errors: "all" })
  const inputSchema = { ...schemaOf(input), additionalProperties: false }
  const { properties = {} } = inputSchema as { readonly properties?: Readonly<Record<string, unknown>> }
  return {
    ...about,
    inputSchema,
    outputSchema: orFault(open(schemaOf(output)) as Record<string, unknown>),
    run: (given, caller) => {
      const stringified = findStringifiedArgument(given, properties)
      if (stringified !== undefined) return stringifiedFault(stringified)
      return decode(given ?? {}).pipe(
        Effect.mapError(({ message }) =>
          fault("INVALID_ARGUMENT", "the arguments do not fit the tool", {
            faults: message
              .split("\n")
              .slice(0, 20)
              .map((line) => line.slice(0, 200))
          })
        ),
        Effect.flatMap((decoded) => run(decoded, caller))
      )
    }
  }
}
