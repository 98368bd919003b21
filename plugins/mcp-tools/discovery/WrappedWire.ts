// What the tools that read answer with, as a Schema, by which agents are told of it. The resource is the facilitator's,
// member for member, so of it only that it is an object is said.
import { Schema } from "effect"

export const Wrapped = Schema.Struct({
  resource: Schema.Record(Schema.String, Schema.Unknown).annotate({ description: "As discovery serves it." }),
  wrapper: Schema.Struct({
    ref: Schema.String.annotate({ description: "Names the resource to the other tools." }),
    versionHash: Schema.String.annotate({ description: "Of its terms; compare it before paying." }),
    provenance: Schema.Literal("seller_declared"),
    status: Schema.Literals(["active", "stale"]),
    warnings: Schema.Array(Schema.String)
  })
})

export const FoundPage = Schema.Struct({
  x402Version: Schema.Literal(2),
  resources: Schema.Array(Wrapped),
  partialResults: Schema.Boolean,
  nearestOnly: Schema.optionalKey(
    Schema.Literal(true).annotate({
      description: "Nothing in the catalog is known to answer the query; these are the nearest, by a guess."
    })
  ),
  pagination: Schema.Struct({ limit: Schema.Int, cursor: Schema.NullOr(Schema.String) })
})

export const FoundOne = Schema.Struct({ x402Version: Schema.Literal(2), ...Wrapped.fields })
