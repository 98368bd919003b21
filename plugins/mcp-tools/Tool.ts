// A tool as the server offers it: a name, a description for the model, a schema that is both what agents are told and
// what their arguments are held to, and a run that ends in a value or in a fault. An argument that the schema does not
// name is refused, so no tool can be handed a secret in passing (S252).
import { Effect, Schema } from "effect"
import { fault, type ToolFault } from "./ToolFault.ts"

/** Who calls: the key or address, and the session. */
export interface Caller {
  readonly principal: string
  readonly session: string
}

export interface Tool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: Readonly<Record<string, unknown>>
  readonly annotations: Readonly<Record<string, boolean>>
  /** Whether a call can spend the payer's money. */
  readonly pays: boolean
  readonly run: (input: unknown, caller: Caller) => Effect.Effect<Readonly<Record<string, unknown>>, ToolFault>
}

export interface ToolSpec<A, I> extends Pick<Tool, "name" | "title" | "description" | "annotations" | "pays"> {
  readonly input: Schema.Codec<A, I>
  readonly run: (input: A, caller: Caller) => Effect.Effect<Readonly<Record<string, unknown>>, ToolFault>
}

export const defineTool = <A, I>({ input, run, ...about }: ToolSpec<A, I>): Tool => {
  const decode = Schema.decodeUnknownEffect(input, { onExcessProperty: "error", errors: "all" })
  const { $defs: _, ...inputSchema } = Schema.toJsonSchemaDocument(input).schema as Record<string, unknown>
  return {
    ...about,
    inputSchema: { ...inputSchema, additionalProperties: false },
    run: (given, caller) =>
      decode(given ?? {}).pipe(
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
