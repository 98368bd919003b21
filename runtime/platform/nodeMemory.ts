// Gives back to the system what a start needed and nothing needs any more: half of what the process holds by then is
// room that compiling two thousand modules took, and the engine would keep most of it for good. It takes a quarter of a
// second once, so it waits until the start's own work is done. Deno has no such request, and keeps what it has.
import { Effect } from "effect"
import process from "node:process"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

type Collect = (options: { type: "major"; execution: "sync"; flavor: "last-resort" }) => void

/** After the listener answers: channels are looked at and first connections made by then. */
const startedAfter = "2 seconds"

const collect = Effect.sync(() => {
  setFlagsFromString("--expose-gc")
  const gc: Collect | undefined = runInNewContext("globalThis.gc")
  setFlagsFromString("--no-expose-gc")
  gc?.({ type: "major", execution: "sync", flavor: "last-resort" })
})

/** For a process that is ready, and has nothing more to begin with. */
export const giveBackMemoryNow: Effect.Effect<void> = process.versions["deno"] === undefined ? collect : Effect.void

/** To be forked when the process is ready. */
export const giveBackMemory: Effect.Effect<void> =
  process.versions["deno"] === undefined ? Effect.andThen(Effect.sleep(startedAfter), collect) : Effect.void
