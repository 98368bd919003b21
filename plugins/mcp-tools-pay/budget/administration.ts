// An operator's look at what is held, and word on what the ledger no longer decides (S104). It works on the store
// alone: on PostgreSQL beside the running tool servers; a file is read beside the one that has it, and changed while
// none runs on its folder.
import { Effect, Layer } from "effect"
import { FolderHeld } from "../../../kernel/platform/FolderLock.ts"
import { SettingsRefused } from "../../../kernel/config/Settings.ts"
import { Config } from "../Config.ts"
import { BudgetUnavailable } from "./BudgetStore.ts"
import { fileFolder, openStore } from "./openStore.ts"
import { isOpen } from "./Reservation.ts"
import { StoreDatabase } from "./StoreDatabase.ts"
import { readTable } from "./tableStore.ts"

const kept = Effect.gen(function* () {
  if ((yield* Config).store === "memory")
    return yield* new SettingsRefused({
      path: "budget.store",
      message: "memory is forgotten with its process; there is nothing to look at"
    })
  return yield* openStore
}).pipe(Effect.provide(StoreDatabase.layer.pipe(Layer.provideMerge(Config.layer))))

/** Reservations that can still change, oldest first. */
export const listHolds = Effect.gen(function* () {
  if ((yield* Config).store === "file") return (yield* readTable(yield* fileFolder)).filter(isOpen)
  return yield* Effect.flatMap(kept, ({ open }) => open)
}).pipe(Effect.scoped, Effect.provide(Config.layer))

/** The tool server that runs has the file. */
const held = new SettingsRefused({
  path: "budget.store",
  message: "a tool server that runs has the budget's file; stop it, decide, and start it again, or keep it in postgres"
})

/** False when the reservation is not one that may be decided so. */
export const resolveHold = (id: string, outcome: "spent" | "released") =>
  Effect.scoped(Effect.flatMap(kept, ({ move }) => move(id, { state: outcome }))).pipe(
    Effect.catchIf(
      (error) => error instanceof BudgetUnavailable && error.cause instanceof FolderHeld,
      () => Effect.fail(held)
    )
  )
