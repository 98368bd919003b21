// Operator commands that list and decide requests for approval while the tool server runs. They use the state folder,
// or the PostgreSQL that replicas share if the settings choose one.
import { Effect, Layer } from "effect"
import { Config } from "../Config.ts"
import { StoreDatabase } from "../budget/StoreDatabase.ts"
import { Approvals } from "./Approvals.ts"

const approvals = Approvals.layer.pipe(Layer.provide(StoreDatabase.layer), Layer.provideMerge(Config.layer))

const withStore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.scoped(Effect.provide(effect, approvals))

/** Open requests, oldest first. */
export const listApprovals = Effect.gen(function* () {
  const { policy } = yield* Config
  return yield* (yield* Approvals).all(policy.approvalMillis)
}).pipe(withStore)

/** False if no request with this id is waiting. */
export const decideApproval = (id: string, state: "approved" | "denied") =>
  Effect.gen(function* () {
    const { policy } = yield* Config
    return yield* (yield* Approvals).decide(id, state, policy.approvalMillis)
  }).pipe(withStore)

/** The log of decisions, one JSON object per line. */
export const decisions = Effect.flatMap(Approvals, ({ logged }) => logged).pipe(withStore)
