// A network's settings of `upto`: the address of its settlement contract. Without it the scheme is not offered there.
import { networkKeys } from "../../kernel/config/NetworkKeys.ts"
import { Schema } from "effect"
import { optionalText, table } from "../../kernel/config/Setting.ts"

export const uptoKeys = networkKeys(
  "x402-upto",
  {
    upto_contract: optionalText({
      doc: "Address of the upto settlement contract; absent: not offered. The one of this project is not audited."
    }),
    upto_profiles: table(Schema.String, {
      default: {},
      doc:
        "Settlement contracts of further profiles of upto, by the profile's name; their code must be registered " +
        "for it."
    })
  },
  ({ upto_contract }) =>
    /^C[A-Z2-7]{55}$/.test(upto_contract ?? "")
      ? undefined
      : "upto_contract must name the upto settlement contract, for exact alone too; it has not been audited"
)
