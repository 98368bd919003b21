// The follower of open settlements. It runs for as long as the process; a new record wakes it.
import { Context, Effect, Layer } from "effect"
import { startFollower } from "../../settlement/reconcileSettlements.ts"

export class SettlementFollower extends Context.Service<
  SettlementFollower,
  {
    /** Asks for a turn soon. Never waits, never fails. */
    readonly wake: Effect.Effect<void>
  }
>()("tollkeeper/payment/SettlementFollower") {
  static readonly layer = Layer.effect(
    SettlementFollower,
    Effect.map(startFollower, (follower) => SettlementFollower.of(follower))
  )
}
