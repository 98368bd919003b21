// The store that the settings name, open until the Scope closes. A shared one forgets what has ended, each hour.
import { Effect, Layer, Path } from "effect"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { Host } from "../../../kernel/platform/Host.ts"
import { Config } from "../Config.ts"
import { BudgetStore } from "./BudgetStore.ts"
import { countingOwnMinute } from "./ownMinute.ts"
import { forgetReservations, postgresStore } from "./postgresStore.ts"
import { StoreDatabase } from "./StoreDatabase.ts"
import { fileStore, memoryStore } from "./tableStore.ts"

/** Where the file is kept. */
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

export const openStore = Effect.gen(function* () {
  const { shared } = yield* StoreDatabase
  if (shared !== undefined) return yield* Effect.provideContext(postgresStore, shared)
  return yield* (yield* Config).store === "memory" ? memoryStore : fileStore(yield* fileFolder)
})

export const layer = Layer.effect(
  BudgetStore,
  Effect.map(
    Effect.tap(openStore, () => startForgetting),
    countingOwnMinute
  )
)
