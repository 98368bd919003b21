// Entry of the embedded database's thread: a thread has its own loader, which must be the program's.
import { loadLean } from "../loading.mjs"

loadLean()
await import("./pgliteWorker.ts")
