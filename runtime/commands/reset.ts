// `tollkeeper reset`: deletes the local state, that is the database, the embedded ledger and the development keys.
import { Console, Effect, FileSystem } from "effect"
import { Command } from "effect/cli"
import { stateFlag } from "./place.ts"

export const reset = Command.make(
  "reset",
  { state: stateFlag },
  Effect.fn(function* (flags) {
    const files = yield* FileSystem.FileSystem
    yield* files.remove(flags.state, { recursive: true, force: true })
    yield* files.remove(`${flags.state}/database.lock`, { force: true })
    yield* Console.log(`${flags.state} is gone: database, ledger and development keys`)
  })
).pipe(Command.withDescription("Delete the local state: database, embedded ledger and development keys"))
