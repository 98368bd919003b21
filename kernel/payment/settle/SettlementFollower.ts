// The follower of open settlements. It runs as long as the process. Each ledger wakes it, and so does a record that was
// sent after its own ledger. The watch of failed settlements runs in parallel.
import { Context, Effect, Layer } from "effect"
import { startWatch } from "../../settlement/follower/watchFailed.ts"
import { startFollower } from "../../settlement/follower/reconcileSettlements.ts"

export class SettlementFollower extends Context.Service<
  SettlementFollower,
  {
    /** Requests a turn soon. Never waits, never fails. */
    readonly wake: Effect.Effect<void>
  }
>()("tollkeeper/payment/SettlementFollower") {
  static readonly layer = Layer.effect(
    SettlementFollower,
    Effect.map(Effect.andThen(startWatch, startFollower), (follower) => SettlementFollower.of(follower))
  )
}
