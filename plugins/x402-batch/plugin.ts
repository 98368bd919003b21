// The `batch-settlement` scheme as a plugin: one deposit, many vouchers, few transactions. Offered only on a network
// with a configured contract, which has not been audited.
import { supervisorContract } from "../../kernel/actor/Supervisor.ts"
import { databaseContract } from "../../kernel/database/Database.ts"
import { configContract, networkContract, paymentContract } from "../../kernel/drivers.ts"
import { ledgerContract } from "../../kernel/ledger/LedgerClock.ts"
import { rpcContract } from "../../kernel/ledger/LedgerRpc.ts"
import { define, loaded } from "../../kernel/plugin/Plugin.ts"
import { signerContract } from "../../kernel/signer/Signer.ts"
import { auditChannels, readRecordedChannels } from "./audit/auditChannels.ts"
import { batchKeys } from "./Config.ts"

export const plugin = define({
  id: "x402-batch",
  summary: "Many payments from one deposit, claimed together. Proposed; its contract is not audited.",
  boot: "required",
  needs: [
    supervisorContract,
    configContract,
    databaseContract,
    networkContract,
    rpcContract,
    ledgerContract,
    signerContract,
    paymentContract
  ],
  migrations: "none",
  settings: [batchKeys],
  layer: loaded(() => import("./BatchScheme.ts"))
})

/** The audit reads channels from the database and from one endpoint. */
export const administration = { auditChannels, readRecordedChannels }

/** The reason codes of the scheme, for commands. */
export { refusals as reasons } from "./refusals.ts"
