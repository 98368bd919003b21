// The follower of open settlements. It runs for as long as the process; each ledger wakes it, and a
// record that was sent after its own.
import { Context, Effect, Layer } from "effect"
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
    Effect.map(startFollower, (follower) => SettlementFollower.of(follower))
  )
}
