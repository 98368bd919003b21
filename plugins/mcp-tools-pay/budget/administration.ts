// An operator's look at what is held, and word on what the ledger no longer decides (S104). It works on the store
// alone: on PostgreSQL beside the running tool servers, on a file only while none runs on its folder.
import { Effect, Layer } from "effect"
import { SettingsRefused } from "../../../kernel/config/Settings.ts"
import { Config } from "../Config.ts"
import { openStore } from "./openStore.ts"
import { StoreDatabase } from "./StoreDatabase.ts"

const kept = Effect.gen(function* () {
  if ((yield* Config).store === "memory")
    return yield* new SettingsRefused({
      path: "budget.store",
      message: "memory is forgotten with its process; there is nothing to look at"
    })
  return yield* openStore
}).pipe(Effect.provide(StoreDatabase.layer.pipe(Layer.provideMerge(Config.layer))))

/** Reservations that can still change, oldest first. */
export const listHolds = Effect.scoped(Effect.flatMap(kept, ({ open }) => open))

/** False when the reservation is not one that may be decided so. */
export const resolveHold = (id: string, outcome: "spent" | "released") =>
  Effect.scoped(Effect.flatMap(kept, ({ move }) => move(id, { state: outcome })))
