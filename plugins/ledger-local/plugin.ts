// The embedded ledger as a plugin: a Stellar RPC at 127.0.0.1:8000 (and 8443 over TLS) with its state in the state
// folder. It provides the ledger to others in the process; the facilitator uses it over HTTP like any other.
import { settingsContract } from "../../kernel/config/Settings.ts"
import { define, loaded } from "../../kernel/plugin/Plugin.ts"
import { supervisorContract } from "../../kernel/actor/Supervisor.ts"
import { declared } from "./Config.ts"

export const plugin = define({
  id: "ledger-local",
  summary: "An embedded Stellar ledger: RPC, friendbot and close times, for newcomers and tests.",
  boot: "required",
  needs: [settingsContract, supervisorContract],
  migrations: "none",
  settings: declared,
  layer: loaded(() => import("./startLedger.ts"))
})
