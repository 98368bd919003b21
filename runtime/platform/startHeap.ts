// The heap while a program starts, on Node: loading some hundred modules makes V8 take three times what stays in use.
// While modules load its growth is limited; afterwards V8's defaults hold, so that nothing is slower. Elsewhere these
// functions do nothing.
import process from "node:process"
import { setFlagsFromString } from "node:v8"

/** Whether the engine accepts flags while it runs; Deno's does not. */
export const takesFlags = !("Deno" in globalThis)

/** Before anything is loaded. */
export const limitSemiSpace = (): void => {
  if (takesFlags) setFlagsFromString("--optimize-for-size")
}

/** Before anything large is read, and when everything is loaded. */
export const allowSemiSpaceGrowth = (): void => {
  if (takesFlags) setFlagsFromString("--no-optimize-for-size")
}

/**
 * For a serving program: the main thread collects the young generation alone. That takes a millisecond or two a time,
 * since hardly anything survives; parallel helpers would wait for each other longer than that, and took a fifth of a
 * verification's cost.
 */
export const collectAlone = (): void => {
  if (takesFlags) setFlagsFromString("--no-parallel-scavenge")
}

/** Bytes of growth over the live size before a full collection. */
const room = 80 * 1_048_576

/**
 * After the collection that ends a start, by a serving program: V8 derives the heap's growth limit from its past growth
 * rate, so one that settles twenty payments a second, and waits for the ledger in between, was collected every other
 * second. That took a quarter of the payments' own time. `live` is in bytes, buffers included.
 */
export const raiseSemiSpace = (live: number): void => {
  if (takesFlags) setFlagsFromString(`--heap-growing-percent=${Math.ceil((100 * room) / live)}`)
}

/**
 * After the collection that ends a start: V8 flushes the bytecode of functions unused for some collections, and after a
 * rest, when memory is released, that is all the code of a payment. The next ones cost a seventh more.
 */
export const keepCode = (): void => {
  if (takesFlags) setFlagsFromString("--no-flush-bytecode")
}

/** Older engines do not know these flags, and would print a warning. */
const isRecent = takesFlags && Number.parseInt(process.versions.v8, 10) >= 13
const reduceTimes = (count: number): void => {
  if (isRecent) setFlagsFromString(`--memory-reducer-gc-count=${count}`)
}

/**
 * Before anything is loaded, by a program that collects once when it has started. V8's memory reducer collects twice
 * more eight seconds after every large collection: after that one it gives nothing back, and for a serving program it
 * never does. Each rest between payments shrank the heap and made the next payments a sixth dearer; what is given back
 * is some 30 MB, as live data and the room beside it are bounded. One flag keeps it from starting, the other ends a
 * running one.
 */
export const disableMemoryReducer = (): void => {
  reduceTimes(0)
  if (takesFlags) setFlagsFromString("--no-memory-reducer")
}

/** After those eight seconds, by a mostly idle program: memory of a busy time is released. */
export const restoreMemoryReducer = (): void => {
  reduceTimes(2)
  if (takesFlags) setFlagsFromString("--memory-reducer")
}

/**
 * By a program under load: V8 optimizes a function after 400 calls, and once more, finally, after 3,000. With a
 * quarter and a third of that, a payment among the first ten thousand costs a fifth less. Not from the beginning: start
 * and idle would cost more.
 */
export const compileEarly = (): void => {
  if (!isRecent) return
  setFlagsFromString("--invocation-count-for-maglev=100")
  setFlagsFromString("--invocation-count-for-turbofan=1000")
}

/** In V8's interrupt budget units; its default is 13 million. */
const optimizedAfter = 200_000_000

/**
 * Before WebAssembly is loaded, by a mostly idle program: V8 recompiles a function of the embedded database after some
 * milliseconds of run time, which an idle process reaches after minutes and spends a quarter of its idle time on. A
 * busy one reaches this in its first seconds, and is as fast until then.
 */
export const optimizeLate = (): void => {
  if (takesFlags) setFlagsFromString(`--wasm-tiering-budget=${optimizedAfter}`)
}
