// The entry of the `tollkeeper` command. Plain JavaScript: Node's compiler of types, which an entry of TypeScript loads
// before it has a chance to ask for the cache, holds 30 MB for as long as the process lives. Node keeps what it
// compiles of the program beside the packages, which belong to whoever installed them, so that every start after the
// first costs about half; where nothing can be written there, a start costs what it did. A client of the agent tools
// starts them anew for every conversation and waits meanwhile.
import * as modules from "node:module"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { endWithParent, environmentOf, lacks } from "./system.mjs"

const command = process.argv[2]

/** What the C library reads once, as a program begins: who was started without it begins again, in the same process. */
const beginAgain = () => {
  const environment = environmentOf(command, process.env, process.platform)
  const isWatched = process.send !== undefined || process.execArgv.some((word) => word.startsWith("--inspect"))
  if (command !== "start" || isWatched || typeof process.execve !== "function" || !lacks(process.env, environment))
    return
  const words = [...process.execArgv, fileURLToPath(import.meta.url), ...process.argv.slice(2)]
  process.execve(process.execPath, [process.execPath, ...words], environment)
}

beginAgain()
endWithParent()
// Before anything else of the program is loaded, types of which are stripped.
if (!("Deno" in globalThis))
  modules.enableCompileCache?.(fileURLToPath(new URL("../node_modules/.cache/tollkeeper", import.meta.url)))
const { collectAlone, growSlowly, reduceNothing } = await import("./platform/startHeap.ts")
if (command === "start" || command === "ledger") reduceNothing()
if (command === "start") collectAlone()
if (command === "ledger") {
  growSlowly()
  await import("./ledgerLine.ts")
} else if (command === "start" || command === "tools") await import("./serveLine.ts")
else await import("./commandLine.ts")
