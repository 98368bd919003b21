// One way to pay, in the form that sellers declare and callers send: shared by the payment routes and the catalog.
import { Schema } from "effect"
import { anything, text, units } from "../http/wireSchema.ts"

/** All fields except the scheme. */
export const terms = {
  network: text("`ledger:testnet` or `stellar:testnet`."),
  asset: text("Contract address of the token."),
  amount: units("Atomic units, as a decimal string."),
  payTo: text("Address of the recipient."),
  maxTimeoutSeconds: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  extra: Schema.optionalKey(anything("Of the scheme."))
}

/** One way to pay, as a seller declares it. */
export const PaymentOption = Schema.Struct({ scheme: text("Payment scheme."), ...terms }).annotate({
  identifier: "PaymentOption"
})
