// Pays for agents. Adds its tools to the agent tool server, and accesses the ledger only through RPC. Without a signer
// it adds no tools and never signs anything.
import { Effect, Layer } from "effect"
import { settingsContract } from "../../kernel/config/Settings.ts"
import { configContract, networkContract } from "../../kernel/drivers.ts"
import { rpcContract } from "../../kernel/ledger/LedgerRpc.ts"
import { define, loaded } from "../../kernel/plugin/Plugin.ts"
import { supervisorContract } from "../../kernel/actor/Supervisor.ts"
import { toolsContract, ToolsConfig } from "../mcp-tools/contract.ts"
import { RunningBudget } from "./budget/BudgetStore.ts"
import { declared } from "./Config.ts"

export { RunningBudget }
export type { Ended } from "./channel/endChannel.ts"
export type { OwnerStep, SpendingState } from "./account/spendingAccount.ts"

const paying = loaded(() => import("./payForAgents.ts"))

export const plugin = define({
  id: "mcp-tools-pay",
  summary: "Paid resources called for agents, within a budget.",
  boot: "required",
  needs: [settingsContract, supervisorContract, configContract, networkContract, rpcContract, toolsContract],
  migrations: "none",
  settings: declared,
  layer: Layer.unwrap(
    Effect.map(ToolsConfig, ({ signer }) => (signer.mode === "none" ? RunningBudget.layerNone : paying))
  )
})

/** Operator commands for the payments of agents. The first command loads them. */
export const administration = Effect.promise(async () => ({
  ...(await import("./account/spendingAccount.ts")),
  ...(await import("./budget/administration.ts")),
  ...(await import("./channel/endChannel.ts")),
  ...(await import("./policy/administration.ts"))
}))
