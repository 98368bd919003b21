// Output schemas of the paying tools, as agents see them (S214–S216). A seller's result is passed through unchanged.
import { Schema } from "effect"

/**
 * Kept short: a schema of each member would be most of what an agent reads of the tool. Beside those named it has
 * paymentIdentifier, ref, versionHash, network, scheme, asset, payTo, authorizedAmount; `source`: the transaction was
 * named by the seller or found on the ledger; `sellerReceiptFaults`: mismatches in the seller's own receipt; and
 * `replaces`: earlier payments of the call, proven dead. The last two are lists; the transaction may be null.
 */
const Receipt = Schema.NullOr(
  Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Null, Schema.Array(Schema.String)]))
).annotate({ description: "settledAmount, transaction, status, …; null if free." })

/** And `isError`, where the tool set it; `truncated`: the text that came of a result that passes a bound. */
export const CallResult = Schema.Struct({
  content: Schema.Json.annotate({ description: "As the tool returned it." }),
  structuredContent: Schema.optionalKey(Schema.Json.annotate({ description: "Likewise." })),
  receipt: Receipt
})

/** And contentType, contentEncoding. */
export const FetchResult = Schema.Struct({
  status: Schema.Int,
  json: Schema.optionalKey(Schema.Json.annotate({ description: "A JSON body." })),
  text: Schema.optionalKey(Schema.String),
  base64: Schema.optionalKey(Schema.String),
  truncated: Schema.optionalKey(Schema.Boolean),
  receipt: Receipt
})

/** Each: transaction, network, asset, payTo, amount, and `receipt`, the compact JWS. */
export const ReceiptsResult = Schema.Struct({
  receipts: Schema.Array(Schema.Record(Schema.String, Schema.String))
})

/** And scheme, network, asset, payTo, versionHash; `rule`: its name, or `otherwise` where no rule fits. */
export const Explained = Schema.Struct({
  amount: Schema.String,
  decision: Schema.Literals(["allow", "approve", "deny"])
})
