// Output schemas of the paying tools, as agents see them (S214–S216). A seller's result is passed through unchanged.
import { Schema } from "effect"

/**
 * Kept short, because a schema of every member would be most of the tool's description for an agent. Besides the
 * members below, a receipt has paymentIdentifier, ref, versionHash, network, scheme, asset, payTo, authorizedAmount;
 * `source`: the seller named the transaction, or we found it on the ledger; `sellerReceiptFaults`: mismatches in the
 * seller's own receipt; and `replaces`: earlier payments of the call, proven dead. The last two are lists; the
 * transaction may be null.
 */
const Receipt = Schema.NullOr(
  Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Null, Schema.Array(Schema.String)]))
).annotate({ description: "settledAmount, transaction, status, …; null if free." })

/** Also `isError`, if the tool set it; `truncated`: the beginning of a result that exceeds a bound. */
export const CallResult = Schema.Struct({
  content: Schema.Json.annotate({ description: "As the tool returned it." }),
  structuredContent: Schema.optionalKey(Schema.Json.annotate({ description: "Likewise." })),
  receipt: Receipt
})

/** Also contentType, contentEncoding. */
export const FetchResult = Schema.Struct({
  status: Schema.Int,
  json: Schema.optionalKey(Schema.Json.annotate({ description: "A JSON body." })),
  text: Schema.optionalKey(Schema.String),
  base64: Schema.optionalKey(Schema.String),
  truncated: Schema.optionalKey(Schema.Boolean),
  receipt: Receipt
})

/** Each has: transaction, network, asset, payTo, amount, and `receipt`, the compact JWS. */
export const ReceiptsResult = Schema.Struct({
  receipts: Schema.Array(Schema.Record(Schema.String, Schema.String))
})

/** Also scheme, network, asset, payTo, versionHash; `rule`: its name, or `otherwise` if no rule matches. */
export const Explained = Schema.Struct({
  amount: Schema.String,
  decision: Schema.Literals(["allow", "approve", "deny"])
})
