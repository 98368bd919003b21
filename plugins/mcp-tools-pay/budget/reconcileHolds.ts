// Decides reservations without a known outcome from the ledger (S104, S164): spent when the nonce is, or the
// transaction that the seller named carries it; released when the last ledger of the authorization has closed without
// it. What was reserved and never signed is released after a while. A turn that runs after the nonce entry has expired
// scans every ledger in which the authorization could be spent, as the kept payment says; a payment that was never kept
// has not left its process, and is released then. Where the node no longer has those ledgers the reservation stays
// held; an operator decides it.
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
/** Near the end of an authorization every ledger is checked. */
const nearEnd = { ledgers: 6, every: Duration.millis(500) }
/** A call that takes longer has died with its process. */
const abandonedMillis = 180_000

/** One turn, and how long the next one may wait. */
export const makeHoldTurn = Effect.gen(function* () {
  const rpc = yield* LedgerRpc
  const store = yield* BudgetStore
  const seal = yield* PaymentSeal
  let nextEnd = Number.POSITIVE_INFINITY

  /** One whose nonce entry, if there was one, is past its life. */
  const decideLate = Effect.fnUntraced(function* (one: Reservation, authorization: Authorization) {
    const { payment } = yield* store.kept(one.id)
    // Keeping it fails from now on, and what is not kept is not sent.
    if (payment === undefined && one.state === "signed") return yield* store.move(one.id, { state: "released" })
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
      // Signed without an authorization of the ledger: a voucher, which no ledger decides.
      const isAbandoned = one.state === "reserved" && now - one.createdAtMillis > abandonedMillis
      if (isAbandoned) yield* store.move(one.id, { state: "released" })
      return
    }
    if (one.transaction !== undefined && (yield* provesPayment(rpc, one.transaction, one, authorization))) {
      yield* store.move(one.id, { state: "spent" })
      return
    }
    const { fate, latestLedger } = yield* fateOf(rpc, authorization)
    nextEnd = Math.min(nextEnd, fate === "alive" ? authorization.expirationLedger - latestLedger : nextEnd)
    // A call that is under way resolves its own reservation.
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
  const { replay } = yield* Config
  // What is answered again no longer takes no room.
  const swept = Effect.andThen(turn, settleAcknowledged(replay.windowMillis))
  return yield* reconciler({ id: "holds", every, turn: swept })
})
