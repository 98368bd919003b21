// What the tools that pay answer with, as Schemas, by which agents are told of it (S214–S216). What a seller returned
// is passed on as it came.
import { Schema } from "effect"

/**
 * Named in one sentence: a schema of each member would be most of what an agent reads of the tool. `source`: who named
 * the transaction, the seller or the ledger. `sellerReceiptFaults`: what of the seller's own receipt does not fit.
 * `replaces`: earlier payments of the call, proven dead. The last two are lists; the transaction may be null.
 */
const Receipt = Schema.NullOr(
  Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Null, Schema.Array(Schema.String)]))
).annotate({
  description:
    "paymentIdentifier, ref, versionHash, network, scheme, asset, payTo, authorizedAmount, settledAmount, " +
    "transaction, status, source, sellerReceiptFaults, replaces; null if free."
})

export const CallResult = Schema.Struct({
  content: Schema.Json.annotate({ description: "As the seller's tool returned it." }),
  structuredContent: Schema.optionalKey(Schema.Json),
  isError: Schema.optionalKey(Schema.Boolean.annotate({ description: "The tool's own word." })),
  receipt: Receipt
})

export const FetchResult = Schema.Struct({
  status: Schema.Int,
  contentType: Schema.String,
  json: Schema.optionalKey(Schema.Json.annotate({ description: "A body that is JSON." })),
  text: Schema.optionalKey(Schema.String.annotate({ description: "A body that is text." })),
  base64: Schema.optionalKey(Schema.String.annotate({ description: "Any other body." })),
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
  rule: Schema.String.annotate({ description: "Its name; `otherwise` where no rule fits." })
})
