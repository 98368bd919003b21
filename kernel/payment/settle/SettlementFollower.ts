// The follower of open settlements. It runs for as long as the process; each ledger wakes it, and a
// record that was sent after its own. Beside it runs the watch of failed settlements.
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
