// A seller and buyers to try the facilitator with; they only work on the embedded ledger.
import { httpContract, networkContract } from "../../kernel/drivers.ts"
import { ledgerContract } from "../../kernel/ledger/LedgerClock.ts"
import { define, loaded } from "../../kernel/plugin/Plugin.ts"
import { localLedgerContract } from "../ledger-local/contract.ts"

export const plugin = define({
  id: "demo",
  summary: "A seller and buyers to try a payment with, on the embedded ledger.",
  boot: "optional",
  needs: [localLedgerContract, ledgerContract, networkContract, httpContract],
  migrations: "none",
  layer: loaded(() => import("./demonstrate.ts"))
})
