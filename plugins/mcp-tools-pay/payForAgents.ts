// The part of the plugin that starts only with a signer: the budget, the payer, the paid call, and the actor that
// decides open holds. It is loaded lazily, because facilitators and most tool servers run without a signer.
import { Effect, Layer } from "effect"
import { Tools } from "../mcp-tools/contract.ts"
import * as Store from "./budget/openStore.ts"
import { RunningBudget } from "./budget/BudgetStore.ts"
import { StoreDatabase } from "./budget/StoreDatabase.ts"
import { startHolds } from "./budget/reconcileHolds.ts"
import { callTool } from "./call/callResource.ts"
import { receiptsTool } from "./call/listReceipts.ts"
import { explainTool } from "./call/explainPayment.ts"
import { fetchTool } from "./call/fetchResource.ts"
import { PayingPolicy } from "./call/chooseTerms.ts"
import { PaymentPolicyCheck } from "./call/PaymentPolicyCheck.ts"
import { OpenPayments } from "./call/OpenPayments.ts"
import { Payments } from "./call/Payments.ts"
import { AgentChannels } from "./channel/AgentChannels.ts"
import { startRefunds } from "./channel/refundChannels.ts"
import { Config } from "./Config.ts"
import * as OpenPayer from "./payer/openPayer.ts"
import { addApprovalRoutes } from "./policy/approvalRoutes.ts"
import { Approvals } from "./policy/Approvals.ts"
import { Policy } from "./policy/Policy.ts"
import { PaymentBuilder } from "./payer/PaymentBuilder.ts"
import { PaymentSeal } from "./payer/PaymentSeal.ts"

export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    yield* startHolds
    yield* startRefunds
    yield* addApprovalRoutes
    const { http } = yield* Config
    const { register } = yield* Tools
    yield* register(yield* callTool)
    yield* register(yield* explainTool)
    yield* register(yield* receiptsTool)
    if (http.isEnabled) yield* register(yield* fetchTool)
  })
).pipe(
  Layer.merge(RunningBudget.layer),
  Layer.provide(Payments.layer),
  Layer.provide(AgentChannels.layer),
  Layer.provide(Policy.layer.pipe(Layer.provideMerge(Approvals.layer))),
  Layer.provide(
    Layer.mergeAll(
      PaymentBuilder.layer,
      PaymentSeal.layer,
      PaymentPolicyCheck.layer,
      OpenPayments.layer,
      PayingPolicy.layer
    )
  ),
  Layer.provide(Layer.merge(Store.layer, OpenPayer.layer)),
  Layer.provide(StoreDatabase.layer),
  Layer.provide(Config.layer)
)
