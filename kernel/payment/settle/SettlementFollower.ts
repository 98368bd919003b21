// The follower of open settlements, told what only a payment's scheme can read: what a transaction of ours moved, and
// where its authorization was used. It runs for as long as the process; a new record wakes it.
import { Context, Effect, Layer, Option } from "effect"
import { Network } from "../../config/Network.ts"
import { type FollowerOptions, startFollower } from "../../settlement/reconcileSettlements.ts"
import { Schemes } from "../Scheme.ts"

export class SettlementFollower extends Context.Service<
  SettlementFollower,
  {
    /** Asks for a turn soon. Never waits, never fails. */
    readonly wake: Effect.Effect<void>
  }
>()("tollkeeper/payment/SettlementFollower") {
  static readonly layer = Layer.effect(
    SettlementFollower,
    Effect.gen(function* () {
      const schemes = yield* Schemes
      const network = yield* Network
      const moved: FollowerOptions["moved"] = (record, executed) => {
        const scheme = schemes.find(record.scheme)
        // A scheme whose plugin is off cannot read its transaction; that it succeeded is then what is known.
        if (Option.isNone(scheme)) return record.amount
        const checked = scheme.value.checkExecuted(record, executed)
        return checked._tag === "Moved" ? checked.amount : undefined
      }
      const usedIn: FollowerOptions["usedIn"] = (record) => {
        const adoption = Option.getOrUndefined(schemes.find(record.scheme))?.adoption
        return adoption === undefined
          ? Effect.undefined
          : Effect.map(adoption.usedIn(record.authorizationKey), Option.getOrUndefined)
      }
      return SettlementFollower.of(yield* startFollower({ moved, usedIn, feeCeilings: network.feeCeilings }))
    })
  )
}
