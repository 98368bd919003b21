// Holds the folder of its argument until it is killed; prints a line when it does.
import { Console, Effect } from "effect"
import process from "node:process"
import { lockFolder } from "../../runtime/platform/folderLock.ts"

const untilKilled = Effect.promise(() => new Promise(() => setInterval(() => {}, 60_000)))
const folder = process.argv[2]!
await lockFolder(folder).pipe(
  Effect.andThen(Console.log("held")),
  Effect.andThen(untilKilled),
  Effect.scoped,
  Effect.runPromise
)
