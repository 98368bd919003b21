// Opens the configured store until the Scope closes. A shared store deletes old ended reservations every hour.
import { Effect, Layer, Path } from "effect"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { SettingsRefused } from "../../../kernel/config/Settings.ts"
import { FolderLock, Host } from "../../../kernel/platform/Host.ts"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { Config } from "../Config.ts"
import { BudgetStore } from "./BudgetStore.ts"
import { forgetReservations, postgresStore } from "./postgresStore.ts"
import { minuteMillis } from "./Reservation.ts"
import { StoreDatabase } from "./StoreDatabase.ts"
import { fileStore, memoryStore } from "./tableStore.ts"

export const fileFolder = Effect.gen(function* () {
  const path = yield* Path.Path
  return path.join((yield* Host).stateFolder, "tools")
})

const startForgetting = Effect.gen(function* () {
  const { keepMillis } = yield* Config
  const { shared } = yield* StoreDatabase
  if (shared === undefined) return
  yield* reconciler({
    id: "reservations-forget",
    every: "1 hour",
    turn: Effect.gen(function* () {
      while (yield* Effect.provideContext(forgetReservations(keepMillis), shared)) yield* Effect.yieldNow
    })
  })
})

/**
 * Processes that share a state folder share its approvals, so they must also share the budget that counts the payments
 * made with them.
 */
const holdAlone = Effect.gen(function* () {
  const { hold } = yield* FolderLock
  yield* Effect.mapError(
    hold(yield* fileFolder),
    ({ message }) =>
      new SettingsRefused({
        path: "budget.store",
        message: `the memory store is for one process: ${message}; use budget.store file for several`
      })
  )
})

export const openStore = Effect.gen(function* () {
  const { shared } = yield* StoreDatabase
  if (shared !== undefined) return yield* Effect.provideContext(postgresStore, shared)
  if ((yield* Config).store !== "memory") return yield* fileStore(yield* fileFolder)
  yield* holdAlone
  return yield* memoryStore
})

/**
 * Counts this process's payments of the last minute by a monotonic clock. The store counts by ledger close times; this
 * second count is for a ledger with a clock that follows the machine's.
 */
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

export const layer = Layer.effect(
  BudgetStore,
  Effect.map(
    Effect.tap(openStore, () => startForgetting),
    countingOwnMinute
  )
)
