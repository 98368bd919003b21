// What the tools that read answer with, as a Schema, by which agents are told of it. The resource is the facilitator's,
// member for member, so of it only that it is an object is said.
import { Schema } from "effect"

export const Wrapped = Schema.Struct({
  resource: Schema.Record(Schema.String, Schema.Unknown).annotate({ description: "As discovery serves it." }),
  wrapper: Schema.Struct({
    ref: Schema.String.annotate({ description: "For the other tools." }),
    versionHash: Schema.String.annotate({ description: "Of its terms." }),
    provenance: Schema.Literal("seller_declared"),
    status: Schema.Literals(["active", "stale"]),
    warnings: Schema.Array(Schema.String)
  })
})

export const FoundPage = Schema.Struct({
  x402Version: Schema.Literal(2),
  resources: Schema.optionalKey(
    Schema.Array(Schema.Record(Schema.String, Schema.Unknown)).annotate({
      description: "{resource, wrapper} each, as of x402_get_resource."
    })
  ),
  lines: Schema.optionalKey(Schema.Array(Schema.String).annotate({ description: "With `detail` short." })),
  partialResults: Schema.Boolean.annotate({ description: "There may be more." }),
  nearestOnly: Schema.optionalKey(
    Schema.Literal(true).annotate({ description: "A guess: nothing is known to answer the query." })
  ),
  pagination: Schema.Struct({ limit: Schema.Int, cursor: Schema.NullOr(Schema.String) })
})

export const FoundOne = Schema.Struct({ x402Version: Schema.Literal(2), ...Wrapped.fields })
