// The budget's store of the running tool server, for operator commands that execute inside it: a file store belongs to
// this process alone.
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
