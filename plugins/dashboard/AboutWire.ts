// Public facts of a facilitator, as a Schema that types the response of /dashboard/v1/about and describes it in
// /openapi.json.
import { Schema } from "effect"
import { text } from "../../kernel/http/wireSchema.ts"

export const About = Schema.Struct({
  version: text("Version of the interface."),
  network: text("The network it serves, in the first dialect."),
  networks: Schema.Array(text("A spelling of the network.")),
  schemes: Schema.Array(text("A payment scheme.")),
  assets: Schema.Array(
    Schema.Struct({
      asset: text("The token's contract."),
      symbol: Schema.String,
      decimals: Schema.Int,
      max_payment: text("The largest payment, in atomic units.")
    })
  ),
  keys_required: Schema.Boolean.annotate({ description: "Whether /verify, /settle and analytics require a key." }),
  local_ledger: Schema.Boolean.annotate({ description: "Whether an embedded test ledger runs beside it." }),
  explorer: Schema.NullOr(
    text("A public explorer of its network, to which `/tx/`, `/account/` or `/contract/` is added; null without one.")
  ),
  plugins: Schema.Array(text("An enabled plugin."))
}).annotate({ identifier: "About" })
