// The contract of `batch-settlement` on the embedded ledger, for the local profile. It deploys at the first boot; later
// boots find it deployed.
import { define, loaded } from "../../kernel/plugin/Plugin.ts"
import { localLedgerContract } from "../ledger-local/contract.ts"

export const plugin = define({
  id: "x402-batch-local",
  summary: "Deploys the batch-settlement scheme's contract on the embedded ledger.",
  boot: "required",
  needs: [localLedgerContract],
  migrations: "none",
  layer: loaded(() => import("./deploy.ts"))
})
