// The bodies of the payment routes, as Schemas: they type `Wire.ts` and its neighbors, and /openapi.json describes the
// interface with them (specification sections 4 to 8).
import { Schema } from "effect"
import { anything, text, time, units } from "../../http/wireSchema.ts"
import { terms } from "../Payment.ts"

const address = text("Address.")
const livesUntil = Schema.Int.annotate({
  description:
    "For a failed payment: its authorization may be used until this ledger; the payer signs again only after it."
})

/** The body of /verify and /settle. `Wire.ts` accepts more: unknown fields at any level. */
export const paymentRequest = (schemes: ReadonlyArray<string>) => {
  const option = Schema.Struct({
    scheme: Schema.Literals(schemes).annotate({ description: "A supported scheme." }),
    ...terms,
    maxTimeoutSeconds: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({
      description: "0 only if nothing in the payload expires by it: a voucher, claim, settle or refund of a batch."
    })
  }).annotate({ identifier: "PaymentTerms" })
  return Schema.Struct({
    x402Version: Schema.Literal(2),
    paymentPayload: Schema.Struct({
      x402Version: Schema.Literal(2),
      accepted: option,
      payload: anything("Defined by the scheme: for exact and upto `transaction`, base64 XDR of the signed envelope."),
      resource: Schema.optionalKey(anything("The resource that is paid for.")),
      extensions: Schema.optionalKey(anything("Keyed by extension."))
    }),
    paymentRequirements: option
  }).annotate({ identifier: "PaymentRequest" })
}

const retry = {
  retryAfterMs: Schema.optionalKey(
    Schema.Int.annotate({
      description: "With 503 or a used-up budget: when the same payment may succeed, in milliseconds from now."
    })
  ),
  resetAt: Schema.optionalKey(time("With a used-up budget: when the next day's budget begins."))
}

export const VerifyBody = Schema.Struct({
  isValid: Schema.Boolean,
  payer: Schema.optionalKey(text("Address of the payer, whenever it is known.")),
  invalidReason: Schema.optionalKey(text("Reason code; present when isValid is false.")),
  invalidMessage: Schema.optionalKey(text("The reason as a sentence.")),
  ...retry,
  authorizationLivesUntilLedger: Schema.optionalKey(livesUntil),
  transaction: Schema.optionalKey(text("Hash of the transaction that settled the payment, if it was settled before.")),
  extra: Schema.optionalKey(anything("Of the scheme."))
}).annotate({ identifier: "VerifyAnswer" })

export const SettleBody = Schema.Struct({
  success: Schema.Boolean,
  payer: Schema.optionalKey(text("Address of the payer, whenever it is known.")),
  transaction: text("Hash of the transaction, or empty."),
  network: text("As the request spelled it."),
  amount: Schema.optionalKey(
    text("Amount transferred, atomic units; present when success is true, and empty if the call transfers nothing.")
  ),
  asset: Schema.optionalKey(text("The asset of the amount, for a deposit of a batch.")),
  extra: Schema.optionalKey(anything("Of the scheme.")),
  errorReason: Schema.optionalKey(text("Reason code; present when success is false.")),
  errorMessage: Schema.optionalKey(text("The reason as a sentence.")),
  ...retry,
  authorizationLivesUntilLedger: Schema.optionalKey(livesUntil),
  extensions: Schema.optionalKey(anything("With success: attestations by plugins, keyed by extension."))
}).annotate({ identifier: "SettleAnswer" })

export const SupportedBody = Schema.Struct({
  kinds: Schema.Array(
    Schema.Struct({
      x402Version: Schema.Literal(2),
      scheme: text("Payment scheme."),
      network: text("One of the enabled spellings."),
      signer: text("Address of the sponsor."),
      extra: anything("Of the scheme.")
    })
  ),
  extensions: Schema.Array(Schema.String),
  signers: Schema.Record(Schema.String, Schema.Array(Schema.String)).annotate({
    description: "Signing addresses, by network."
  })
}).annotate({ identifier: "Supported" })

export const SettlementBody = Schema.Struct({
  id: text("Identifier of the record."),
  status: Schema.Literals(["pending", "unknown", "success", "failed"]),
  network: text("In the first configured spelling."),
  scheme: text("Payment scheme."),
  asset: text("Contract address of the token."),
  amount: units("Atomic units, as a decimal string."),
  payer: address,
  payTo: address,
  transaction: text("Hash of the inner transaction."),
  paymentIdentifier: Schema.optionalKey(text("The payment identifier, when one was sent.")),
  recordedAt: time("When it was recorded."),
  resolvedAt: Schema.optionalKey(time("When it ended.")),
  ledger: Schema.optionalKey(Schema.Int.annotate({ description: "The ledger that included the transaction." })),
  confirmations: Schema.optionalKey(
    Schema.Literals([1, 2]).annotate({
      description: "Number of RPC endpoints that showed the outcome; 1 if only one was configured or answered."
    })
  ),
  feeStroops: Schema.optionalKey(units("Fee charged to the sponsor.")),
  errorReason: Schema.optionalKey(text("Why it failed.")),
  errorMessage: Schema.optionalKey(text("The reason as a sentence, with the authorization's state on the ledger.")),
  authorizationLivesUntilLedger: Schema.optionalKey(livesUntil),
  spentBy: Schema.optionalKey(
    text("Hash of the other transaction that used the authorization: the payer may have paid with it.")
  )
}).annotate({ identifier: "Settlement" })

export const SettlementsBody = Schema.Struct({ items: Schema.Array(SettlementBody) })
