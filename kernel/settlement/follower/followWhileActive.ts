// Whatever is published here or by another replica may be a settlement that has begun: ledgers are followed closely
// from then on, by the replica that holds the follower's lease too, though nobody brings it a payment.
import { Effect } from "effect"
import { Facts } from "../../facts/Facts.ts"
import { LedgerClock } from "../../ledger/LedgerClock.ts"

/** Listens for as long as the Scope lives. */
export const followWhileActive = Effect.gen(function* () {
  const { attend } = yield* LedgerClock
  yield* (yield* Facts).onPublished(attend)
})
