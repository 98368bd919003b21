// Output schemas of the reading tools, as agents see them. The resource is the facilitator's, member for member, so its
// schema is just an object.
import { Schema } from "effect"

const Wrapped = Schema.Struct({
  resource: Schema.Record(Schema.String, Schema.Unknown).annotate({ description: "As listed." }),
  wrapper: Schema.Struct({
    ref: Schema.String,
    versionHash: Schema.String,
    provenance: Schema.Literal("seller_declared"),
    status: Schema.Literals(["active", "stale"]),
    warnings: Schema.Array(Schema.String)
  }).annotate({ description: "ref, versionHash, status, warnings, …" })
})

export const FoundPage = Schema.Struct({
  x402Version: Schema.Literal(2),
  resources: Schema.optionalKey(
    Schema.Array(Schema.Record(Schema.String, Schema.Unknown)).annotate({
      description: "{resource, wrapper} each."
    })
  ),
  lines: Schema.optionalKey(Schema.Array(Schema.String).annotate({ description: "If short." })),
  partialResults: Schema.Boolean.annotate({ description: "More exist." }),
  nearestOnly: Schema.optionalKey(Schema.Literal(true).annotate({ description: "A guess." })),
  corrected: Schema.optionalKey(Schema.String.annotate({ description: "Typos." })),
  pagination: Schema.Struct({ limit: Schema.Int, cursor: Schema.NullOr(Schema.String) }).annotate({
    description: "limit, cursor."
  })
})

export const FoundOne = Schema.Struct({ x402Version: Schema.Literal(2), ...Wrapped.fields })
