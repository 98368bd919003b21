// The entry of the `tollkeeper` command. Plain JavaScript, so that our own module hooks (`loading.mjs`) are installed
// before any TypeScript is loaded. One-shot commands, and the tools, which an agent starts with every conversation,
// also use Node's compile cache. A long-running process does not, because the cache would occupy 16 MB for its
// lifetime.
import * as modules from "node:module"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { endWithParent, environmentOf, lacks, nodeIssue } from "./system.mjs"

// Checked before any module that an older Node cannot load.
const issue = "Deno" in globalThis ? undefined : nodeIssue(process.versions.node)
if (issue !== undefined) {
  console.error(`tollkeeper: ${issue}`)
  process.exit(1)
}

const command = process.argv[2]

/** Variables that the C library reads only at process start: without them, the process re-executes itself. */
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
const { loadLean } = await import("./loading.mjs")
loadLean()
if (!("Deno" in globalThis) && command !== "start" && command !== "ledger")
  modules.enableCompileCache?.(fileURLToPath(new URL("../node_modules/.cache/tollkeeper", import.meta.url)))
const {
  collectAlone,
  limitSemiSpace: growSlowly,
  optimizeLate,
  disableMemoryReducer: reduceNothing
} = await import("./platform/startHeap.ts")
if (command === "start" || command === "ledger") reduceNothing()
if (command === "start") {
  collectAlone()
  optimizeLate()
}
if (command === "ledger") {
  growSlowly()
  await import("./ledgerLine.ts")
} else if (command === "start" || command === "tools") await import("./serveLine.ts")
else await import("./commandLine.ts")
