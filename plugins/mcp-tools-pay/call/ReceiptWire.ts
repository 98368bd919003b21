// What the tools that pay answer with, as Schemas, by which agents are told of it (S214–S216). What a seller returned
// is passed on as it came.
import { Schema } from "effect"

const Receipt = Schema.NullOr(
  Schema.Struct({
    paymentIdentifier: Schema.String,
    ref: Schema.String,
    versionHash: Schema.String,
    network: Schema.String,
    scheme: Schema.String,
    asset: Schema.String,
    payTo: Schema.String,
    authorizedAmount: Schema.String.annotate({ description: "Atomic units, as all amounts." }),
    settledAmount: Schema.String,
    transaction: Schema.NullOr(Schema.String),
    status: Schema.Literals(["settled", "released"]).annotate({ description: "released: never paid." }),
    source: Schema.Literals(["seller", "ledger"]).annotate({ description: "Who named the transaction." }),
    sellerReceiptFaults: Schema.optionalKey(
      Schema.Array(Schema.String).annotate({ description: "What of the seller's own receipt does not fit." })
    ),
    replaces: Schema.optionalKey(
      Schema.Array(Schema.String).annotate({ description: "Earlier payments of this call, dead unspent." })
    )
  })
).annotate({ description: "Of the payment; null when nothing was asked for." })

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
