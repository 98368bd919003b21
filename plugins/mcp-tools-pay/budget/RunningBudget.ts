// The budget store of the running tool server. Operator commands that run inside the tool server use it instead of
// opening a second store; a memory store can only be reached this way.
import { Context, Effect, Layer } from "effect"
import { BudgetStore } from "./BudgetStore.ts"

export class RunningBudget extends Context.Service<
  RunningBudget,
  {
    /** Undefined when no signer is configured. */
    readonly store: BudgetStore["Service"] | undefined
  }
>()("tollkeeper/mcp-tools-pay/RunningBudget") {
  static readonly layer = Layer.effect(
    RunningBudget,
    Effect.map(BudgetStore, (store) => RunningBudget.of({ store }))
  )
  static readonly layerNone = Layer.succeed(RunningBudget, { store: undefined })
}
