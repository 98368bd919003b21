// The demonstration's responses, as Schemas, and its routes for /openapi.json.
import { Schema } from "effect"
import { answers, at, type Documented, type RouteGroup } from "../../kernel/http/Route.ts"
import { anything, text, units } from "../../kernel/http/wireSchema.ts"

const Terms = Schema.Struct({
  scheme: Schema.String,
  network: Schema.String,
  asset: text("The token's contract."),
  amount: units("Atomic units."),
  payTo: text("The seller."),
  maxTimeoutSeconds: Schema.Int,
  extra: Schema.Struct({ areFeesSponsored: Schema.Boolean })
}).annotate({ identifier: "DemoTerms" })

const Resource = Schema.Struct({
  url: Schema.String,
  description: Schema.String,
  mimeType: Schema.String
}).annotate({ identifier: "DemoResource" })

const extensions = anything("Keyed by extension.")

export const DemoRequired = Schema.Struct({
  x402Version: Schema.Literal(2),
  error: Schema.String,
  resource: Resource,
  accepts: Schema.Array(Terms),
  extensions
}).annotate({ identifier: "DemoRequired" })

export const DemoPayment = Schema.Struct({
  x402Version: Schema.Literal(2),
  buyer: text("A new account with a small balance."),
  paymentPayload: Schema.Struct({
    x402Version: Schema.Literal(2),
    payload: Schema.Struct({ transaction: text("Base64 XDR of the signed envelope.") }),
    resource: Resource,
    accepted: Terms,
    extensions
  }),
  paymentRequirements: Terms
}).annotate({ identifier: "DemoPayment" })

export const demoRoutes: RouteGroup = {
  tag: "demo",
  about: "A seller and buyers to try a payment with, on the embedded ledger."
}

export const weatherRoute: Documented = {
  ...at("GET", "/demo/weather", "demoWeather"),
  summary: "Requests payment like any seller.",
  callers: "public",
  cost: { cpuMillis: 5, bytesOut: 4_096 },
  answers: {
    402: {
      description: "The price.",
      body: DemoRequired,
      headers: Schema.Struct({ "PAYMENT-REQUIRED": text("The same, Base64.") })
    }
  }
}

export const paymentRoute: Documented = {
  ...at("POST", "/demo/payments", "demoPayment"),
  summary: "Creates a buyer and a payment signed by it, in the form of /verify and /settle.",
  callers: "public",
  cost: { cpuMillis: 60, bytesOut: 8_192, statements: 2, rpcCalls: 8 },
  answers: answers("The payment, and its `buyer`.", DemoPayment, {
    503: "Too many buyers are being created, or the ledger refuses."
  })
}
