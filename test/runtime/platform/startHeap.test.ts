// The start's requests to the engine: it accepts flags while the program runs, and two of them are recognizable by
// their effect.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { syncBuiltinESMExports } from "node:module"
import type { ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import process from "node:process"
import v8 from "node:v8"
import { afterAll, afterEach, beforeAll } from "vitest"
import { makeHttpServer } from "../../../runtime/platform/httpServer.ts"
import { releaseMemory, scheduleMemoryReducer } from "../../../runtime/platform/nodeMemory.ts"
import * as heap from "../../../runtime/platform/startHeap.ts"

const isDeno = "Deno" in globalThis
/** An older engine does not have these flags. */
const isRecent = !isDeno && Number.parseInt(process.versions.v8, 10) >= 13
const counts = (count: number) => (isRecent ? [`--memory-reducer-gc-count=${count}`] : [])
const set: Array<string> = []
const setting = v8.setFlagsFromString

/** Also updates modules that have imported it already: test files share a process. */
const setBy = (set: typeof setting): void => {
  if (isDeno) return
  v8.setFlagsFromString = set
  syncBuiltinESMExports()
}

beforeAll(() => setBy((flag) => void set.push(flag)))
afterEach(() => void set.splice(0))
afterAll(() => setBy(setting))

it("limits heap growth during the start, and restores V8's defaults afterwards", () => {
  heap.collectAlone()
  heap.limitSemiSpace()
  heap.disableMemoryReducer()
  heap.allowSemiSpaceGrowth()
  heap.restoreMemoryReducer()
  const expected = [
    "--no-parallel-scavenge",
    "--optimize-for-size",
    ...counts(0),
    "--no-memory-reducer",
    "--no-optimize-for-size",
    ...counts(2),
    "--memory-reducer"
  ]
  expect(set).toEqual(isDeno ? [] : expected)
  expect(heap.takesFlags).toBe(!isDeno)
})

it("delays optimizing WebAssembly in a program that mostly waits", () => {
  heap.optimizeLate()
  expect(set).toEqual(isDeno ? [] : ["--wasm-tiering-budget=200000000"])
})

it("compiles a busy server's code early, once, after three hundred requests", async () => {
  const { server } = makeHttpServer()
  server.on("request", (_, response: ServerResponse) => response.end())
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const ask = async (times: number) => {
    for (let at = 0; at < times; at++)
      await (await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)).text()
  }
  await ask(299)
  expect(set).toEqual([])
  await ask(2)
  expect(set).toEqual(isRecent ? ["--invocation-count-for-maglev=100", "--invocation-count-for-turbofan=1000"] : [])
  server.closeAllConnections()
  server.close()
})

it("lets the heap grow to its limit, whatever is live", () => {
  heap.raiseSemiSpace(40 * 1_048_576)
  heap.raiseSemiSpace(160 * 1_048_576)
  expect(set).toEqual(isDeno ? [] : ["--heap-growing-percent=200", "--heap-growing-percent=50"])
})

it.effect("releases memory two seconds after start, then grows by live size", () =>
  Effect.gen(function* () {
    const giving = yield* Effect.forkChild(releaseMemory)
    yield* TestClock.adjust("1900 millis")
    expect(set).toEqual([])
    yield* TestClock.adjust("100 millis")
    yield* Fiber.join(giving)
    const growing = expect.stringMatching(/^--heap-growing-percent=\d+$/)
    expect(set).toEqual(isDeno ? [] : ["--expose-gc", "--no-expose-gc", growing, "--no-flush-bytecode"])
  })
)

it.effect("re-enables the memory reducer of an idle program after fifteen seconds", () =>
  Effect.gen(function* () {
    const reducing = yield* Effect.forkChild(scheduleMemoryReducer)
    yield* TestClock.adjust("14 seconds")
    expect(set).toEqual([])
    yield* TestClock.adjust("1 second")
    yield* Fiber.join(reducing)
    expect(set).toEqual(isDeno ? [] : [...counts(2), "--memory-reducer"])
  })
)
