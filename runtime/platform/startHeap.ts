// The heap of a program while it starts, on Node: loading some hundred modules makes V8 take three times what stays in
// use. While modules load it grows no further than it must; afterwards it grows as ever, so that nothing is
// slower. Elsewhere than on Node neither does anything.
import process from "node:process"
import { setFlagsFromString } from "node:v8"

/** Whether the engine takes flags while it runs; Deno's does not. */
export const takesFlags = !("Deno" in globalThis)

/** Before anything is loaded. */
export const limitSemiSpace = (): void => {
  if (takesFlags) setFlagsFromString("--optimize-for-size")
}

/** Before anything large is read, and when everything is there. */
export const allowSemiSpaceGrowth = (): void => {
  if (takesFlags) setFlagsFromString("--no-optimize-for-size")
}

/**
 * For a program that answers requests: what they leave is collected by the thread that answers them. It takes a
 * millisecond or two a time, for hardly any of it lives; helpers would wait for each other longer than that, and took a
 * fifth of all that a verification costs.
 */
export const collectAlone = (): void => {
  if (takesFlags) setFlagsFromString("--no-parallel-scavenge")
}

/** Bytes that may come to what lives before the heap is collected whole. */
const room = 80 * 1_048_576

/**
 * After the collection that ends a start, by a program that answers requests: V8 measures how much it may grow by how
 * fast it grew before, so one that settles twenty payments a second, and waits for the ledger in between, was collected
 * every other second. That took a quarter of what the payments themselves did. `live` is in bytes, buffers included.
 */
export const raiseSemiSpace = (live: number): void => {
  if (takesFlags) setFlagsFromString(`--heap-growing-percent=${Math.ceil((100 * room) / live)}`)
}

/**
 * After the collection that ends a start: of code that has not run for some collections V8 forgets the compiled form,
 * and after a rest, when it gives back memory, that is all that a payment runs. The next ones cost a seventh more.
 */
export const keepCode = (): void => {
  if (takesFlags) setFlagsFromString("--no-flush-bytecode")
}

/** An older engine has no such flags, and would complain of them. */
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

/** When those eight seconds are over, by a program that mostly waits: what a busy time has taken is given back. */
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
 * Before WebAssembly is loaded, by a program that mostly waits: V8 compiles a function of the embedded database a
 * second time when it has run a few milliseconds in all, which a process without any payment reaches by its minutes,
 * and takes a quarter of its idling for. A busy one reaches this in its first seconds, and is as fast on the way there.
 */
export const optimizeLate = (): void => {
  if (takesFlags) setFlagsFromString(`--wasm-tiering-budget=${optimizedAfter}`)
}
