// Decides reservations with an unknown outcome by the ledger (S104, S164). A reservation becomes spent if its nonce is
// spent, or if the transaction in the seller's receipt carries the nonce. It is released once the last ledger of the
// authorization has closed without it. A reservation that was never signed is released after a while. If the nonce
// entry has already expired, a turn scans every ledger of the authorization's lifetime, which the stored payment
// contains. A signed payment that was never stored was never sent, so it is released then. If the node no longer has
// those ledgers, the reservation stays held and an operator decides.
import { Clock, Duration, Effect } from "effect"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import { decodeKeptPayment } from "../call/KeptWire.ts"
import { Config } from "../Config.ts"
import { PaymentSeal } from "../payer/PaymentSeal.ts"
import { fateOf, lateFate, provesPayment } from "../payer/proveSpent.ts"
import { BudgetStore } from "./BudgetStore.ts"
import type { Authorization, Reservation } from "./Reservation.ts"

const every = Duration.seconds(15)
/** Near the end of an authorization we check every ledger. */
const nearEnd = { ledgers: 6, every: Duration.millis(500) }
/** A call that takes longer has crashed with its process. */
const abandonedMillis = 180_000

/** One turn, and the delay before the next one. */
export const makeHoldTurn = Effect.gen(function* () {
  const rpc = yield* LedgerRpc
  const store = yield* BudgetStore
  const seal = yield* PaymentSeal
  let nextEnd = Number.POSITIVE_INFINITY

  /** Decides a reservation after the lifetime of its nonce's entry. */
  const decideLate = Effect.fnUntraced(function* (one: Reservation, authorization: Authorization) {
    const { payment } = yield* store.kept(one.id)
    // From now on this payment cannot be stored, and an unstored payment is not sent.
    if (payment === undefined && one.state === "signed")
      return yield* store.move(one.id, { state: "released", from: "signed" })
    const text = payment === undefined ? undefined : seal.open(one.id, payment)
    const open = text === undefined ? undefined : decodeKeptPayment(text, one)
    if (open !== undefined) {
      const fate = yield* lateFate(rpc, authorization, open.invocation.option.maxTimeoutSeconds)
      if (fate._tag === "Paid") {
        const { transaction } = fate.proof
        return yield* store.move(one.id, { state: "spent", transaction })
      }
      if (fate._tag === "Dead") return yield* store.move(one.id, { state: "released" })
    }
    return one.state === "signed" && (yield* store.move(one.id, { state: "unknown" }))
  })

  const decide = Effect.fnUntraced(function* (one: Reservation) {
    const now = yield* Clock.currentTimeMillis
    const { authorization } = one
    if (authorization === undefined) {
      // Its process may have been slow, and sign it while this turn waits.
      if (now - one.createdAtMillis <= abandonedMillis) return
      if (one.state === "reserved") yield* store.move(one.id, { state: "released", from: "reserved" })
      // A signed reservation without an authorization is a voucher's; no ledger decides it. A voucher that was never
      // stored was never sent, and from its release on it cannot be stored.
      const isStored = one.state !== "signed" || (yield* store.kept(one.id)).payment !== undefined
      if (!isStored) yield* store.move(one.id, { state: "released", from: "signed" })
      return
    }
    if (one.transaction !== undefined && (yield* provesPayment(rpc, one.transaction, one, authorization))) {
      yield* store.move(one.id, { state: "spent" })
      return
    }
    const { fate, latestLedger } = yield* fateOf(rpc, authorization)
    nextEnd = Math.min(nextEnd, fate === "alive" ? authorization.expirationLedger - latestLedger : nextEnd)
    // A call in progress resolves its own reservation.
    if (one.state === "signed" && now - one.createdAtMillis <= abandonedMillis && fate !== "dead") return
    if (fate === "spent") yield* store.move(one.id, { state: "spent" })
    if (fate === "dead") yield* store.move(one.id, { state: "released" })
    if (fate === "undecidable") yield* decideLate(one, authorization)
  })

  return {
    turn: Effect.gen(function* () {
      nextEnd = Number.POSITIVE_INFINITY
      yield* Effect.forEach(yield* store.open, decide, { discard: true })
    }),
    every: Effect.sync(() => (nextEnd <= nearEnd.ledgers ? nearEnd.every : every))
  }
})

export const startHolds = Effect.gen(function* () {
  const { every, turn } = yield* makeHoldTurn
  const { settleAcknowledged } = yield* BudgetStore
  const { replayMillis } = yield* Config
  // Results past the replay window are dropped.
  const swept = Effect.andThen(turn, settleAcknowledged(replayMillis))
  return yield* reconciler({ id: "holds", every, turn: swept })
})
