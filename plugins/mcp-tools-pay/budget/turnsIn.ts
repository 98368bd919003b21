// Serializes steps over the files of a folder, across all processes of this machine. The lock of a crashed process is
// taken over.
import { Effect, Semaphore } from "effect"
import { FolderLock } from "../../../kernel/platform/Host.ts"
import { BudgetUnavailable } from "./BudgetStore.ts"

/** How long a step waits for another process's step. */
const turnMillis = 10_000

export const turnsIn = Effect.fnUntraced(function* (folder: string) {
  const folders = yield* Effect.serviceOption(FolderLock)
  const lock = Semaphore.makeUnsafe(1)
  // Without folder locks, only this process uses the files.
  const held =
    folders._tag === "None"
      ? Effect.void
      : Effect.mapError(folders.value.holdSoon(folder, turnMillis), (cause) => new BudgetUnavailable({ cause }))
  return <A, E, R>(step: Effect.Effect<A, E, R>): Effect.Effect<A, E | BudgetUnavailable, R> =>
    Semaphore.withPermit(lock, Effect.scoped(Effect.andThen(held, step))) as Effect.Effect<A, E | BudgetUnavailable, R>
})
