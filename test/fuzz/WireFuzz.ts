// Plays mutated inputs against the readers of `wireTargets.ts`, each target in turn. A seed always gives the same
// cases. A reader may use a quarter of a second of processor time; a slow case is repeated before it counts, since the
// collector or the compiler may have run during the first.
import { Dice } from "./Dice.ts"
import { processorMillis } from "./FuzzLedger.ts"
import { type WireTarget, wireTargets } from "./wireTargets.ts"

/** Processor time of one case. */
const caseMillisMax = 250
/** Growth of the heap over a whole run, after a collection where the program allows one. */
const heapBytesMax = 256 * 1_048_576

export interface WireOutcome {
  readonly cases: number
  /** Cases that were read without a refusal, by target. */
  readonly read: ReadonlyMap<string, number>
  readonly breaches: ReadonlyArray<string>
  readonly slowestMillis: number
  readonly heapBytes: number
}

const collect = (): number => {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

const timed = async (read: () => unknown): Promise<{ readonly error?: unknown; readonly millis: number }> => {
  const started = processorMillis()
  try {
    await read()
    return { millis: processorMillis() - started }
  } catch (error) {
    return { error, millis: processorMillis() - started }
  }
}

const isRefusal = ({ refuses }: WireTarget, error: unknown): boolean =>
  refuses !== undefined && !(error instanceof RangeError) && refuses.test(String((error as Error)?.message ?? error))

/** Plays `cases` cases, evenly over the targets. */
export const fuzzWire = async (cases: number, seed: number): Promise<WireOutcome> => {
  const dice = new Dice(seed)
  const breaches: Array<string> = []
  const read = new Map(wireTargets.map(({ name }) => [name, 0]))
  let slowestMillis = 0
  const before = collect()
  for (let index = 0; index < cases; index++) {
    const target = wireTargets[index % wireTargets.length]!
    const one = target.cast(dice)
    const first = await timed(one.read)
    const millis = first.millis > caseMillisMax ? Math.min(first.millis, (await timed(one.read)).millis) : first.millis
    slowestMillis = Math.max(slowestMillis, millis)
    const shown = () => `case ${index} of seed ${seed}, ${target.name}: ${JSON.stringify(one.input)?.slice(0, 400)}`
    if (millis > caseMillisMax) breaches.push(`${millis.toFixed(0)} ms: ${shown()}`)
    if (first.error === undefined) read.set(target.name, read.get(target.name)! + 1)
    else if (!isRefusal(target, first.error)) breaches.push(`${String((first.error as Error)?.stack)}\n${shown()}`)
  }
  const heapBytes = collect() - before
  if (globalThis.gc !== undefined && heapBytes > heapBytesMax) breaches.push(`the heap grew by ${heapBytes} bytes`)
  return { cases, read, breaches, slowestMillis, heapBytes }
}
