// Returns memory to the system that only the start needed. Half of the process's memory is then the heap that compiling
// two thousand modules used, and V8 would keep most of it permanently. It takes a quarter of a second once, so it waits
// until the start's own work is done. Deno lacks such a function and keeps the memory.
import { Effect } from "effect"
import { getHeapStatistics, setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { raiseSemiSpace, keepCode, restoreMemoryReducer, takesFlags } from "./startHeap.ts"

type Collect = (options: { type: "major"; execution: "sync"; flavor: "last-resort" }) => void

/** After the listener answers. By then channels are checked and the first connections are made. */
const startedAfter = "2 seconds"

const collect = Effect.sync(() => {
  setFlagsFromString("--expose-gc")
  const gc: Collect | undefined = runInNewContext("globalThis.gc")
  setFlagsFromString("--no-expose-gc")
  gc?.({ type: "major", execution: "sync", flavor: "last-resort" })
})

/** For a process that has finished its start. */
export const releaseMemoryNow: Effect.Effect<void> = takesFlags ? collect : Effect.void

/** V8's own collections after a large one have happened by then. */
const reducedAfter = "15 seconds"

/** Fork this after that, in a mostly idle program: from then on V8's memory reducer runs. */
export const scheduleMemoryReducer: Effect.Effect<void> = Effect.andThen(
  Effect.sleep(reducedAfter),
  Effect.sync(restoreMemoryReducer)
)

/** Bases the heap's growth limit on the live size after a collection. */
const growFromHere = Effect.sync(() => {
  const { external_memory: buffers, used_heap_size: objects } = getHeapStatistics()
  raiseSemiSpace(objects + buffers)
  keepCode()
})

/** Fork this when a serving process is ready. */
export const releaseMemory: Effect.Effect<void> = takesFlags
  ? Effect.sleep(startedAfter).pipe(Effect.andThen(collect), Effect.andThen(growFromHere))
  : Effect.void
