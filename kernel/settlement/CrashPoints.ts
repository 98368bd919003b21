// Named steps of the money path. A test may stop the process at each, to verify that the payment still ends exactly
// once. In production they do nothing.
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

/** Called at each step; does nothing by default. */
export const CrashPoints = Context.Reference<(step: Step) => Effect.Effect<void>>("tollkeeper/settlement/CrashPoints", {
  defaultValue: () => () => Effect.void
})

export const reached = (step: Step): Effect.Effect<void> => Effect.flatMap(CrashPoints, (at) => at(step))
