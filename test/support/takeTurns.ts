// Takes a folder's lock a number of times; each time it adds 1 to a counter in a file, in two steps.
import { Effect } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import process from "node:process"
import { FolderLock } from "../../kernel/platform/Host.ts"
import * as Locks from "../../runtime/platform/folderLock.ts"

const [folder = "", counter = "", times = "0"] = process.argv.slice(2)

const add = Effect.gen(function* () {
  yield* (yield* FolderLock).holdSoon(folder, 30_000)
  const value = Number(readFileSync(counter, "utf8"))
  yield* Effect.sleep(value % 3)
  writeFileSync(counter, String(value + 1))
}).pipe(Effect.scoped)

await Effect.runPromise(Effect.provide(Effect.repeat(add, { times: Number(times) - 1 }), Locks.layer))
