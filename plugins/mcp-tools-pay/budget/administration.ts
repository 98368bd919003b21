// Operator commands that list holds and resolve those that the ledger can no longer decide (S104). Inside the running
// tool server they use its store. Standalone they open the store while tool servers keep running.
import { Effect, Layer, Option } from "effect"
import { SettingsRefused } from "../../../kernel/config/Settings.ts"
import { Config } from "../Config.ts"
import { fileFolder, openStore } from "./openStore.ts"
import { isOpen } from "./Reservation.ts"
import { RunningBudget } from "./BudgetStore.ts"
import { StoreDatabase } from "./StoreDatabase.ts"
import { readTable } from "./tableStore.ts"

const kept = Effect.gen(function* () {
  if ((yield* Config).store === "memory")
    return yield* new SettingsRefused({
      path: "budget.store",
      message: "the memory store ends with its process and cannot be read by a command"
    })
  return yield* openStore
}).pipe(Effect.provide(StoreDatabase.layer.pipe(Layer.provideMerge(Config.layer))))

/** The store of the tool server that executes this command; undefined in a standalone process. */
const running = Effect.map(Effect.serviceOption(RunningBudget), (found) => Option.getOrUndefined(found)?.store)

/** Reads the file without locking it. */
const read = Effect.gen(function* () {
  if ((yield* Config).store === "file") return (yield* readTable(yield* fileFolder)).filter(isOpen)
  return yield* Effect.flatMap(kept, ({ open }) => open)
}).pipe(Effect.scoped, Effect.provide(Config.layer))

/** Reservations that can still change, oldest first. */
export const listHolds = Effect.gen(function* () {
  const store = yield* running
  return yield* store === undefined ? read : store.open
})

/** Payment channels that may hold money, with their terms and the amounts their vouchers were signed for. */
export const listChannels = Effect.gen(function* () {
  const store = (yield* running) ?? (yield* kept)
  return yield* Effect.forEach(yield* store.channels, ({ sealed: _, ...channel }) =>
    Effect.map(store.totals(channel.channelId), ({ counted }) => ({ ...channel, signedFor: counted.toString() }))
  )
}).pipe(Effect.scoped)

/** False if the reservation's state does not allow this outcome. */
export const resolveHold = (id: string, outcome: "spent" | "released" | "settled") =>
  Effect.gen(function* () {
    const { move } = (yield* running) ?? (yield* kept)
    return yield* move(id, { state: outcome })
  }).pipe(Effect.scoped)
