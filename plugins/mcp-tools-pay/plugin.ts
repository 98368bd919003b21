// What pays for agents: the budget, the payer, the paid call, and the actor that decides what was left open. It brings
// its tools to the agent tool server, and asks the ledger over its RPC alone. Without a signer it brings none and
// nothing is ever signed.
import { Effect, Layer } from "effect"
import { settingsContract } from "../../kernel/config/Settings.ts"
import { configContract, networkContract } from "../../kernel/drivers.ts"
import { rpcContract } from "../../kernel/ledger/LedgerRpc.ts"
import { define } from "../../kernel/Plugin.ts"
import { supervisorContract } from "../../kernel/Supervisor.ts"
import { Tools, toolsContract, ToolsConfig } from "../mcp-tools/contract.ts"
import { listHolds, resolveHold } from "./budget/administration.ts"
import * as Store from "./budget/openStore.ts"
import { RunningBudget } from "./budget/RunningBudget.ts"
import { StoreDatabase } from "./budget/StoreDatabase.ts"
import { startHolds } from "./budget/reconcileHolds.ts"
import { callTool } from "./call/callResource.ts"
import { explainTool } from "./call/explainPayment.ts"
import { fetchTool } from "./call/fetchResource.ts"
import { PayingPolicy } from "./call/chooseTerms.ts"
import { Judge } from "./call/Judge.ts"
import { OpenPayments } from "./call/OpenPayments.ts"
import { Payments } from "./call/Payments.ts"
import { Config, declared } from "./Config.ts"
import * as OpenPayer from "./payer/openPayer.ts"
import { addApprovalRoutes } from "./policy/approvalRoutes.ts"
import { Approvals } from "./policy/Approvals.ts"
import { decideApproval, decisions, listApprovals } from "./policy/administration.ts"
import { Policy } from "./policy/Policy.ts"
import { PaymentBuilder } from "./payer/PaymentBuilder.ts"

const paying = Layer.effectDiscard(
  Effect.gen(function* () {
    yield* startHolds
    yield* addApprovalRoutes
    const { http } = yield* Config
    const { register } = yield* Tools
    yield* register(yield* callTool)
    yield* register(yield* explainTool)
    if (http.isEnabled) yield* register(yield* fetchTool)
  })
).pipe(
  Layer.merge(RunningBudget.layer),
  Layer.provide(Payments.layer),
  Layer.provide(Policy.layer.pipe(Layer.provideMerge(Approvals.layer))),
  Layer.provide(Layer.mergeAll(PaymentBuilder.layer, Judge.layer, OpenPayments.layer, PayingPolicy.layer)),
  Layer.provide(Layer.merge(Store.layer, OpenPayer.layer)),
  Layer.provide(StoreDatabase.layer),
  Layer.provide(Config.layer)
)

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

/**
 * What the command line does within a tool server that runs, beside it or without one, over its store and its state
 * folder alone.
 */
export const administration = { decideApproval, decisions, listApprovals, listHolds, resolveHold, RunningBudget }
