// Counts this process's payments of the last minute by a monotonic clock. The store counts by ledger close times; this
// second count is for a ledger with a clock that follows the machine's.
import { Effect } from "effect"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import type { BudgetStore } from "./BudgetStore.ts"
import { minuteMillis } from "./Reservation.ts"

export const countingOwnMinute = (store: BudgetStore["Service"]): BudgetStore["Service"] => {
  const paid = new Map<string, { readonly agent: string; readonly at: number }>()
  const countOf = (agent: string, now: number): number => {
    for (const [id, { at }] of paid) if (now - at >= minuteMillis) paid.delete(id)
    return [...paid.values()].filter((one) => one.agent === agent).length
  }
  return {
    ...store,
    reserve: Effect.fnUntraced(function* (reservation, ceilings, made) {
      const now = yield* monotonicMillis
      const { agent, id } = reservation
      const { paymentsPerMinute: most } = ceilings
      if (most > 0 && countOf(agent, now) >= most) return "over"
      const reserved = yield* store.reserve(reservation, ceilings, made)
      if (most > 0 && reserved === "kept") paid.set(id, { agent, at: now })
      return reserved
    }),
    move: (id, to) =>
      Effect.tap(store.move(id, to), (isMoved) =>
        Effect.sync(() => void (isMoved && to.state === "released" && paid.delete(id)))
      )
  }
}
