// A network's settings of `batch-settlement`: the address of the contract that holds its channels. Without it, the
// network does not offer the scheme.
import { networkKeys } from "../../kernel/config/NetworkKeys.ts"
import { optionalText, stroops } from "../../kernel/config/Setting.ts"

/**
 * The first deposit of a token costs some 210,000 stroops, a claim of 40 channels 248,000, and a claim of 199 channels
 * 1,174,000 (README.md). All of them exceed the usual ceilings.
 */
const feeCeilings = { resourceStroopsMax: 2_000_000n, inclusionStroopsMax: 10_000n, totalStroopsMax: 2_010_000n }

export const batchKeys = networkKeys(
  "x402-batch",
  {
    batch_contract: optionalText({
      doc: "Address of the batch-settlement contract; absent: not offered. The one of this project is not audited."
    }),
    batch_unit_stroops: stroops({
      default: 1,
      doc: "Minimum value of an atomic unit of any of the network's assets, stroops; above zero."
    }),
    batch_deposits_stroops_per_key_per_day: stroops({
      default: 200_000_000,
      doc: "Maximum the sponsor pays for a caller's deposits in a day, within its budget; about 1,800 new channels."
    })
  },
  ({ batch_contract }) =>
    batch_contract === undefined || /^C[A-Z2-7]{55}$/.test(batch_contract)
      ? undefined
      : "batch_contract must be the address of the batch-settlement contract, or absent",
  { "batch-settlement": feeCeilings }
)
