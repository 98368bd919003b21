// Opens the configured store until the Scope closes. A shared store deletes old ended reservations every hour.
import { Effect, Layer, Path } from "effect"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { SettingsRefused } from "../../../kernel/config/Settings.ts"
import { FolderLock, Host } from "../../../kernel/platform/Host.ts"
import { Config } from "../Config.ts"
import { BudgetStore } from "./BudgetStore.ts"
import { countingOwnMinute } from "./ownMinute.ts"
import { forgetReservations, postgresStore } from "./postgresStore.ts"
import { StoreDatabase } from "./StoreDatabase.ts"
import { fileStore, memoryStore } from "./tableStore.ts"

/** Folder of the file store. */
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

export const layer = Layer.effect(
  BudgetStore,
  Effect.map(
    Effect.tap(openStore, () => startForgetting),
    countingOwnMinute
  )
)
