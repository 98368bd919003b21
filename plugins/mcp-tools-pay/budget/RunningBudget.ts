// The budget's store of the tool server that runs, for an operator's command that is carried out within it: a file is
// this process's alone, so nobody else could decide what it holds.
import { Context, Effect, Layer } from "effect"
import { BudgetStore } from "./BudgetStore.ts"

export class RunningBudget extends Context.Service<
  RunningBudget,
  {
    /** Undefined where nobody pays. */
    readonly store: BudgetStore["Service"] | undefined
  }
>()("tollkeeper/mcp-tools-pay/RunningBudget") {
  static readonly layer = Layer.effect(
    RunningBudget,
    Effect.map(BudgetStore, (store) => RunningBudget.of({ store }))
  )
  static readonly layerNone = Layer.succeed(RunningBudget, { store: undefined })
}
