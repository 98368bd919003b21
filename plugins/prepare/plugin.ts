// `POST /prepare`: returns the data that a payer has to sign, for clients that bring no SDK and no ledger RPC.
import { settingsContract } from "../../kernel/config/Settings.ts"
import { configContract, httpContract, networkContract, paymentContract } from "../../kernel/drivers.ts"
import { ledgerContract } from "../../kernel/ledger/LedgerClock.ts"
import { rpcContract } from "../../kernel/ledger/LedgerRpc.ts"
import { define, loaded } from "../../kernel/plugin/Plugin.ts"
import { signerContract } from "../../kernel/signer/Signer.ts"
import { declared } from "./Config.ts"

export const plugin = define({
  id: "prepare",
  summary: "The bytes that a payer signs for a seller's terms.",
  boot: "optional",
  needs: [
    settingsContract,
    configContract,
    networkContract,
    httpContract,
    rpcContract,
    ledgerContract,
    signerContract,
    paymentContract
  ],
  migrations: "none",
  settings: declared,
  layer: loaded(() => import("./PrepareRoutes.ts"))
})
