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
 * Before anything is loaded, by a program that collects once when it has started. By itself V8 collects twice more
 * eight seconds after every large collection: after that one it gives nothing back, and for a program that answers
 * requests it never does. Each rest between payments made the heap small and the next payments a sixth dearer; what is
 * given back is some 30 MB, for what lives and the room beside it are bounded. One flag keeps it from beginning, the
 * other from what has begun.
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
 * By a program that turns out to be busy: V8 compiles a function for speed when it has been called 400 times, and once
 * more for good after 3,000. A payment among the first ten thousand costs a fifth less with a quarter and a third of
 * that. Not from the beginning: to start, and to idle, would cost more.
 */
export const compileEarly = (): void => {
  if (!isRecent) return
  setFlagsFromString("--invocation-count-for-maglev=100")
  setFlagsFromString("--invocation-count-for-turbofan=1000")
}

/** Of the engine's measure of how much a function has run, where 13 million is what it takes by itself. */
const optimizedAfter = 200_000_000

/**
 * Before WebAssembly is loaded, by a program that mostly waits: V8 compiles a function of the embedded database a
 * second time when it has run a few milliseconds in all, which a process without any payment reaches by its minutes,
 * and takes a quarter of its idling for. A busy one reaches this in its first seconds, and is as fast on the way there.
 */
export const optimizeLate = (): void => {
  if (takesFlags) setFlagsFromString(`--wasm-tiering-budget=${optimizedAfter}`)
}
