// Returns memory to the system that only the start needed: half of what the process holds by then is room for compiling
// two thousand modules, and V8 would keep most of it permanently. It takes a quarter of a second once, so it waits
// until the start's own work is done. Deno has no such request, and keeps the memory.
import { Effect } from "effect"
import { getHeapStatistics, setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { raiseSemiSpace, keepCode, restoreMemoryReducer, takesFlags } from "./startHeap.ts"

type Collect = (options: { type: "major"; execution: "sync"; flavor: "last-resort" }) => void

/** After the listener answers: channels are checked and first connections made by then. */
const startedAfter = "2 seconds"

const collect = Effect.sync(() => {
  setFlagsFromString("--expose-gc")
  const gc: Collect | undefined = runInNewContext("globalThis.gc")
  setFlagsFromString("--no-expose-gc")
  gc?.({ type: "major", execution: "sync", flavor: "last-resort" })
})

/** For a process that has finished its start. */
export const releaseMemoryNow: Effect.Effect<void> = takesFlags ? collect : Effect.void

/** V8's own collections after a large one are due by then. */
const reducedAfter = "15 seconds"

/** To be forked after that, by a program that mostly waits: from then on V8's memory reducer runs. */
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

/** To be forked when a serving process is ready. */
export const releaseMemory: Effect.Effect<void> = takesFlags
  ? Effect.sleep(startedAfter).pipe(Effect.andThen(collect), Effect.andThen(growFromHere))
  : Effect.void
