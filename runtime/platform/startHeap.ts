// Limits the heap while a program starts, on Node: loading some hundred modules makes V8 take three times the memory
// that stays in use. While modules load, its growth is limited; afterwards V8's defaults apply, so that nothing is
// slower. Elsewhere these functions do nothing.
import process from "node:process"
import { setFlagsFromString } from "node:v8"

/** Whether the engine accepts flags while it runs; Deno's does not. */
export const takesFlags = !("Deno" in globalThis)

/** Call it before anything is loaded. */
export const limitSemiSpace = (): void => {
  if (takesFlags) setFlagsFromString("--optimize-for-size")
}

/** Call it before anything large is read, and once everything is loaded. */
export const allowSemiSpaceGrowth = (): void => {
  if (takesFlags) setFlagsFromString("--no-optimize-for-size")
}

/**
 * For a serving program: the young generation is collected only by the main thread. That takes a millisecond or two
 * each time, since hardly anything survives. Parallel helpers would wait for each other longer than that; they took a
 * fifth of a verification's cost.
 */
export const collectAlone = (): void => {
  if (takesFlags) setFlagsFromString("--no-parallel-scavenge")
}

/** Bytes of growth over the live size before a full collection. */
const room = 80 * 1_048_576

/**
 * For a serving program, after the collection that ends a start. V8 derives the heap's growth limit from its past
 * growth rate. A program that settles twenty payments a second, and waits for the ledger in between, was collected
 * every other second, which took a quarter of the payments' own time. `live` is in bytes, buffers included.
 */
export const raiseSemiSpace = (live: number): void => {
  if (takesFlags) setFlagsFromString(`--heap-growing-percent=${Math.ceil((100 * room) / live)}`)
}

/**
 * After the collection that ends a start. V8 flushes the bytecode of functions unused for some collections. After an
 * idle period, when memory is released, that is all the code of a payment, and the next payments cost a seventh more.
 */
export const keepCode = (): void => {
  if (takesFlags) setFlagsFromString("--no-flush-bytecode")
}

/** Older engines do not have these flags, and would print a warning. */
const isRecent = takesFlags && Number.parseInt(process.versions.v8, 10) >= 13
const reduceTimes = (count: number): void => {
  if (isRecent) setFlagsFromString(`--memory-reducer-gc-count=${count}`)
}

/**
 * Before anything is loaded, for a program that collects once after its start. V8's memory reducer collects twice more
 * eight seconds after every large collection. After that first collection these two release nothing, and in a serving
 * program they never do. Each idle period between payments shrank the heap and made the next payments a sixth more
 * expensive. The released memory is only some 30 MB, as live data and the heap's extra room are bounded. One flag keeps
 * the reducer from starting, the other ends a running one.
 */
export const disableMemoryReducer = (): void => {
  reduceTimes(0)
  if (takesFlags) setFlagsFromString("--no-memory-reducer")
}

/** After those eight seconds, for a mostly idle program: memory from a busy time is released. */
export const restoreMemoryReducer = (): void => {
  reduceTimes(2)
  if (takesFlags) setFlagsFromString("--memory-reducer")
}

/**
 * For a program under load: V8 optimizes a function after 400 calls, and once more, finally, after 3,000. With a
 * quarter and a third of that, a payment among the first ten thousand costs a fifth less. We do not set this at the
 * start, because start and idle would cost more.
 */
export const compileEarly = (): void => {
  if (!isRecent) return
  setFlagsFromString("--invocation-count-for-maglev=100")
  setFlagsFromString("--invocation-count-for-turbofan=1000")
}

/** In V8's interrupt budget units; its default is 13 million. */
const optimizedAfter = 200_000_000

/**
 * Before WebAssembly is loaded, for a mostly idle program: V8 recompiles a function of the embedded database after some
 * milliseconds of run time. An idle process reaches that after minutes and spends a quarter of its idle time on it. A
 * busy one reaches this limit in its first seconds, and is as fast until then.
 */
export const optimizeLate = (): void => {
  if (takesFlags) setFlagsFromString(`--wasm-tiering-budget=${optimizedAfter}`)
}
