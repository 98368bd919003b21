// Building blocks for Schemas of bodies on the wire: one Schema types the code that encodes an answer, and produces the
// OpenAPI document. Patterns have the flag `u`, without which a JSON Schema would not show them.
import { Schema } from "effect"

export const text = (description: string) => Schema.String.annotate({ description })

/** Atomic units, or stroops, as decimal text. */
export const units = (description: string) =>
  Schema.String.annotate({ description }).check(Schema.isPattern(/^(0|[1-9][0-9]{0,38})$/u))

/** ISO 8601, UTC. */
export const time = (description: string) => Schema.String.annotate({ description, format: "date-time" })

export const whole = (description: string) =>
  Schema.Int.annotate({ description }).check(Schema.isGreaterThanOrEqualTo(0))

/** An object with any content. */
export const anything = (description: string) => Schema.Record(Schema.String, Schema.Unknown).annotate({ description })

/** The end of a page by cursor: its limit, and the cursor of the next page. */
export const cursorFields = {
  limit: Schema.Int,
  cursor: Schema.NullOr(Schema.String).annotate({ description: "Cursor of the next page; null on the last one." })
}

/** The same of a list with a count. */
export const countedFields = {
  ...cursorFields,
  total: Schema.optionalKey(whole("Matches, only on the first page, counted up to a limit.")),
  more: Schema.optionalKey(Schema.Boolean.annotate({ description: "True if there are more matches than `total`." }))
}

/** An error outside the two payment operations. */
export const ErrorBody = Schema.Struct({
  error: text("Error code."),
  message: Schema.optionalKey(text("The error in a sentence.")),
  details: Schema.optionalKey(Schema.Array(Schema.String))
}).annotate({ identifier: "Fault" })
