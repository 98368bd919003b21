// An operator's look at what waits for a person, and word on it, beside the running tool server: it works on the state
// folder alone.
import { Effect, Layer } from "effect"
import { Config } from "../Config.ts"
import { Approvals } from "./Approvals.ts"

const withFolder = Effect.provide(Layer.merge(Approvals.layer, Config.layer))

/** Requests that stand, oldest first. */
export const listApprovals = Effect.gen(function* () {
  const { policy } = yield* Config
  return yield* (yield* Approvals).all(policy.approvalMillis)
}).pipe(withFolder)

/** False when nothing of this id waits. */
export const decideApproval = (id: string, state: "approved" | "denied") =>
  Effect.gen(function* () {
    const { policy } = yield* Config
    return yield* (yield* Approvals).decide(id, state, policy.approvalMillis)
  }).pipe(withFolder)

/** The log of decisions, one JSON object a line. */
export const decisions = Effect.flatMap(Approvals, ({ logged }) => logged).pipe(withFolder)
