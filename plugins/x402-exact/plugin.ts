// The `exact` scheme as a plugin: a fixed amount, moved by one call that the buyer signed.
import { configContract, networkContract, paymentContract } from "../../kernel/drivers.ts"
import { ledgerContract } from "../../kernel/ledger/LedgerClock.ts"
import { rpcContract } from "../../kernel/ledger/LedgerRpc.ts"
import { define } from "../../kernel/plugin/Plugin.ts"
import { signerContract } from "../../kernel/signer/Signer.ts"
import { layer } from "./ExactScheme.ts"

export const plugin = define({
  id: "x402-exact",
  summary: "Payments of a fixed amount, signed by the buyer and sponsored by the facilitator.",
  boot: "required",
  needs: [configContract, networkContract, rpcContract, ledgerContract, signerContract, paymentContract],
  migrations: "none",
  layer
})

export { refusals as reasons } from "./refusals.ts"
