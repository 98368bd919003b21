// What the tools that pay answer with, as Schemas, by which agents are told of it (S214–S216). What a seller returned
// is passed on as it came.
import { Schema } from "effect"

/**
 * Named in few words: a schema of each member would be most of what an agent reads of the tool. Beside those named it
 * has paymentIdentifier, ref, versionHash, network, scheme, asset, payTo, authorizedAmount; `source`: who named the
 * transaction, the seller or the ledger; `sellerReceiptFaults`: what of the seller's own receipt does not fit; and
 * `replaces`: earlier payments of the call, proven dead. The last two are lists; the transaction may be null.
 */
const Receipt = Schema.NullOr(
  Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Null, Schema.Array(Schema.String)]))
).annotate({ description: "settledAmount, payTo, transaction, status, …; null if free." })

export const CallResult = Schema.Struct({
  content: Schema.Json.annotate({ description: "As the tool returned it." }),
  structuredContent: Schema.optionalKey(Schema.Json.annotate({ description: "Likewise." })),
  isError: Schema.optionalKey(Schema.Boolean),
  receipt: Receipt
})

export const FetchResult = Schema.Struct({
  status: Schema.Int,
  contentType: Schema.String,
  json: Schema.optionalKey(Schema.Json.annotate({ description: "A JSON body." })),
  text: Schema.optionalKey(Schema.String),
  base64: Schema.optionalKey(Schema.String),
  receipt: Receipt
})

export const Explained = Schema.Struct({
  scheme: Schema.String,
  network: Schema.String,
  asset: Schema.String,
  payTo: Schema.String,
  amount: Schema.String,
  versionHash: Schema.String,
  decision: Schema.Literals(["allow", "approve", "deny"]),
  /** Its name; `otherwise` where no rule fits. */
  rule: Schema.String
})
