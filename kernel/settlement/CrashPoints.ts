// Named steps of the money path at which a test may stop the process, to see that the payment still ends once. In the
// running product they do nothing.
import { Context, Effect } from "effect"

export const steps = [
  "afterLease",
  "beforeRecord",
  "afterRecord",
  "afterSubmit",
  "beforeResolve",
  "afterResolve",
  "afterClaim",
  "beforeAnswer",
  "afterAnswer",
  "afterConfirm"
] as const
export type Step = (typeof steps)[number]

/** What happens at a step; nothing by default. */
export const CrashPoints = Context.Reference<(step: Step) => Effect.Effect<void>>("tollkeeper/settlement/CrashPoints", {
  defaultValue: () => () => Effect.void
})

export const reached = (step: Step): Effect.Effect<void> => Effect.flatMap(CrashPoints, (at) => at(step))
