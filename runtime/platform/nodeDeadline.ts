// Deadlines for synchronous work, on Node and Deno: both stop a script that runs past its timeout, a loop of wasm
// included. A script of one line calls the work, so that it runs in this realm and returns its own values. Nested calls
// are not limited twice; the outermost limit holds.
import { Layer } from "effect"
import vm from "node:vm"
import { Deadline, DeadlinePassed, type RunWithin } from "../../kernel/platform/Deadline.ts"

const SLOT = "tollkeeper:deadline"

interface Slot {
  work: (() => unknown) | undefined
}

const isTimeout = (error: unknown): boolean =>
  error instanceof Error && (error as { readonly code?: unknown }).code === "ERR_SCRIPT_EXECUTION_TIMEOUT"

const slot: Slot = { work: undefined }
Object.defineProperty(globalThis, Symbol.for(SLOT), { value: slot, configurable: true })
const script = new vm.Script(`globalThis[Symbol.for(${JSON.stringify(SLOT)})].work()`)

export const runWithin: RunWithin = <A>(millis: number, work: () => A): A => {
  if (slot.work !== undefined) return work()
  slot.work = work
  try {
    return script.runInThisContext({ timeout: millis, displayErrors: false }) as A
  } catch (error) {
    throw isTimeout(error) ? new DeadlinePassed(millis) : error
  } finally {
    slot.work = undefined
  }
}

export const layer = Layer.succeed(Deadline, runWithin)
