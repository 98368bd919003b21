// The `upto` scheme as a plugin: a signed maximum, and payment by usage. Proposed, not adopted; offered only on a
// network with a configured settlement contract, which has not been audited.
import { configContract, networkContract, paymentContract } from "../../kernel/drivers.ts"
import { ledgerContract } from "../../kernel/ledger/LedgerClock.ts"
import { rpcContract } from "../../kernel/ledger/LedgerRpc.ts"
import { define, loaded } from "../../kernel/plugin/Plugin.ts"
import { signerContract } from "../../kernel/signer/Signer.ts"
import { uptoKeys } from "./Config.ts"

export const plugin = define({
  id: "x402-upto",
  summary: "Payments by usage, up to a maximum signed by the buyer. Proposed; its contract is not audited.",
  boot: "required",
  needs: [configContract, networkContract, rpcContract, ledgerContract, signerContract, paymentContract],
  migrations: "none",
  settings: [uptoKeys],
  layer: loaded(() => import("./UptoScheme.ts"))
})

export { refusals as reasons } from "./refusals.ts"
