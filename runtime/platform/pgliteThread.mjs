// Where the thread of the embedded database begins: a thread loads by itself, and is to load as the program does.
import { loadLean } from "../loading.mjs"

loadLean()
await import("./pgliteWorker.ts")
