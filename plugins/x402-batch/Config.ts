// A network's settings of `batch-settlement`: the address of the contract that holds its channels. Without it the
// scheme is not offered there.
import { networkKeys } from "../../kernel/config/NetworkKeys.ts"
import { optionalText } from "../../kernel/config/Setting.ts"

/**
 * A deposit that opens a channel costs some 240,000 stroops, each further channel of a claim 5,900, and 199 of them
 * 1,174,000 (README.md): none of it fits the usual ceilings.
 */
const feeCeilings = { resourceStroopsMax: 2_000_000n, inclusionStroopsMax: 10_000n, totalStroopsMax: 2_010_000n }

export const batchKeys = networkKeys(
  "x402-batch",
  {
    batch_contract: optionalText({
      doc: "Address of the batch-settlement contract; absent: not offered. The one of this project is not audited."
    })
  },
  ({ batch_contract }) =>
    batch_contract === undefined || /^C[A-Z2-7]{55}$/.test(batch_contract)
      ? undefined
      : "batch_contract must be the address of the batch-settlement contract, or absent",
  { "batch-settlement": feeCeilings }
)
