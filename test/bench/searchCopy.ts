// The lexical index in memory: how long its load takes and what it holds of the memory and the event loop, and how the
// searches are answered until then.
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { monitorEventLoopDelay } from "node:perf_hooks"
import process from "node:process"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { MemoryIndex } from "../../plugins/search-lexical/postings/MemoryIndex.ts"
import type { Facilitator } from "../support/facilitator.ts"
import { atMost } from "./rig/bars.ts"
import { searchPath } from "./searchMeasure.ts"
import type { Question } from "./searchWorld.ts"

const MEGABYTES_MAX = 600

const isLoading = (facilitator: Facilitator) =>
  Effect.map(facilitator.ask("/health/ready"), ({ json }) => String(json.search.detail).includes("not in memory"))

/** Waits until the index is in memory. Asks questions meanwhile, and prints how they were answered. */
export const untilLoaded = Effect.fnUntraced(function* (facilitator: Facilitator, questions: ReadonlyArray<Question>) {
  const from = performance.now()
  const times: Array<number> = []
  while (yield* isLoading(facilitator)) {
    const start = performance.now()
    const { status, text } = yield* facilitator.ask(searchPath(questions[times.length % questions.length]!.query, ""))
    if (status !== 200) return yield* Effect.die(new Error(`a search during the load: ${status} ${text}`))
    times.push(performance.now() - start)
  }
  const seconds = ((performance.now() - from) / 1_000).toFixed(1)
  const longest = Math.max(0, ...times).toFixed(0)
  console.log(`  in memory ${seconds} s after the start; ${times.length} answers meanwhile, ${longest} ms at most`)
})

/** Bytes in use after a collection. */
const bytesInUse = (): number => {
  setFlagsFromString("--expose-gc")
  ;(runInNewContext("gc") as () => void)()
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  return arrayBuffers + heapUsed
}

/** Loads a further copy, and prints its figures. */
export const measureCopy = Effect.fnUntraced(function* ({ sql }: Facilitator) {
  const [before, from] = [bytesInUse(), performance.now()]
  const delay = monitorEventLoopDelay({ resolution: 5 })
  delay.enable()
  const services = yield* Layer.build(MemoryIndex.layer).pipe(Effect.provideService(SqlClient.SqlClient, sql))
  const index = Context.get(services, MemoryIndex)
  const state = { language: "english", refreshedAt: new Date(0) }
  yield* index.load(state)
  delay.disable()
  const seconds = ((performance.now() - from) / 1_000).toFixed(1)
  const postings = (yield* index.whole(state))!
  const [estimated, measured] = [postings.bytes, bytesInUse() - before].map((bytes) => bytes / 2 ** 20)
  console.log(
    `  a copy of ${postings.documents} documents loads in ${seconds} s and holds the event loop ` +
      `${(delay.max / 1e6).toFixed(0)} ms at most; its own estimate is ${estimated!.toFixed(0)} MB`
  )
  return [atMost("megabytes of the index in memory", measured!, MEGABYTES_MAX)]
})
