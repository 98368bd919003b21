// The entry of the `tollkeeper` command. Node keeps what it compiles of the program beside the packages, which belong
// to whoever installed them, so that every start after the first costs about half; where nothing can be written there,
// a start costs what it did. A client of the agent tools starts them anew for every conversation and waits meanwhile.
import * as modules from "node:module"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { growSlowly, reduceNothing } from "./platform/startHeap.ts"

if (!("Deno" in globalThis))
  modules.enableCompileCache?.(fileURLToPath(new URL("../node_modules/.cache/tollkeeper", import.meta.url)))
if (process.argv[2] === "start" || process.argv[2] === "ledger") reduceNothing()
if (process.argv[2] === "ledger") {
  growSlowly()
  await import("./ledgerLine.ts")
} else await import("./commandLine.ts")
